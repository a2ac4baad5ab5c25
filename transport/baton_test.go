package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// grace is how late things may come while callers read for themselves: two ticks.
const grace = 2 * time.Millisecond

// An interruptible is a connection on which callers may read for themselves. It
// counts who has read.
type interruptible struct {
	net.Conn
	byCallers, byLoop atomic.Int32
	closing           time.Duration // how long Close takes

	mu          sync.Mutex
	interrupted bool // guarded by mu
}

func (c *interruptible) Read(p []byte) (int, error) {
	stack := make([]byte, 16<<10)
	if stack = stack[:runtime.Stack(stack, false)]; strings.Contains(string(stack), "WaitReading") {
		c.byCallers.Add(1)
	} else {
		c.byLoop.Add(1)
	}
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = jsonrpc.ErrInterrupted
	}
	return n, err
}

// Close implements net.Conn.
func (c *interruptible) Close() error {
	<-time.After(c.closing)
	return c.Conn.Close()
}

func (c *interruptible) Interrupt() { c.set(true, time.Unix(1, 0)) }
func (c *interruptible) Resume()    { c.set(false, time.Time{}) }

func (c *interruptible) set(interrupted bool, deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interrupted != interrupted {
		c.interrupted = interrupted
		_ = c.SetReadDeadline(deadline)
	}
}

// connectQuick returns a connection whose callers read for themselves now, and the
// server. It is for synctest bubbles.
func connectQuick(t *testing.T, era mcp.Era) (*transport.Conn, *peer, *interruptible) {
	t.Helper()
	conn, p, r := connectInterruptible(t, era)
	for range 20 {
		quickCall(t, conn, p)
		synctest.Wait() // a read loop that is late would see the next call beside this one
	}
	if r.byCallers.Load() == 0 {
		t.Fatal("no caller has read for itself")
	}
	return conn, p, r
}

func connectInterruptible(t *testing.T, era mcp.Era) (*transport.Conn, *peer, *interruptible) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	r := &interruptible{Conn: ours}
	link := transport.NewLineLink(r, ours, r.Close, transport.LineOptions{})
	p := &peer{t: t, conn: theirs, lines: jsonrpc.NewLineReader(theirs, 64<<20), patience: patience}
	done := make(chan dialed, 1)
	go func() {
		conn, err := transport.Dial(t.Context(), link, transport.DialOptions{Era: era})
		done <- dialed{conn, err}
	}()
	if era == mcp.Modern {
		p.answer(p.expect(mcp.MethodDiscover), discovered)
	} else {
		p.handshake(mcp.Revision20250618)
	}
	d := <-done
	if d.err != nil {
		t.Fatal(d.err)
	}
	t.Cleanup(func() {
		if err := d.conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.conn, p, r
}

func quickCall(t *testing.T, conn *transport.Conn, p *peer) {
	t.Helper()
	c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
	p.answer(p.expect(mcp.MethodCallTool), `{"a":1}`)
	if got, err := c.wait(t); got != `{"a":1}` || err != nil {
		t.Fatalf("got %s, %v", got, err)
	}
}

func TestCallersReadForThemselvesWhileCallsAreQuick(t *testing.T) {
	for _, tt := range []struct {
		name          string
		pause         time.Duration // between the calls
		least, atMost int32         // reads by callers
	}{
		{"one after the other", 0, 40, 60},
		{"now and then", 10 * time.Millisecond, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, p, r := connectInterruptible(t, mcp.Legacy)
				for range 50 {
					quickCall(t, conn, p)
					synctest.Wait()
					time.Sleep(tt.pause)
				}
				if n := r.byCallers.Load(); n < tt.least || n > tt.atMost {
					t.Errorf("callers have read %d times, the loop %d times", n, r.byLoop.Load())
				}
			})
		})
	}
}

// TestSlowCallIsReadFor: its caller waits like any other after two ticks, and those
// after it do until calls have been quick for a while.
func TestSlowCallIsReadFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p, r := connectQuick(t, mcp.Legacy)
		c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		m := p.expect(mcp.MethodCallTool)
		time.Sleep(10 * time.Millisecond)
		before := r.byCallers.Load()
		p.answer(m, `{"b":1}`)
		if got, err := c.wait(t); got != `{"b":1}` || err != nil {
			t.Errorf("got %s, %v", got, err)
		}
		quickCall(t, conn, p)
		if after := r.byCallers.Load(); after != before {
			t.Errorf("callers have read %d times", after-before)
		}
	})
}

func TestNotificationWhileNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p, _ := connectInterruptible(t, mcp.Modern)
		l := newListener()
		listen := &mcp.Request{
			Method: mcp.MethodListen, Meta: modernMeta("a"),
			Params: jsonrpc.Trusted([]byte(`{"notifications":{"toolsListChanged":true}}`)),
		}
		start(t, conn, listen, l)
		id := p.expect(mcp.MethodListen).ID.String()
		p.say(ackLine(id, `{"toolsListChanged":true}`))
		receive(t, "the acknowledgement", l.got)
		for range 20 {
			c := start(t, conn, toolCall(modernMeta("a")), mcp.NoCaller{})
			p.answer(p.expect(mcp.MethodCallTool), `{"a":1}`)
			if _, err := c.wait(t); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			began := time.Now()
			p.say(changeLine("tools", id))
			receive(t, "the change", l.got)
			if took := time.Since(began); took > grace {
				t.Errorf("the change took %v", took)
			}
		}
	})
}

func TestCallIsCancelledWhileItReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p, r := connectQuick(t, mcp.Legacy)
		before := r.byCallers.Load()
		c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		m := p.expect(mcp.MethodCallTool)
		synctest.Wait()
		if r.byCallers.Load() == before {
			t.Fatal("the caller does not read")
		}
		// A part of a line that the caller has read is not lost.
		half := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":`, m.ID)
		p.write(half)
		began := time.Now()
		why := errors.New("why")
		c.cancel(why)
		cancelled := p.expect(mcp.NotificationCancelled)
		if e := c.failure(t); e.Kind != mcp.Cancelled || !errors.Is(e, why) {
			t.Errorf("failed with %v", e)
		}
		if took := time.Since(began); took > grace {
			t.Errorf("it took %v", took)
		}
		if id, _ := cancelled.Body.Lookup("requestId"); string(id) != m.ID.String() {
			t.Errorf("cancelled %s", cancelled.Body.Raw())
		}
		p.write("{}}\n")
		for range 20 {
			quickCall(t, conn, p)
		}
		if n := conn.Noise(); n != 0 {
			t.Errorf("%d messages were passed over", n)
		}
	})
}

// TestCallThatReadsHasItsDeadline: an end of the context that comes while others'
// messages are being read counts as well.
func TestCallThatReadsHasItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p, _ := connectQuick(t, mcp.Legacy)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Microsecond)
		defer cancel()
		began := time.Now()
		c := startWith(ctx, t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		p.expect(mcp.MethodCallTool)
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Microsecond):
					p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
				}
			}
		}()
		p.expect(mcp.NotificationCancelled)
		if e := c.failure(t); e.Kind != mcp.TimedOut {
			t.Errorf("failed with %v", e)
		}
		if took := time.Since(began); took > grace {
			t.Errorf("it took %v", took)
		}
		close(stop)
		<-ended
	})
}

// TestWhatComesForACallThatReads: its caller may take its time with that, and ask
// the server something, while others are read for.
func TestWhatComesForACallThatReads(t *testing.T) {
	for _, tt := range []struct {
		name, message string
	}{
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`},
		{"a question", `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, p, _ := connectQuick(t, mcp.Legacy)
				asks := &backAsker{conn: conn, got: make(chan string, 10)}
				c := start(t, conn, toolCall(mcp.Metadata{
					Revision: mcp.Revision20250618, Session: "a", Capabilities: []byte(`{"elicitation":{}}`),
				}), asks)
				m := p.expect(mcp.MethodCallTool)
				p.say(tt.message)
				p.answer(p.expect("back"), `{"d":1}`)
				if got := receive(t, "the answer to the caller", asks.got); got != `{"d":1}` {
					t.Errorf("the caller got %s", got)
				}
				go p.drain()
				p.answer(m, `{"c":1}`)
				if got, err := c.wait(t); got != `{"c":1}` || err != nil {
					t.Errorf("got %s, %v", got, err)
				}
			})
		})
	}
}

// A backAsker makes a call of its own whenever it is told or asked something.
type backAsker struct {
	conn *transport.Conn
	got  chan string
}

func (a *backAsker) Notify(ctx context.Context, _ *mcp.Notification) error {
	result, err := a.conn.Handle(ctx, &mcp.Request{Method: "back", Meta: legacyMeta("a")}, mcp.NoCaller{})
	a.got <- string(result.Raw())
	return err
}

func (a *backAsker) Ask(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, a.Notify(ctx, nil)
}

func TestTwoCallsWhileOneReads(t *testing.T) {
	for _, firstFirst := range []bool{true, false} {
		t.Run(fmt.Sprint(firstFirst), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, p, _ := connectQuick(t, mcp.Legacy)
				began := time.Now()
				var calls [2]*call
				var asked [2]*jsonrpc.Message
				for i := range calls {
					calls[i] = start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
					asked[i] = p.expect(mcp.MethodCallTool)
				}
				order := [2]int{0, 1}
				if !firstFirst {
					order = [2]int{1, 0}
				}
				for _, i := range order {
					want := fmt.Sprintf(`{"n":%d}`, i)
					p.answer(asked[i], want)
					if got, err := calls[i].wait(t); got != want || err != nil {
						t.Errorf("call %d got %s, %v", i, got, err)
					}
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("they waited %v for each other", took)
				}
			})
		})
	}
}

func TestCloseWhileACallReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p, r := connectQuick(t, mcp.Legacy)
		before := r.byCallers.Load()
		c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		p.expect(mcp.MethodCallTool)
		synctest.Wait()
		if r.byCallers.Load() == before {
			t.Fatal("the caller does not read")
		}
		began := time.Now()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if e := c.failure(t); e.Kind != mcp.ConnectionLost || !errors.Is(e, mcp.ErrClosed) {
			t.Errorf("failed with %v", e)
		}
		if took := time.Since(began); took > grace {
			t.Errorf("it took %v", took)
		}
	})
}

func TestLinkEndsWhileACallReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p, _ := connectQuick(t, mcp.Legacy)
		c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		p.expect(mcp.MethodCallTool)
		synctest.Wait()
		_ = p.conn.Close()
		if e := c.failure(t); e.Kind != mcp.ConnectionLost || e.Outcome != mcp.MaybeExecuted || !strings.Contains(e.Error(), "closed its output") {
			t.Errorf("failed with %v", e)
		}
		receive(t, "the end", conn.Done())
	})
}

// TestQuickAndSlowCalls mixes them from several goroutines, so that the right to
// read changes hands again and again: each call gets its own answer.
func TestQuickAndSlowCalls(t *testing.T) {
	conn, p, _ := connectInterruptible(t, mcp.Legacy)
	served := make(chan struct{})
	go func() {
		defer close(served)
		serveNumbers(p)
	}()
	var calls sync.WaitGroup
	for g := range 3 {
		calls.Go(func() {
			for i := range 300 {
				callNumber(t, conn, g, i)
			}
		})
	}
	calls.Wait()
	_ = p.conn.Close()
	<-served
}

// callNumber makes a call that is alone at times, slow at times and cancelled at
// times.
func callNumber(t *testing.T, conn *transport.Conn, g, i int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	name := fmt.Sprintf("%d-%d", g, i)
	switch {
	case i%50 == 49:
		name += " never"
		time.AfterFunc(time.Duration(i%7)*500*time.Microsecond, cancel)
	case i%40 == 39:
		name += " slow"
	case g > 0 && i%20 == 0:
		<-time.After(5 * time.Millisecond) // so that the others are alone
	}
	want := `{"name":"` + name + `"}`
	req := &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(want)), Meta: legacyMeta("a")}
	result, err := conn.Handle(ctx, req, mcp.NoCaller{})
	switch {
	case strings.Contains(name, "never"):
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %s, %v", name, result.Raw(), err)
		}
	case err != nil || string(result.Raw()) != want:
		t.Errorf("%s: %s, %v", name, result.Raw(), err)
	}
}

// serveNumbers answers calls with their params until the link ends.
func serveNumbers(p *peer) {
	_ = p.conn.SetDeadline(time.Time{})
	for {
		line, err := p.lines.ReadLine()
		if err != nil {
			return
		}
		var m jsonrpc.Message
		if jsonrpc.Scan(line, &m) != nil || m.Kind != jsonrpc.Request {
			continue
		}
		name, _ := m.Body.LookupString("name")
		if strings.Contains(name, "never") {
			continue
		}
		if strings.Contains(name, "slow") {
			<-time.After(4 * time.Millisecond)
		}
		_, _ = io.WriteString(p.conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, m.Body.Raw()))
	}
}
