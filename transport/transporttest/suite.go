package transporttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A Serve serves a handler over a binding until the test ends. A binding whose
// servers are other processes has each of them serve one of [NewHandler]
// instead.
type Serve func(t *testing.T, handler mcp.Handler) Server

// A Server is a handler that is being served.
type Server struct {
	// Dial connects one more client. The suite closes the edge.
	Dial func(ctx context.Context, opts DialOptions) (transport.Edge, error)
	// Vanish has the server's side of all connections go away without a word,
	// as a process does that is killed, and returns when it has.
	Vanish func()
}

// DialOptions are how the suite has an edge dialed.
type DialOptions struct {
	transport.DialOptions

	// MaxMessage is how many bytes a message from the server may have; the
	// binding's default if it is 0.
	MaxMessage int
}

// patience bounds what only a hang would miss.
const patience = 30 * time.Second

// soon is what the suite allows for that must not wait for the peer: the closing
// of an edge, say.
const soon = 8 * time.Second

// Run runs the suite against a binding, in the eras that it has; none stands for
// both.
func Run(t *testing.T, serve Serve, eras ...mcp.Era) {
	if len(eras) == 0 {
		eras = []mcp.Era{mcp.Legacy, mcp.Modern}
	}
	for _, era := range eras {
		t.Run(era.String(), func(t *testing.T) { runEra(t, serve, era) })
	}
}

func runEra(t *testing.T, serve Serve, era mcp.Era) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fixture)
		only mcp.Era // in which there is something to run; NoEra for both
	}{
		{"S1.39 notifications come in order and before the result", notificationsBeforeResult, mcp.NoEra},
		{"S1.34 calls are served concurrently", callsRunConcurrently, mcp.NoEra},
		{"errors of the server arrive as they are", errorsArrive, mcp.NoEra},
		{"B136 cancelling reaches the server", cancelReachesServer, mcp.NoEra},
		{"B151 cancelling reaches the server before its question fails", cancelBeforeAnswer, mcp.Legacy},
		{"S1.59 a deadline ends a call and reaches the server", deadlineEndsCall, mcp.NoEra},
		{"S1.58 a call that has been given up is not sent", givenUpIsNotSent, mcp.NoEra},
		{"S1.52 closing ends calls in flight", closeEndsCalls, mcp.NoEra},
		{"S1.54 closing does not wait for a silent server", closeWithSilentServer, mcp.NoEra},
		{"S1.56 a server that vanishes ends calls in flight", vanishedServer, mcp.NoEra},
		{"B002 a reply beyond the limit fails its call only", overlongReply, mcp.NoEra},
		{"S2.43 a request beyond the limit fails alone", overlongRequest, mcp.NoEra},
		{"B001 messages of all sizes arrive intact", sizes, mcp.NoEra},
		{"S1.30 equal ids of concurrent clients are not crossed", equalIDs, mcp.NoEra},
		{"S1.30 equal tokens on one edge are not crossed", equalTokens, mcp.NoEra},
	} {
		if test.only != mcp.NoEra && test.only != era {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			handler := NewHandler()
			f := &fixture{server: serve(t, handler), handler: handler, era: era}
			// Before the server waits for its handler.
			t.Cleanup(handler.Close)
			test.run(t, f)
		})
	}
}

// A fixture is one server and its clients.
type fixture struct {
	server  Server
	handler *Handler
	era     mcp.Era
}

// dial connects a client.
func (f *fixture) dial(t *testing.T, maxMessage int) transport.Edge {
	t.Helper()
	return f.dialAs(t, DialOptions{MaxMessage: maxMessage})
}

// dialAs connects a client in the fixture's era.
func (f *fixture) dialAs(t *testing.T, opts DialOptions) transport.Edge {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opts.Era = f.era
	edge, err := f.server.Dial(ctx, opts)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() { closeSoon(t, edge) })
	return edge
}

// closeSoon closes an edge, twice, and asserts that this does not take long.
func closeSoon(t *testing.T, edge transport.Edge) {
	t.Helper()
	began := time.Now()
	for range 2 {
		if err := edge.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	if took := time.Since(began); took > soon {
		t.Errorf("closing took %v", took)
	}
}

// tool returns a call of a tool.
func tool(name, arguments string) *mcp.Request {
	return &mcp.Request{
		Method: mcp.MethodCallTool,
		Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, name, arguments)),
	}
}

// A call is one in the background.
type call struct {
	cancel context.CancelFunc
	done   chan struct{}
	result mcp.Result
	err    error
}

// start makes a call that ends with the test at the latest.
func start(t *testing.T, edge transport.Edge, req *mcp.Request, caller mcp.Caller) *call {
	return startWithin(t, patience, edge, req, caller)
}

// startWithin makes a call with a deadline.
func startWithin(t *testing.T, limit time.Duration, edge transport.Edge, req *mcp.Request, caller mcp.Caller) *call {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	c := &call{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.result, c.err = edge.Handle(ctx, req, caller)
	}()
	t.Cleanup(func() {
		cancel()
		<-c.done
	})
	return c
}

// wait waits for the end of a call.
func (c *call) wait(t *testing.T) (string, error) {
	t.Helper()
	c.waitWithin(t, patience)
	return string(c.result.Raw()), c.err
}

func (c *call) waitWithin(t *testing.T, limit time.Duration) {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(limit):
		t.Fatalf("a call has not ended within %v", limit)
	}
}

// succeed makes a call that must succeed.
func succeed(t *testing.T, edge transport.Edge, name, arguments string) string {
	t.Helper()
	result, err := start(t, edge, tool(name, arguments), mcp.NoCaller{}).wait(t)
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return result
}

// hold has n calls be held by the server.
func hold(t *testing.T, edge transport.Edge, name string, n int) []*call {
	t.Helper()
	var calls []*call
	for i := range n {
		calls = append(calls, start(t, edge, tool(name, fmt.Sprintf(`{"key":"%d"}`, i)), mcp.NoCaller{}))
	}
	for i := range n {
		succeed(t, edge, awaitTool, fmt.Sprintf(`{"key":"%d"}`, i))
	}
	return calls
}

// works checks that an edge is usable.
func works(t *testing.T, edge transport.Edge) {
	t.Helper()
	got := succeed(t, edge, echoTool, `{"still":"here"}`)
	if want := structured(`{"still":"here"}`); !contains(got, want) {
		t.Errorf("echo returned %s", got)
	}
}

// A listener keeps the notifications that it gets.
type listener struct {
	mu  sync.Mutex
	got []string // guarded by mu
}

// Notify implements [mcp.Caller].
func (l *listener) Notify(_ context.Context, n *mcp.Notification) error {
	progress, _ := n.Params.Lookup("progress")
	token := mcp.ProgressToken(&n.Params)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, fmt.Sprintf("%s %s %s", n.Method, token.String(), progress))
	return nil
}

// Ask implements [mcp.Caller].
func (*listener) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}

// A silent caller does not answer until its call ends.
type silent struct {
	listener
	asked chan struct{} // is sent a value for each question
}

// Ask implements [mcp.Caller].
func (s *silent) Ask(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return mcp.Result{}, context.Cause(ctx)
}

func (l *listener) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}
