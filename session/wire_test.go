package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// A wire is a legacy server, played by a function.
type wire struct {
	calls inflight.Calls
	// serve answers a request by call.Reply or call.Finish, at once or later.
	// It may be nil for an empty result to everything.
	serve func(call *inflight.Call, method, params string)

	mu      sync.Mutex
	sent    []string // what the client sent: "method params" or "reply id ..."
	arrived chan struct{}
}

func newWire(serve func(call *inflight.Call, method, params string)) *wire {
	return &wire{serve: serve, arrived: make(chan struct{}, 1000)}
}

func (w *wire) note(format string, args ...any) {
	w.mu.Lock()
	w.sent = append(w.sent, fmt.Sprintf(format, args...))
	w.mu.Unlock()
	w.arrived <- struct{}{}
}

func (w *wire) Call(ctx context.Context, call *inflight.Call, params *jsonrpc.Value, caller mcp.Caller, edits ...jsonrpc.Edit) (mcp.Result, error) {
	edited := jsonrpc.Edited(params, edits...)
	params = &edited
	method := call.Request.Method
	w.note("%s %s", method, params.Raw())
	if w.serve == nil {
		answer(call, "{}")
	} else {
		w.serve(call, method, string(params.Raw()))
	}
	m, err := call.Wait(ctx, caller, 0)
	if err != nil {
		return mcp.Result{}, err
	}
	if m.Failed {
		return mcp.Result{}, jsonrpc.ReadError(&m.Body)
	}
	return mcp.Result{Value: m.Body}, nil
}

func (w *wire) Notify(_ context.Context, method string, params *jsonrpc.Value) error {
	w.note("%s %s", method, params.Raw())
	return nil
}

func (w *wire) Reply(_ context.Context, id jsonrpc.ID, result mcp.Result, err error) error {
	if err != nil {
		w.note("reply %s error %d", id, jsonrpc.ToWire(err).Code)
		return nil
	}
	raw := result.Raw()
	if result.IsZero() {
		raw = []byte("{}") // what jsonrpc.AppendResult writes
	}
	w.note("reply %s %s", id, raw)
	return nil
}

// all returns what was sent and matches a prefix.
func (w *wire) all(prefix string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.sent), func(s string) bool { return !strings.HasPrefix(s, prefix) })
}

// await waits until n messages with a prefix were sent, and returns them.
func (w *wire) await(t *testing.T, n int, prefix string) []string {
	t.Helper()
	for {
		if got := w.all(prefix); len(got) >= n {
			return got
		}
		select {
		case <-w.arrived:
		case <-time.After(10 * time.Second):
			t.Fatalf("%q came %d times, not %d; all: %q", prefix, len(w.all(prefix)), n, w.all(""))
		}
	}
}

func answer(call *inflight.Call, result string) {
	call.Reply(&jsonrpc.Message{Kind: jsonrpc.Response, Body: jsonrpc.Trusted([]byte(result))})
}

func refuse(call *inflight.Call, code int) {
	call.Reply(&jsonrpc.Message{
		Kind: jsonrpc.Response, Failed: true,
		Body: jsonrpc.Trusted(fmt.Appendf(nil, `{"code":%d,"message":"no"}`, code)),
	})
}

const everything = `{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},"capabilities":` +
	`{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"logging":{}}}`

const asksEverything = `{"roots":{"listChanged":true},"elicitation":{},"sampling":{}}`

// connected returns a client of w after its handshake. w.serve need not answer
// initialize.
func connected(t *testing.T, w *wire, capabilities string) *session.Client {
	t.Helper()
	serve := w.serve
	w.serve = func(call *inflight.Call, _, _ string) { answer(call, everything) }
	c := session.NewClient(w, &w.calls, session.ClientOptions{Capabilities: []byte(capabilities)})
	if err := c.Initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.serve = serve
	t.Cleanup(func() {
		if n := w.calls.Len(); n != 0 {
			t.Errorf("%d calls are left", n)
		}
		if n := c.Watched(); n != 0 {
			t.Errorf("%d resources are watched", n)
		}
		if n := c.Open(); n != 0 {
			t.Errorf("%d questions are open", n)
		}
	})
	return c
}

// A listener is a caller that keeps what it is told.
type listener struct {
	acked chan string // filters
	got   chan string // "method params" of everything else
	ask   func(ctx context.Context, req *mcp.Request) (mcp.Result, error)
}

func newListener() *listener {
	return &listener{acked: make(chan string, 10), got: make(chan string, 1000)}
}

func (l *listener) Notify(_ context.Context, n *mcp.Notification) error {
	if n.Method == mcp.NotificationAcknowledged {
		l.acked <- string(n.Params.Raw())
		return nil
	}
	l.got <- n.Method + " " + string(n.Params.Raw())
	return nil
}

func (l *listener) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if l.ask == nil {
		return mcp.Result{}, mcp.ErrCannotAsk
	}
	return l.ask(ctx, req)
}

// told returns what has come so far.
func (l *listener) told() []string {
	var all []string
	for {
		select {
		case s := <-l.got:
			all = append(all, s)
		default:
			return all
		}
	}
}

// receive waits for a value from a channel.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// legacyMeta is the metadata of a request of a legacy client.
func legacyMeta(client string, level mcp.Level) mcp.Metadata {
	return mcp.Metadata{Revision: mcp.Revision20250618, Session: client, LogLevel: level}
}

// running is a call in the background.
type running struct {
	done   chan struct{}
	cancel context.CancelFunc
	result mcp.Result
	err    error
}

// handle starts a call and stops it at the test's end.
func handle(t *testing.T, h mcp.Handler, req *mcp.Request, caller mcp.Caller) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(r.done)
		r.result, r.err = h.Handle(ctx, req, caller)
	}()
	t.Cleanup(r.stop)
	return r
}

// stop ends the call and waits for its end.
func (r *running) stop() {
	r.cancel()
	<-r.done
}

// listen opens a listen call and waits for its acknowledgement.
func listen(t *testing.T, h mcp.Handler, meta mcp.Metadata, filter mcp.Filter) (*listener, *running) {
	t.Helper()
	l := newListener()
	r := handle(t, h, &mcp.Request{Method: mcp.MethodListen, Params: filter.Params(), Meta: meta}, l)
	receive(t, "the acknowledgement", l.acked)
	return l, r
}

func toolCall(meta mcp.Metadata) *mcp.Request {
	return &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(`{"name":"x"}`)), Meta: meta}
}

func scan(t *testing.T, text string) *jsonrpc.Message {
	t.Helper()
	m := new(jsonrpc.Message)
	if err := jsonrpc.Scan([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}
