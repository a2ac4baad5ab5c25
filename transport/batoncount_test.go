package transport_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// TestQuickCallsWaitForNoTick: in a bubble time passes only while everybody waits,
// which must not be while a call is in flight whose answer has been written.
func TestQuickCallsWaitForNoTick(t *testing.T) {
	for _, callers := range []int{1, 2} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, p, _ := connectInterruptible(t, mcp.Legacy)
				served := make(chan struct{})
				go func() {
					defer close(served)
					serveNumbers(p)
				}()
				began := time.Now()
				var calls sync.WaitGroup
				for range callers {
					calls.Go(func() {
						for range 1000 {
							if _, err := conn.Handle(t.Context(), toolCall(legacyMeta("a")), mcp.NoCaller{}); err != nil {
								t.Error(err)
							}
						}
					})
				}
				calls.Wait()
				if took := time.Since(began); took != 0 {
					t.Errorf("calls waited %v in all", took)
				}
				_ = p.conn.Close()
				<-served
			})
		})
	}
}

// TestWhatEndsARowOfQuickCalls: the read loop counts anew, however often it happens.
func TestWhatEndsARowOfQuickCalls(t *testing.T) {
	const between = 3 // quick calls; fewer than callers read for themselves after
	for _, tt := range []struct {
		name string
		ends func(t *testing.T, conn *transport.Conn, p *peer)
	}{
		{"a pause of more than a tick", func(*testing.T, *transport.Conn, *peer) { <-time.After(1100 * time.Microsecond) }},
		{"two calls at once", overlap},
		{"something else that came with the response", func(t *testing.T, conn *transport.Conn, p *peer) {
			c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
			m := p.expect(mcp.MethodCallTool)
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			if _, err := c.wait(t); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, p, r := connectInterruptible(t, mcp.Legacy)
				for range 10 {
					tt.ends(t, conn, p)
					for range between {
						quickCall(t, conn, p)
						synctest.Wait() // until the read loop has laid down what it does
					}
				}
				if n := r.byCallers.Load(); n != 0 {
					t.Errorf("callers have read %d times", n)
				}
			})
		})
	}
}

// overlap makes two calls, the first of which is answered first.
func overlap(t *testing.T, conn *transport.Conn, p *peer) {
	t.Helper()
	var calls [2]*call
	var asked [2]*jsonrpc.Message
	for i := range calls {
		calls[i] = start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		asked[i] = p.expect(mcp.MethodCallTool)
		synctest.Wait()
	}
	for i := range calls {
		p.answer(asked[i], `{}`)
		if _, err := calls[i].wait(t); err != nil {
			t.Error(err)
		}
	}
}

// TestReadLoopCountsAnewWhenItReadsAgain: a call beside one that reads for itself
// gives it back what it had laid down, while calls are as quick as before.
func TestReadLoopCountsAnewWhenItReadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p, r := connectQuick(t, mcp.Legacy)
		overlap(t, conn, p)
		synctest.Wait()
		before := r.byCallers.Load()
		for range 3 {
			quickCall(t, conn, p)
			synctest.Wait()
		}
		if n := r.byCallers.Load() - before; n != 0 {
			t.Errorf("callers have read %d times", n)
		}
	})
}

// TestCloseInterruptsACallThatReads at once, however long the link takes to end.
func TestCloseInterruptsACallThatReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p, r := connectQuick(t, mcp.Legacy)
		r.closing = patience / 2
		before := r.byCallers.Load()
		c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		p.expect(mcp.MethodCallTool)
		synctest.Wait()
		if r.byCallers.Load() == before {
			t.Fatal("the caller does not read")
		}
		began := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- conn.Close() }()
		if e := c.failure(t); e.Kind != mcp.ConnectionLost {
			t.Errorf("failed with %v", e)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		if err := receive(t, "the end", closed); err != nil {
			t.Error(err)
		}
	})
}
