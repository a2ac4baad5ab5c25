//go:build unix

package stdio_test

import (
	"errors"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// quick answers at once, except that it never answers calls of the tool "wait" and
// exits at one of "exit".
var quick = newMode("quick", func(c *child) int {
	c.handshake()
	for m := c.next(); m != nil; m = c.next() {
		name, _ := m.Body.LookupString("name")
		switch {
		case m.Kind != jsonrpc.Request || name == "wait":
		case name == "exit":
			return 3
		default:
			c.answer(m, ok)
		}
	}
	return 0
})

// TestWhatEndsACallThatReads: callers of quick calls read for themselves; a call
// after them ends all the same with its context, with the child, and with Close.
func TestWhatEndsACallThatReads(t *testing.T) {
	c := dial(t, quick.command(), legacy())
	hurry := func() {
		t.Helper()
		for range 50 {
			if got := succeed(t, c, "quick", "{}"); got != ok {
				t.Fatalf("got %s", got)
			}
		}
	}
	for range 3 {
		hurry()
		waits := start(t, c, toolCall("wait", "{}"), mcp.NoCaller{})
		waits.cancel()
		if _, err := waits.wait(t); err == nil {
			t.Error("a call that was cancelled has succeeded")
		}
	}
	hurry()
	_, err := call(t, c, "exit", "{}")
	e, isCall := errors.AsType[*mcp.CallError](err)
	if !isCall || e.Kind != mcp.ConnectionLost || e.Outcome != mcp.MaybeExecuted {
		t.Fatalf("failed with %v", err)
	}
	mention(t, err.Error(), "exit status 3")
}

func TestCloseEndsACallThatReads(t *testing.T) {
	c := dial(t, quick.command(), impatient())
	for range 50 {
		succeed(t, c, "quick", "{}")
	}
	waits := start(t, c, toolCall("wait", "{}"), mcp.NoCaller{})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := waits.wait(t); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("failed with %v", err)
	}
}
