package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

func structured(arguments string) string { return `"structuredContent":` + arguments }

func contains(result, part string) bool { return strings.Contains(result, part) }

// counting returns a call of n notifications under a token.
func counting(token string, n int) *mcp.Request {
	return &mcp.Request{
		Method: mcp.MethodCallTool,
		Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"name":%q,"arguments":{"n":%d},"_meta":{"progressToken":%q}}`, countTool, n, token)),
		Meta:   mcp.Metadata{ProgressToken: jsonrpc.StringID(token), Session: token},
	}
}

// counted returns what the caller of such a call hears.
func counted(token string, n int) []string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("%s %q %d", mcp.NotificationProgress, token, i+1))
	}
	return lines
}

func notificationsBeforeResult(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	for range 3 {
		var heard listener
		if _, err := start(t, edge, counting("t", 200), &heard).wait(t); err != nil {
			t.Fatal(err)
		}
		if want := counted("t", 200); !slices.Equal(heard.lines(), want) {
			t.Errorf("heard %q", heard.lines())
		}
	}
}

func callsRunConcurrently(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	const n = 32
	var calls []*call
	for range n {
		calls = append(calls, start(t, edge, tool(meetTool, fmt.Sprintf(`{"key":"all","n":%d}`, n)), mcp.NoCaller{}))
	}
	for _, c := range calls {
		if _, err := c.wait(t); err != nil {
			t.Error(err)
		}
	}
}

func errorsArrive(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	_, err := start(t, edge, tool("nope", `{}`), mcp.NoCaller{}).wait(t)
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || !jsonrpc.FromPeer(err) || e.Code != jsonrpc.CodeInvalidParams || e.Message != "Unknown tool: nope" {
		t.Errorf("got %v", err)
	}
	works(t, edge)
}

func cancelReachesServer(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	for i, c := range hold(t, edge, holdTool, 3) {
		c.cancel()
		_, err := c.wait(t)
		wantFailure(t, err, mcp.Cancelled, mcp.MaybeExecuted)
		succeed(t, edge, awaitTool, fmt.Sprintf(`{"key":%q}`, ended(fmt.Sprint(i))))
	}
	works(t, edge)
}

func cancelBeforeAnswer(t *testing.T, f *fixture) {
	edge := f.dialAs(t, DialOptions{DialOptions: transport.DialOptions{Capabilities: []byte(`{"elicitation":{}}`)}})
	for i := range 10 {
		caller := &silent{asked: make(chan struct{})}
		c := start(t, edge, tool(askTool, fmt.Sprintf(`{"key":"%d"}`, i)), caller)
		<-caller.asked
		c.cancel()
		_, err := c.wait(t)
		wantFailure(t, err, mcp.Cancelled, mcp.MaybeExecuted)
		succeed(t, edge, awaitTool, fmt.Sprintf(`{"key":%q}`, ended(fmt.Sprint(i))))
	}
	if n := f.handler.misled(); n > 0 {
		t.Errorf("%d of 10 questions failed before their call was cancelled", n)
	}
}

func deadlineEndsCall(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	const limit = 300 * time.Millisecond
	began := time.Now()
	c := startWithin(t, limit, edge, tool(holdTool, `{"key":"late"}`), mcp.NoCaller{})
	_, err := c.wait(t)
	if took := time.Since(began); took < limit || took > limit+soon {
		t.Errorf("the call ended after %v", took)
	}
	wantFailure(t, err, mcp.TimedOut, mcp.MaybeExecuted)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	succeed(t, edge, awaitTool, fmt.Sprintf(`{"key":%q}`, ended("late")))
}

func givenUpIsNotSent(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := edge.Handle(ctx, tool(holdTool, `{"key":"never"}`), mcp.NoCaller{})
	wantFailure(t, err, mcp.Cancelled, mcp.NotSent)
	works(t, edge)
}

// wantFailure checks how a call failed on our side of the wire.
func wantFailure(t *testing.T, err error, kind mcp.FailureKind, outcome mcp.Outcome) {
	t.Helper()
	e, ok := errors.AsType[*mcp.CallError](err)
	if !ok || e.Kind != kind || e.Outcome != outcome || e.Method != mcp.MethodCallTool {
		t.Errorf("got %v, want %s, %s", err, kind, outcome)
	}
}

func closeEndsCalls(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	calls := hold(t, edge, holdTool, 5)
	select {
	case <-edge.Done():
		t.Fatalf("the edge is done before its end: %v", edge.Err())
	default:
	}
	if err := edge.Err(); err != nil {
		t.Errorf("the edge has the error %v before its end", err)
	}
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(func() { closeSoon(t, edge) })
	}
	closing.Wait()
	for _, c := range calls {
		_, err := c.wait(t)
		wantFailure(t, err, mcp.ConnectionLost, mcp.MaybeExecuted)
		if !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("the error is %v", err)
		}
	}
	<-edge.Done()
	if err := edge.Err(); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("Err returns %v", err)
	}
	_, err := start(t, edge, tool(echoTool, `{}`), mcp.NoCaller{}).wait(t)
	wantFailure(t, err, mcp.ConnectionLost, mcp.NotSent)
	if !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
}

func closeWithSilentServer(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	calls := hold(t, edge, deafTool, 2)
	late := startWithin(t, 50*time.Millisecond, edge, tool(deafTool, `{"key":"late"}`), mcp.NoCaller{})
	_, err := late.wait(t)
	wantFailure(t, err, mcp.TimedOut, mcp.MaybeExecuted)
	closeSoon(t, edge)
	for _, c := range calls {
		_, err := c.wait(t)
		wantFailure(t, err, mcp.ConnectionLost, mcp.MaybeExecuted)
	}
}

func vanishedServer(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	calls := hold(t, edge, deafTool, 3)
	f.server.Vanish()
	for _, c := range calls {
		c.waitWithin(t, soon)
		wantFailure(t, c.err, mcp.ConnectionLost, mcp.MaybeExecuted)
	}
	// Whether it can be sent, only some bindings know.
	c := start(t, edge, tool(echoTool, `{}`), mcp.NoCaller{})
	c.waitWithin(t, soon)
	if _, ok := errors.AsType[*mcp.CallError](c.err); !ok {
		t.Errorf("a call to nobody ends with %v", c.err)
	}
}

func overlongReply(t *testing.T, f *fixture) {
	const limit = 64 << 10
	edge := f.dial(t, limit)
	for range 2 {
		_, err := start(t, edge, tool(fillTool, fmt.Sprintf(`{"n":%d}`, 3*limit)), mcp.NoCaller{}).wait(t)
		e, ok := errors.AsType[*mcp.CallError](err)
		if !ok || e.Kind != mcp.LimitExceeded || e.Limit == "" {
			t.Fatalf("got %v", err)
		}
		if !contains(err.Error(), fmt.Sprint(limit)) {
			t.Errorf("the error does not name the limit of %d: %v", limit, err)
		}
		works(t, edge)
	}
}

func overlongRequest(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	text := strings.Repeat("x", jsonrpc.DefaultMaxLineListening)
	c := start(t, edge, tool(echoTool, `{"text":"`+text+`"}`), mcp.NoCaller{})
	if result, err := c.wait(t); err == nil {
		t.Errorf("got %d bytes", len(result))
	}
	works(t, edge)
}

func sizes(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	all := []int{1, 2, 100, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20}
	if f.era == mcp.Legacy { // once is enough for what takes so long
		all = append(all, 5<<20)
	}
	var running sync.WaitGroup
	for i, n := range all {
		running.Go(func() {
			// Of characters that have two bytes, unlike its neighbours'.
			text := strings.Repeat(string(rune('à'+i)), n/2) + strings.Repeat("x", n%2)
			arguments := `{"text":"` + text + `"}`
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			result, err := edge.Handle(ctx, tool(echoTool, arguments), mcp.NoCaller{})
			switch got := string(result.Raw()); {
			case err != nil:
				t.Errorf("%d bytes: %v", n, err)
			case !contains(got, structured(arguments)):
				t.Errorf("%d bytes: %d came back: %.100s", n, len(got), got)
			}
		})
	}
	running.Wait()
}

func equalIDs(t *testing.T, f *fixture) {
	var running sync.WaitGroup
	for client := range 4 {
		edge := f.dial(t, 0)
		running.Go(func() { callMany(t, edge, client) })
	}
	running.Wait()
}

// callMany makes calls whose ids are those of every other client.
func callMany(t *testing.T, edge transport.Edge, client int) {
	var running sync.WaitGroup
	for i := range 50 {
		arguments := fmt.Sprintf(`{"client":%d,"call":%d}`, client, i)
		running.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			result, err := edge.Handle(ctx, tool(echoTool, arguments), mcp.NoCaller{})
			if got := string(result.Raw()); err != nil || !contains(got, structured(arguments)) {
				t.Errorf("%s came to %s, %v", arguments, got, err)
			}
		})
	}
	running.Wait()
}

func equalTokens(t *testing.T, f *fixture) {
	edge := f.dial(t, 0)
	const clients, token = 8, "same"
	var heard [clients]listener
	var calls []*call
	for i := range clients {
		req := counting(token, 10+i)
		req.Meta.Session = fmt.Sprint(i)
		calls = append(calls, start(t, edge, req, &heard[i]))
	}
	for i, c := range calls {
		if _, err := c.wait(t); err != nil {
			t.Error(err)
		}
		if want := counted(token, 10+i); !slices.Equal(heard[i].lines(), want) {
			t.Errorf("client %d heard %q", i, heard[i].lines())
		}
	}
}
