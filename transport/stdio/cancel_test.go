//go:build unix

package stdio_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// recording keeps what it is sent in the file that its first argument names. It
// answers all calls but those of the tool "wait".
var recording = newMode("recording", func(c *child) int {
	kept, err := os.Create(c.args[0])
	if err != nil {
		c.fail("%v", err)
	}
	for {
		line, err := c.lines.ReadLine()
		if err != nil {
			return 0
		}
		_, _ = fmt.Fprintf(kept, "%s\n", line)
		var m jsonrpc.Message
		if err := jsonrpc.Scan(line, &m); err != nil {
			c.fail("%v", err)
		}
		name, _ := m.Body.LookupString("name")
		switch {
		case m.Kind != jsonrpc.Request || name == "wait" || len(c.args) > 1:
		case string(m.Method) == mcp.MethodInitialize:
			c.answer(&m, initialized)
		default:
			c.answer(&m, ok)
		}
	}
})

// A record is what a recording server was sent.
type record string

func newRecord(t *testing.T) record { return record(filepath.Join(t.TempDir(), "record")) }

// messages returns those of a method.
func (r record) messages(t *testing.T, method string) []string {
	t.Helper()
	text, err := os.ReadFile(string(r))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"method":"`+method+`"`) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// await waits until the server has got n messages of a method.
func (r record) await(t *testing.T, method string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d messages %s", n, method), func() bool { return len(r.messages(t, method)) >= n })
}

func TestB136AbandonedCallsAreCancelledOnTheWire(t *testing.T) {
	own := errors.New("the user changed her mind")
	for _, tt := range []struct {
		name    string
		give    func(t *testing.T) (ctx context.Context, end func()) // once the call is there
		kind    mcp.FailureKind
		outcome mcp.Outcome
		is      error
		wants   int // notifications
	}{
		{"B136 S1.60 cancelled", func(t *testing.T) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(t.Context())
			return ctx, func() { cancel(own) }
		}, mcp.Cancelled, mcp.MaybeExecuted, own, 1},
		{"B136 S1.57 timed out", faulttest.Expiring, mcp.TimedOut, mcp.MaybeExecuted, context.DeadlineExceeded, 1},
		{"S1.58 cancelled before", func(t *testing.T) (context.Context, func()) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx, cancel
		}, mcp.Cancelled, mcp.NotSent, context.Canceled, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRecord(t)
			c := dial(t, recording.command(string(r)), legacy())
			ctx, over := tt.give(t)
			failed := make(chan error, 1)
			go func() {
				_, err := c.Handle(ctx, toolCall("wait", "{}"), mcp.NoCaller{})
				failed <- err
			}()
			r.await(t, mcp.MethodCallTool, tt.wants)
			over()
			err := receive(t, "the failure", failed)
			wantFailure(t, err, tt.kind, tt.outcome)
			if !errors.Is(err, tt.is) {
				t.Errorf("got %v", err)
			}
			succeed(t, c, "next", "{}")
			r.await(t, mcp.NotificationCancelled, tt.wants)
			end(t, c)
			got := r.messages(t, mcp.NotificationCancelled)
			if len(got) != tt.wants {
				t.Fatalf("the server got %q", got)
			}
			for _, line := range got {
				// initialize has the id 1.
				mention(t, line, `"requestId":2,`, `"reason":"`+string(tt.kind)+`"`)
			}
			if n := len(r.messages(t, mcp.MethodCallTool)); n != tt.wants+1 {
				t.Errorf("the server got %d calls", n)
			}
		})
	}
}

func TestB136MaxCallCancels(t *testing.T) {
	r := newRecord(t)
	o := legacy()
	o.MaxCall = time.Second // initialize is bounded by it as well
	c := dial(t, recording.command(string(r)), o)
	_, err := call(t, c, "wait", "{}")
	wantFailure(t, err, mcp.TimedOut, mcp.MaybeExecuted)
	r.await(t, mcp.NotificationCancelled, 1)
	end(t, c)
	if got := r.messages(t, mcp.NotificationCancelled); len(got) != 1 {
		t.Errorf("the server got %q", got)
	}
}

func TestB136AnsweredCallIsNotCancelled(t *testing.T) {
	r := newRecord(t)
	c := dial(t, recording.command(string(r)), legacy())
	p := start(t, c, toolCall("x", "{}"), mcp.NoCaller{})
	if _, err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	p.cancel()
	succeed(t, c, "next", "{}")
	end(t, c)
	if got := r.messages(t, mcp.NotificationCancelled); len(got) > 0 {
		t.Errorf("the server got %q", got)
	}
}

func TestB136InitializeIsNotCancelled(t *testing.T) {
	r := newRecord(t)
	o := legacy()
	o.StartTimeout = 200 * time.Millisecond
	_, err := tryDial(t, recording.command(string(r), "answers nothing"), o)
	if !errors.Is(err, context.DeadlineExceeded) && err == nil {
		t.Fatal("the server started")
	}
	if got := r.messages(t, mcp.NotificationCancelled); len(got) > 0 {
		t.Errorf("the server got %q", got)
	}
	if got := r.messages(t, mcp.MethodInitialize); len(got) != 1 {
		t.Errorf("the server got %q", got)
	}
}

func TestB136CancelledCallsAreAllTold(t *testing.T) {
	r := newRecord(t)
	c := dial(t, recording.command(string(r)), legacy())
	const n = 200
	var calls []*pending
	for range n {
		calls = append(calls, start(t, c, toolCall("wait", "{}"), mcp.NoCaller{}))
	}
	r.await(t, mcp.MethodCallTool, n)
	for _, p := range calls {
		p.cancel()
	}
	for _, p := range calls {
		_, err := p.wait(t)
		wantFailure(t, err, mcp.Cancelled, mcp.MaybeExecuted)
	}
	r.await(t, mcp.NotificationCancelled, n) // R36
	end(t, c)
	told := make(map[string]int)
	for _, line := range r.messages(t, mcp.NotificationCancelled) {
		told[line]++
	}
	for line, times := range told {
		if times != 1 {
			t.Errorf("the server got %s %d times", line, times)
		}
	}
	if len(told) != n {
		t.Errorf("the server was told of %d calls of %d", len(told), n)
	}
}

func TestB136CancellingDoesNotWaitForAFullPipe(t *testing.T) {
	c := dial(t, neverReads.command(), impatient())
	text := `{"text":"` + strings.Repeat("x", 8<<20) + `"}`
	p := start(t, c, toolCall("x", text), mcp.NoCaller{})
	q := start(t, c, toolCall("x", text), mcp.NoCaller{})
	<-time.After(50 * time.Millisecond)
	began := time.Now()
	for _, p := range []*pending{p, q} {
		p.cancel()
		_, err := p.wait(t)
		if e := failure(t, err); e.Kind != mcp.Cancelled {
			t.Errorf("got %v", err)
		}
		if took := p.ended.Sub(began); took > promptly {
			t.Errorf("a cancelled call ended after %v", took)
		}
	}
}

// belated answers a call when it has been cancelled, in all the ways that it must
// not. Two calls in a row are answered twice.
var belated = newMode("belated", func(c *child) int {
	c.handshake()
	first := c.expect(mcp.MethodCallTool)
	c.answer(first, ok)
	second := c.expect(mcp.MethodCallTool)
	c.expect(mcp.NotificationCancelled)
	c.say(`{"jsonrpc":"2.0","id":` + second.ID.String() + `,"error":{"code":0,"message":"Request cancelled"}}`)
	c.answer(second, `{"late":true}`)
	c.answer(first, `{"again":true}`)
	c.say(`{"jsonrpc":"2.0","id":999,"result":{}}`)
	for m := c.next(); m != nil; m = c.next() {
		c.answer(m, ok)
	}
	return 0
})

func TestB137LateAndDuplicateAnswersAreIgnored(t *testing.T) {
	c := dial(t, belated.command(), legacy())
	succeed(t, c, "first", "{}")
	p := startWithin(t, 50*time.Millisecond, c, toolCall("second", "{}"), mcp.NoCaller{})
	_, err := p.wait(t)
	wantFailure(t, err, mcp.TimedOut, mcp.MaybeExecuted)
	for range 3 {
		if got := succeed(t, c, "next", "{}"); got != ok {
			t.Errorf("got %s", got)
		}
	}
	if err := c.Err(); err != nil {
		t.Errorf("the connection has ended: %v", err)
	}
	if c.Noise() != 0 {
		t.Errorf("%d messages count as noise", c.Noise())
	}
}
