package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// TestAbandonedCallIsCancelledOnce_B136: on the wire, under the id that the
// server was given.
func TestAbandonedCallIsCancelledOnce_B136_S160(t *testing.T) {
	why := errors.New("why")
	for _, tt := range []struct {
		name  string
		end   func(*testing.T, *transport.Conn) *call
		kind  mcp.FailureKind
		cause error
	}{
		{"cancelled", func(t *testing.T, conn *transport.Conn) *call {
			return start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		}, mcp.Cancelled, why},
		{"deadline", func(t *testing.T, conn *transport.Conn) *call {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			t.Cleanup(cancel)
			return startWith(ctx, t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		}, mcp.TimedOut, context.DeadlineExceeded},
		{"deadline with a cause", func(t *testing.T, conn *transport.Conn) *call {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, why)
			t.Cleanup(cancel)
			return startWith(ctx, t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		}, mcp.TimedOut, why},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
				c := tt.end(t, conn)
				m := p.expect(mcp.MethodCallTool)
				if tt.kind == mcp.Cancelled {
					c.cancel(why)
				}
				if e := c.failure(t); e.Kind != tt.kind || e.Outcome != mcp.MaybeExecuted || !errors.Is(e, tt.cause) {
					t.Errorf("failed with %v", e)
				}
				cancelled := p.expect(mcp.NotificationCancelled)
				if id, _ := cancelled.Body.Lookup("requestId"); string(id) != m.ID.String() {
					t.Errorf("cancelled %s", cancelled.Body.Raw())
				}
				// B137: late replies, of any kind, change nothing.
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":0,"message":"Request cancelled"}}`, m.ID),
					fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID),
					`{"jsonrpc":"2.0","id":999,"result":{}}`)
				next := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
				again := p.expect(mcp.MethodCallTool) // and no second cancellation before it
				if again.ID.Key() == m.ID.Key() {
					t.Error("an id was used twice")
				}
				p.answer(again, `{"b":1}`)
				if got, err := next.wait(t); got != `{"b":1}` || err != nil {
					t.Errorf("got %s, %v", got, err)
				}
			})
		})
	}
}

// connectTasks connects to a server of 2025-11-25 that has tasks.
func connectTasks(t *testing.T, line transport.LineOptions) (*transport.Conn, *peer) {
	t.Helper()
	p, done := dial(t, transport.DialOptions{Era: mcp.Legacy}, line)
	p.answer(p.expect(mcp.MethodInitialize),
		`{"protocolVersion":"2025-11-25",`+serverInfo+`,"capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}}`)
	p.expect(mcp.NotificationInitialized)
	return receive(t, "the connection", done).conn, p
}

// TestCallThatMakesATaskIsNotCancelled_B136: "For task-augmented requests, the
// tasks/cancel request MUST be used instead of the notifications/cancelled notification"
// (2025-11-25, utilities/cancellation), be it left or its answer lost.
func TestCallThatMakesATaskIsNotCancelled_B136(t *testing.T) {
	for _, lost := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			conn, p := connectTasks(t, transport.LineOptions{MaxLine: 1000})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			meta := legacyMeta("a")
			meta.Revision = mcp.Revision20251125
			req := &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(`{"name":"t","task":{}}`)), Meta: meta}
			c := startWith(ctx, t, conn, req, mcp.NoCaller{})
			p.expect(mcp.MethodCallTool)
			if lost {
				p.say(strings.Repeat("x", 2000))
			}
			if e := c.failure(t); e.Outcome != mcp.MaybeExecuted {
				t.Errorf("lost %v: %v", lost, e)
			}
			start(t, conn, &mcp.Request{Method: "next", Meta: meta}, mcp.NoCaller{})
			p.expect("next") // and nothing before it
		})
	}
}

// TestResultOfATaskThatIsLostIsAskedForAgain_B136: and the server is not told that nobody
// waits for it, which it may take for the end of the task.
func TestResultOfATaskThatIsLostIsAskedForAgain_B136(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p := connectTasks(t, transport.LineOptions{MaxLine: 1000})
		meta := modernMeta("a")
		c := start(t, conn, toolCall(meta), mcp.NoCaller{})
		p.answer(p.expect(mcp.MethodListTools), `{"tools":[{"name":"x","execution":{"taskSupport":"required"}}]}`)
		p.answer(p.expect(mcp.MethodCallTool), `{"task":{"taskId":"1","status":"working"}}`)
		p.expect(mcp.MethodTaskResult)
		p.say(strings.Repeat("x", 2000))
		p.answer(p.expect(mcp.MethodTaskResult), `{"a":1}`)
		if got, err := c.wait(t); got != `{"a":1}` || err != nil {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

func TestInitializeIsNeverCancelled_B136_B061(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, p := newLink(t, transport.LineOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := transport.Dial(ctx, link, transport.DialOptions{Era: mcp.Legacy})
			failed <- err
		}()
		p.expect(mcp.MethodInitialize)
		err := receive(t, "the failure", failed)
		if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.TimedOut {
			t.Errorf("failed with %v", err)
		}
		if line := p.line(); line != "" {
			t.Errorf("sent %s", line)
		}
	})
}

func TestCallWithAnEndedContextSendsNothing_S158(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e := startWith(ctx, t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{}).failure(t); e.Outcome != mcp.NotSent || e.Kind != mcp.Cancelled {
		t.Errorf("failed with %v", e)
	}
	start(t, conn, &mcp.Request{Method: "next", Meta: legacyMeta("a")}, mcp.NoCaller{})
	p.expect("next")
}

// TestBlockedServerHoldsNobody_R18: a server that stops reading does not hold a
// call past its deadline, nor Close.
func TestBlockedServerHoldsNobody_R18_B136_S168_S169(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{MaxQueue: 100 << 10})
		large := toolCall(legacyMeta("a"))
		large.Params = jsonrpc.Trusted([]byte(`{"name":"` + strings.Repeat("x", 64<<10) + `"}`))
		began := time.Now()
		var calls []*call
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			calls = append(calls, startWith(ctx, t, conn, large, mcp.NoCaller{}))
		}
		unsent := 0
		for _, c := range calls {
			<-c.done
			e, ok := errors.AsType[*mcp.CallError](c.err)
			if !ok || e.Kind != mcp.TimedOut {
				t.Fatalf("failed with %v", c.err)
			}
			if e.Outcome == mcp.NotSent {
				unsent++
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the calls took %v", took)
		}
		if unsent < 90 {
			t.Errorf("%d calls were not sent", unsent)
		}
		began = time.Now()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		_ = p.conn.Close()
	})
}

// TestBlockedServerAndNoDeadline: what callers without a deadline send to a
// server that stops reading does not wait for ever either.
func TestBlockedServerAndNoDeadline_R18_S168(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p := connect(t, transport.DialOptions{MaxCall: time.Minute},
			transport.LineOptions{MaxQueue: 100 << 10, MaxWait: time.Minute})
		large := toolCall(legacyMeta("a"))
		large.Params = jsonrpc.Trusted([]byte(`{"name":"` + strings.Repeat("x", 64<<10) + `"}`))
		began := time.Now()
		var calls []*call
		for range 10 {
			calls = append(calls, start(t, conn, large, mcp.NoCaller{}))
		}
		synctest.Wait()
		if err := conn.Notify(t.Context(), mcp.NotificationRootsListChanged, &large.Params); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a notification: %v", err)
		}
		unsent := 0
		for _, c := range calls {
			<-c.done
			e, ok := errors.AsType[*mcp.CallError](c.err)
			if !ok || e.Kind != mcp.TimedOut {
				t.Fatalf("failed with %v", c.err)
			}
			if e.Outcome == mcp.NotSent {
				unsent++
			}
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the calls took %v", took)
		}
		if unsent < 5 || unsent == len(calls) {
			t.Errorf("%d calls were not sent", unsent)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		_ = p.conn.Close()
	})
}

func TestCloseFailsCalls_S152_S155(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
	c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
	p.expect(mcp.MethodCallTool)
	for range 2 {
		go func() { _ = conn.Close() }()
	}
	if e := c.failure(t); e.Kind != mcp.ConnectionLost || e.Outcome != mcp.MaybeExecuted || !errors.Is(e, mcp.ErrClosed) {
		t.Errorf("failed with %v", e)
	}
	receive(t, "Done", conn.Done())
	if err := conn.Err(); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("Err: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func TestRepliesOutOfOrder_S134(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
	var calls []*call
	var requests []*jsonrpc.Message
	for range 50 {
		calls = append(calls, start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{}))
		requests = append(requests, p.expect(mcp.MethodCallTool))
	}
	for i := range requests {
		m := requests[len(requests)-1-i]
		p.answer(m, fmt.Sprintf(`{"of":%s}`, m.ID))
	}
	for i, c := range calls {
		if got, err := c.wait(t); got != fmt.Sprintf(`{"of":%s}`, requests[i].ID) || err != nil {
			t.Errorf("got %s, %v", got, err)
		}
	}
}

// TestHandlerThatCallsBack_B043: whoever is told of a change asks the server at
// once, while the call that the change came with is still open.
func TestHandlerThatCallsBack_B043(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
	lists := make(chan error, 1)
	listener := newListener()
	var refreshes atomic.Int32
	caller := callback(func(ctx context.Context, n *mcp.Notification) error {
		if n.Method == mcp.NotificationToolsListChanged {
			refreshes.Add(1)
			_, err := conn.Handle(ctx, &mcp.Request{Method: mcp.MethodListTools, Meta: legacyMeta("a")}, mcp.NoCaller{})
			select {
			case lists <- err:
			default:
			}
			return err
		}
		return listener.Notify(ctx, n)
	})
	start(t, conn, &mcp.Request{Method: mcp.MethodListen, Params: mcp.Filter{ToolsListChanged: true}.Params(), Meta: legacyMeta("a")}, caller)
	receive(t, "the acknowledgement", listener.got)
	c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
	m := p.expect(mcp.MethodCallTool)
	changed := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	p.say(changed)
	list := p.expect(mcp.MethodListTools)
	for range 999 {
		p.say(changed) // R37
	}
	p.answer(list, `{"tools":[]}`)
	if err := receive(t, "the list", lists); err != nil {
		t.Fatal(err)
	}
	p.answer(p.expect(mcp.MethodListTools), `{"tools":[]}`)
	p.answer(m, `{}`)
	if got, err := c.wait(t); got != `{}` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if n := refreshes.Load(); n > 3 {
		t.Errorf("a thousand changes made %d refreshes", n)
	}
}

// A callback is a caller that is a function.
type callback func(ctx context.Context, n *mcp.Notification) error

func (f callback) Notify(ctx context.Context, n *mcp.Notification) error { return f(ctx, n) }

func (callback) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}

func withToken(req *mcp.Request, token string) *mcp.Request {
	req.Meta.ProgressToken, _ = jsonrpc.RawID([]byte(token))
	meta := req.Params.Get("_meta")
	meta = jsonrpc.Edited(&meta, jsonrpc.Edit{Name: "progressToken", Value: []byte(token)})
	req.Params = jsonrpc.Edited(&req.Params, jsonrpc.Edit{Name: "_meta", Value: meta.Raw()})
	return req
}

// TestProgressTokens_B139: the tokens of several clients never meet.
func TestProgressTokens_B139(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			conn, p := connect(t, transport.DialOptions{Era: era}, transport.LineOptions{})
			meta := legacyMeta
			if era == mcp.Modern {
				meta = modernMeta
			}
			tokens := []string{`1`, `"1"`, `"tok-é"`, `9007199254740993`, ""}
			var calls []*call
			var listeners []*listener
			var sent []jsonrpc.ID
			for i, token := range tokens {
				l := newListener()
				listeners = append(listeners, l)
				req := toolCall(meta(fmt.Sprint(i)))
				if token != "" {
					req = withToken(req, token)
				}
				calls = append(calls, start(t, conn, req, l))
				m := p.expect(mcp.MethodCallTool)
				upstream := mcp.ReadProgressToken(&m.Meta)
				if upstream.IsZero() != (token == "") {
					t.Fatalf("token %s went out as %s", token, upstream)
				}
				sent = append(sent, m.ID)
				if token != "" && upstream.Key() != m.ID.Key() {
					t.Errorf("token %s went out as %s for id %s", token, upstream, m.ID)
				}
			}
			for i, id := range sent {
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d.0}}`, id, i))
			}
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"unknown","progress":1}}`)
			for i, id := range sent {
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id))
				// Late ones are nobody's.
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":9}}`, id))
				if _, err := calls[i].wait(t); err != nil {
					t.Error(err)
				}
			}
			for i, l := range listeners {
				want := fmt.Sprintf(`notifications/progress {"progressToken":%s,"progress":%d.0}`, tokens[i], i)
				got := l.told()
				if tokens[i] == "" {
					want = ""
				}
				if strings.Join(got, "\n") != want {
					t.Errorf("client %d heard %q", i, got)
				}
			}
		})
	}
}

func TestMalformedProgress_B140(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
	l := newListener()
	c := start(t, conn, withToken(toolCall(legacyMeta("a")), `"t"`), l)
	m := p.expect(mcp.MethodCallTool)
	for _, progress := range []string{"1", "1", "0.5", "null", "1e9", `"x"`} {
		p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s}}`, m.ID, progress))
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{},"progress":1}}`)
	p.answer(m, `{}`)
	if got, err := c.wait(t); got != `{}` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if n := len(l.told()); n != 6 {
		t.Errorf("%d came", n)
	}
}

// TestProgressFloodDelaysNothing_B140: a caller that takes nothing delays itself
// alone, and loses the oldest progress.
func TestProgressFloodDelaysNothing_B140_S170(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
	release := make(chan struct{})
	var heard atomic.Int32
	slow := start(t, conn, withToken(toolCall(legacyMeta("a")), `1`), callback(func(context.Context, *mcp.Notification) error {
		<-release
		heard.Add(1)
		return nil
	}))
	m := p.expect(mcp.MethodCallTool)
	other := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
	second := p.expect(mcp.MethodCallTool)
	line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`+"\n", m.ID)
	for range 100 {
		p.write(strings.Repeat(line, 100))
	}
	p.answer(second, `{}`)
	if _, err := other.wait(t); err != nil {
		t.Error(err)
	}
	p.answer(m, `{}`)
	close(release)
	if _, err := slow.wait(t); err != nil {
		t.Error(err)
	}
	if conn.Dropped() == 0 || int64(heard.Load())+conn.Dropped() != 10_000 {
		t.Errorf("%d heard, %d dropped", heard.Load(), conn.Dropped())
	}
}

func TestMaxCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p := connect(t, transport.DialOptions{MaxCall: time.Minute}, transport.LineOptions{})
		began := time.Now()
		c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		p.expect(mcp.MethodCallTool)
		listener := newListener()
		listen := start(t, conn, &mcp.Request{Method: mcp.MethodListen, Params: mcp.Filter{ToolsListChanged: true}.Params(), Meta: legacyMeta("a")}, listener)
		<-listener.got
		p.patience = time.Hour
		go p.drain() // of the cancellation
		<-c.done
		if e := c.failure(t); e.Kind != mcp.TimedOut || time.Since(began) != time.Minute {
			t.Errorf("failed with %v after %v", e, time.Since(began))
		}
		time.Sleep(24 * time.Hour)
		select {
		case <-listen.done:
			t.Errorf("the listen call has ended: %v", listen.err)
		default:
		}
	})
}

// TestCloseDuringCalls_B058 races them.
func TestCloseDuringCalls_B058_P1(t *testing.T) {
	for range 50 {
		conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
		go p.drain()
		var calls []*call
		for range 8 {
			calls = append(calls, start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{}))
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		for _, c := range calls {
			if e := c.failure(t); e.Kind != mcp.ConnectionLost {
				t.Errorf("failed with %v", e)
			}
		}
	}
}

// TestWhyAServerEndedIsTold: it takes no more before the end of its output is read,
// which tells why.
func TestWhyAServerEndedIsTold_D18(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.NoEra} {
		output, exit := io.Pipe()
		input, gone, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = input.Close()
		time.AfterFunc(50*time.Millisecond, func() { _ = exit.Close() })
		exited := errors.New("exit status 3")
		link := transport.NewLineLink(output, gone, func() error { return errors.Join(output.Close(), gone.Close()) }, transport.LineOptions{
			Explain: func(error) error { return exited },
		})
		_, err = transport.Dial(t.Context(), link, transport.DialOptions{Era: era})
		if !errors.Is(err, exited) || mcp.OutcomeOf(err) != mcp.NotSent {
			t.Errorf("%v: got %v", era, err)
		}
		if era == mcp.NoEra && !errors.Is(err, transport.ErrProbeEnded) {
			t.Errorf("it is not said that the probe was not survived: %v", err)
		}
	}
}
