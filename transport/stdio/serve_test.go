//go:build unix

package stdio_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"

	"github.com/google/go-cmp/cmp"
)

// tools is a server of some tools. Slow announces itself by progress.
var tools = mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return mcp.RawResult([]byte(`{"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"tools","version":"1"}}}`)), nil
	case mcp.MethodListTools:
		return mcp.RawResult([]byte(`{"tools":[]}`)), nil
	case mcp.MethodListen:
		<-ctx.Done()
		return mcp.Result{}, context.Cause(ctx)
	case mcp.MethodCallTool:
	default:
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	arguments, _ := req.Params.Lookup("arguments")
	switch name, _ := req.Params.LookupString("name"); name {
	case "echo":
		return mcp.RawResult(arguments), nil
	case "serve":
		err := stdio.Serve(ctx, mcp.HandlerFunc(nil), nil)
		if !errors.Is(err, stdio.ErrServing) {
			return mcp.Result{}, err
		}
		return mcp.RawResult([]byte(`{"serving":true}`)), nil
	case "panic":
		panic("as told")
	case "slow":
		params := jsonrpc.Trusted(fmt.Appendf(nil, `{"progressToken":%s,"progress":1}`, req.Meta.ProgressToken))
		if err := caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress, Params: params}); err != nil {
			return mcp.Result{}, err
		}
		select {
		case <-time.After(150 * time.Millisecond):
		case <-ctx.Done():
			return mcp.Result{}, context.Cause(ctx)
		}
	}
	return mcp.RawResult([]byte(ok)), nil
})

// Messages of a client.
const (
	initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	listTools  = `{"jsonrpc":"2.0","id":"list","method":"tools/list"}`
	slowCall   = `{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"slow","arguments":{},"_meta":{"progressToken":"p"}}}`
)

// Answers to them.
const (
	toInitialize = `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tools","version":"1"}}}`
	toListTools  = `{"jsonrpc":"2.0","id":"list","result":{"tools":[]}}`
	toSlowCall   = `{"jsonrpc":"2.0","id":"slow","result":{"ok":true}}`
	slowStarted  = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`
)

func ping(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`
}

func pong(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

func echoCall(id, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo","arguments":` + arguments + `}}`
}

func refusal(id string, code int, message string) string {
	if id != "" {
		id = `"id":` + id + `,`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0",%s"error":{"code":%d,"message":%q}}`, id, code, message)
}

// details are what error messages tell beyond what JSON-RPC calls them.
var details = regexp.MustCompile(`"(Parse error|Invalid Request): (?:[^"\\]|\\.)*"`)

// pipes are what a parent has made for a child's standard streams.
type pipes struct {
	in, out        *os.File // the child's
	toIn, fromOut  *os.File // the parent's
	closing        sync.Once
	closingFailure error
}

func newPipes(t *testing.T) *pipes {
	t.Helper()
	var p pipes
	var err error
	if p.in, p.toIn, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	if p.fromOut, p.out, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.closeOurs() })
	return &p
}

// closeOurs closes the parent's ends.
func (p *pipes) closeOurs() error {
	p.closing.Do(func() { p.closingFailure = errors.Join(p.toIn.Close(), p.fromOut.Close()) })
	return p.closingFailure
}

// serveText serves a client that writes text, size bytes at a time, and then ends.
// It returns the lines of the answer in the order of the alphabet.
func serveText(t *testing.T, opts stdio.ServeOptions, text string, size int) []string {
	t.Helper()
	nothingLeft(t)
	p := newPipes(t)
	opts.In, opts.Out = p.in, p.out
	served := make(chan error, 1)
	go func() { served <- stdio.Serve(context.Background(), tools, &opts) }()
	go func() {
		for len(text) > 0 {
			n := min(size, len(text))
			if _, err := io.WriteString(p.toIn, text[:n]); err != nil {
				break
			}
			text = text[n:]
		}
		_ = p.toIn.Close()
	}()
	got, err := io.ReadAll(p.fromOut)
	if err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "the end of Serve", served); err != nil {
		t.Errorf("Serve returned %v", err)
	}
	answer := details.ReplaceAllString(string(got), `"$1"`)
	lines := strings.Split(strings.TrimSuffix(answer, "\n"), "\n")
	slices.Sort(lines)
	return lines
}

func TestWhatAClientWrites(t *testing.T) {
	plain := stdio.ServeOptions{ServeOptions: transport.ServeOptions{Plain: true}}
	for _, tt := range []struct {
		name string
		opts stdio.ServeOptions
		text string
		want []string
	}{
		{"S2.33 requests in one chunk", stdio.ServeOptions{}, ping("1") + "\n" + ping("2") + "\n", []string{pong("1"), pong("2")}},
		{"S2.31 CRLF, blank lines and a byte order mark", stdio.ServeOptions{},
			"\r\n\ufeff" + ping("1") + "\r\n \t \n\n" + ping("2") + "\r\n", []string{pong("1"), pong("2")}},
		{"D2.6 no newline at the end", stdio.ServeOptions{}, ping("1") + "\n" + ping("2"), []string{pong("1"), pong("2")}},
		{"S2.42 D2.6 initialize and more at once", stdio.ServeOptions{}, initialize + "\n" + listTools + "\n", []string{toInitialize, toListTools}},
		{"S2.42 D2.6 a slow call", stdio.ServeOptions{}, initialize + "\n" + slowCall + "\n" + listTools,
			[]string{toInitialize, toListTools, toSlowCall, slowStarted}},
		{"S2.38 one after the other", stdio.ServeOptions{ServeOptions: transport.ServeOptions{Ordered: true}},
			initialize + "\n" + slowCall + "\n" + listTools + "\n", []string{toInitialize, toListTools, toSlowCall, slowStarted}},
		{"S2.32 no JSON", stdio.ServeOptions{}, "hello\n" + ping("1") + "\n",
			[]string{refusal("", -32700, "Parse error"), pong("1")}},
		{"B010b a message that is cut off", stdio.ServeOptions{}, ping("1") + "\n" + `{"jsonrpc":"2.0","id":2,"meth`,
			[]string{refusal("2", -32700, "Parse error"), pong("1")}},
		{"B014 no UTF-8", stdio.ServeOptions{}, "{\"a\":\"caf\xe9\"}\n" + ping("1") + "\n",
			[]string{refusal("", -32700, "Parse error"), pong("1")}},
		{"B005 no JSON-RPC 2.0", stdio.ServeOptions{}, `{"jsonrpc":"1.0","id":4,"method":"ping"}` + "\n" + `{"id":5,"method":"ping"}` + "\n" + ping("1"),
			[]string{refusal("4", -32600, "Invalid Request"), refusal("5", -32600, "Invalid Request"), pong("1")}},
		{"B020 ids of all kinds", stdio.ServeOptions{}, strings.Join([]string{
			ping(`"1"`), ping(`1`), ping(`"001"`), ping(`"1e3"`), ping(`""`), ping(`"init-α"`), ping(`0`), ping(`9007199254740993`)}, "\n"),
			[]string{pong(`"1"`), pong(`1`), pong(`"001"`), pong(`"1e3"`), pong(`""`), pong(`"init-α"`), pong(`0`), pong(`9007199254740993`)}},
		{"B016 exact numbers", plain, echoCall("1", `{"a":9007199254740993,"b":1.0,"c":1E2,"d":-0,"e":0.1000}`),
			[]string{`{"jsonrpc":"2.0","id":1,"result":{"a":9007199254740993,"b":1.0,"c":1E2,"d":-0,"e":0.1000}}`}},
		{"S2.43 a line beyond the limit", stdio.ServeOptions{MaxLine: 1000}, strings.Repeat("x", 1001) + "\n" + ping("1") + "\n",
			[]string{refusal("", -32700, "Parse error"), pong("1")}},
		{"S2.36 a batch of notifications", plain, `[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]` + "\n", []string{""}},
		{"S2.34 a batch", plain, `[` + echoCall("1", "{}") + `,{"jsonrpc":"2.0","method":"b"},` + echoCall("2", `{"a":1}`) + `]` + "\n",
			[]string{`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"a":1}}]`}},
		{"a handler that panics", plain, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"panic"}}` + "\n" + echoCall("2", "{}"),
			[]string{refusal("1", -32603, "Internal error"), `{"jsonrpc":"2.0","id":2,"result":{}}`}},
		{"nothing", stdio.ServeOptions{}, "", []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			slices.Sort(tt.want)
			for _, size := range []int{1, 1 << 20} {
				got := serveText(t, tt.opts, tt.text, size)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("S2.30 %d bytes at a time (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

func TestS228ContextEndsServe(t *testing.T) {
	nothingLeft(t)
	p := newPipes(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- stdio.Serve(ctx, tools, &stdio.ServeOptions{In: p.in, Out: p.out}) }()
	lines := jsonrpc.NewLineReader(p.fromOut, 0)
	if _, err := io.WriteString(p.toIn, initialize+"\n"+slowCall+"\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{toInitialize, slowStarted} {
		if got, err := lines.ReadLine(); err != nil || string(got) != want {
			t.Fatalf("got %s, %v", got, err)
		}
	}
	began := time.Now()
	cancel()
	if got, err := lines.ReadLine(); err != nil || string(got) != toSlowCall {
		t.Errorf("the call in flight got %s, %v", got, err)
	}
	if err := receive(t, "the end of Serve", served); err != nil {
		t.Errorf("Serve returned %v", err)
	}
	if took := time.Since(began); took > promptly {
		t.Errorf("Serve returned after %v", took)
	}
	if _, err := lines.ReadLine(); !errors.Is(err, io.EOF) {
		t.Errorf("the output goes on: %v", err)
	}
	for _, f := range []*os.File{p.in, p.out} {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("closing %s again: %v", f.Name(), err)
		}
	}
}

func TestS228HandlerThatDoesNotEndDoesNotHoldServe(t *testing.T) {
	nothingLeft(t)
	p := newPipes(t)
	release, called := make(chan struct{}), make(chan struct{})
	stuck := mcp.HandlerFunc(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		close(called)
		<-release
		return mcp.Result{}, nil
	})
	served := make(chan error, 1)
	go func() {
		served <- stdio.Serve(t.Context(), stuck, &stdio.ServeOptions{
			ServeOptions: transport.ServeOptions{Plain: true, Drain: 50 * time.Millisecond}, In: p.in, Out: p.out,
		})
	}()
	if _, err := io.WriteString(p.toIn, echoCall("1", "{}")+"\n"); err != nil {
		t.Fatal(err)
	}
	receive(t, "the call", called)
	_ = p.toIn.Close()
	if err := receive(t, "the end of Serve", served); err != nil {
		t.Errorf("Serve returned %v", err)
	}
	close(release)
}
