//go:build unix

package stdio_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// ends takes three calls, says why, and ends in the way that its first argument
// says.
var ends = newMode("ends", func(c *child) int {
	c.handshake()
	for range 3 {
		c.expect(mcp.MethodCallTool)
	}
	fmt.Fprintln(os.Stderr, "FATAL: missing API key")
	switch c.args[0] {
	case "with a grandchild":
		heir := exec.Command("sleep", "1000")
		heir.Stdout, heir.Stderr = os.Stdout, os.Stderr
		if err := heir.Start(); err != nil {
			c.fail("%v", err)
		}
	case "by a signal":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		forever()
	case "closing stdout":
		_ = os.Stdout.Close()
		c.untilEOF()
		return 4
	case "closing stdout, stubbornly":
		ignoreSignals()
		_ = os.Stdout.Close()
		forever()
	case "closing stdin":
		_ = os.Stdin.Close()
		c.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
		forever()
	}
	return 2
})

// threeCalls starts a server that takes three calls and then ends.
func threeCalls(t *testing.T, how string) (c *stdio.Conn, calls []*pending) {
	t.Helper()
	c = dial(t, ends.command(how), impatient())
	for range 3 {
		calls = append(calls, start(t, c, toolCall("x", "{}"), mcp.NoCaller{}))
	}
	return c, calls
}

func TestDeathOfTheServerEndsItsCalls(t *testing.T) {
	for _, tt := range []struct {
		name, how string
		parts     []string
	}{
		{"B052 D2.43 it exits", "", []string{"exit status 2", "FATAL: missing API key"}},
		{"B052 D1.6 it exits and leaves a grandchild with its stdout", "with a grandchild", []string{"exit status 2", "FATAL: missing API key"}},
		{"B052 D1.8 it is killed", "by a signal", []string{"signal: killed", "FATAL: missing API key"}},
		{"B053 it closes stdout and lives", "closing stdout", []string{"closed its output"}},
		{"B053 D1.7 it closes stdout and ignores what it is told", "closing stdout, stubbornly", []string{"closed its output"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, calls := threeCalls(t, tt.how)
			began := time.Now()
			for _, p := range calls {
				_, err := p.wait(t)
				wantFailure(t, err, mcp.ConnectionLost, mcp.MaybeExecuted)
				mention(t, err.Error(), tt.parts...)
				if took := p.ended.Sub(began); took > promptly {
					t.Errorf("a call ended after %v", took)
				}
			}
			receive(t, "the end of the connection", c.Done())
			mention(t, c.Err().Error(), tt.parts...)
			// S1.56: without Close.
			receive(t, "the end of the child", c.Gone())
			if running(c.PID()) {
				t.Errorf("D1.7: process %d is still running", c.PID())
			}
			began = time.Now()
			_, err := call(t, c, "x", "{}")
			wantFailure(t, err, mcp.ConnectionLost, mcp.NotSent)
			mention(t, err.Error(), tt.parts...)
			if took := time.Since(began); took > promptly {
				t.Errorf("a later call ended after %v", took)
			}
		})
	}
}

func TestD244ServerThatClosesStdin(t *testing.T) {
	c, calls := threeCalls(t, "closing stdin")
	// It shows with a write at the latest.
	eventually(t, "the end of the connection", func() bool {
		select {
		case <-c.Done():
			return true
		default:
			p := startWithin(t, 50*time.Millisecond, c, toolCall("x", "{}"), mcp.NoCaller{})
			_, err := p.wait(t)
			failure(t, err)
			return false
		}
	})
	for _, p := range calls {
		_, err := p.wait(t)
		wantFailure(t, err, mcp.ConnectionLost, mcp.MaybeExecuted)
	}
	mention(t, c.Err().Error(), "takes no more messages")
}

// crashes answers the handshake and crashes at the first call.
var crashes = newMode("crashes", func(c *child) int {
	c.handshake()
	for m := c.next(); m != nil; m = c.next() {
		if m.Kind == jsonrpc.Request {
			var nothing *child
			nothing.args[0] = "" // a trace of some KiB
		}
	}
	return 0
})

func TestD18TraceOfACrashIsInTheError(t *testing.T) {
	c := dial(t, crashes.command(), legacy())
	_, err := call(t, c, "x", "{}")
	if exit := exitOf(t, err); exit.Status.Code != 2 {
		t.Errorf("got %v", exit.Status)
	}
	mention(t, c.Stderr(), "nil pointer dereference", "goroutine 1")
	if len(err.Error()) > 2048 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestB052DeathOfAServerHarmsNoOther(t *testing.T) {
	other := dial(t, scripted.command(), legacy())
	c, err := another(t, crashes.command(), legacy())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, c, "x", "{}"); err == nil {
		t.Error("a crash went unnoticed")
	}
	succeed(t, other, "x", "{}")
}
