//go:build unix

package stdio_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT) }

// leaving ends in the way that its first argument says, and writes the file that
// the second names if it had the time.
var leaving = newMode("leaving", func(c *child) int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	c.handshake()
	switch c.args[0] {
	case "on EOF":
		c.untilEOF()
		<-time.After(300 * time.Millisecond)
	case "on SIGTERM":
		<-term
	case "never":
		ignoreSignals()
		forever()
	}
	if err := os.WriteFile(c.args[1], []byte("saved"), 0o600); err != nil {
		return 1
	}
	return 0
})

func TestB046StepsOfTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name, how string
		wait      time.Duration // ExitWait
		bound     time.Duration
		saves     bool
	}{
		{"B046 it leaves on EOF and saves its work", "on EOF", patience, patience, true},
		{"B046 it ignores EOF and obeys SIGTERM", "on SIGTERM", 500 * time.Millisecond, patience, true},
		{"B046 it ignores both", "never", 50 * time.Millisecond, promptly + 100*time.Millisecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			saved := filepath.Join(t.TempDir(), "saved")
			o := legacy()
			o.ExitWait = tt.wait
			c := dial(t, leaving.command(tt.how, saved), o)
			began := time.Now()
			end(t, c)
			if took := time.Since(began); took > tt.bound {
				t.Errorf("closing took %v", took)
			}
			if _, err := os.Stat(saved); (err == nil) != tt.saves {
				t.Errorf("saved: %v", err)
			}
		})
	}
}

func TestCloseOfAChildThatHasExited(t *testing.T) {
	c := dial(t, crashes.command(), legacy())
	if _, err := call(t, c, "x", "{}"); err == nil {
		t.Fatal("a crash went unnoticed")
	}
	receive(t, "the end of the child", c.Gone())
	began := time.Now()
	end(t, c)
	if took := time.Since(began); took > promptly {
		t.Errorf("B046: closing took %v", took)
	}
}

func TestCloseMoreThanOnceAndConcurrently(t *testing.T) {
	c := dial(t, scripted.command(), legacy())
	var closing sync.WaitGroup
	for range 8 {
		closing.Go(func() { end(t, c) })
	}
	closing.Wait()
	end(t, c)
	_, err := call(t, c, "x", "{}")
	wantFailure(t, err, mcp.ConnectionLost, mcp.NotSent)
}

// wrapper is what npx is: the real server is its child, and has its streams. Told
// to be stubborn, that one ignores EOF and signals.
var wrapper = newMode("wrapper", func(c *child) int {
	exe, err := os.Executable()
	if err != nil {
		c.fail("%v", err)
	}
	server := exec.Command(exe, c.args...)
	server.Env = append(os.Environ(), modeVar+"=wrapped")
	server.Stdin, server.Stdout, server.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := server.Start(); err != nil {
		c.fail("%v", err)
	}
	if err := server.Wait(); err != nil {
		return 1
	}
	return 0
})

// wrapped tells its process id.
var _ = newMode("wrapped", func(c *child) int {
	stubborn := c.args[0] == "stubborn"
	if stubborn {
		ignoreSignals()
	}
	c.handshake()
	for m := c.next(); m != nil; m = c.next() {
		c.answer(m, fmt.Sprintf(`{"pid":%d}`, os.Getpid()))
	}
	if stubborn {
		forever()
	}
	return 0
})

// grandchildOf returns the process id of the server that a wrapper has started.
func grandchildOf(t *testing.T, h mcp.Handler) int {
	t.Helper()
	got := succeed(t, h, "pid", "{}")
	pid, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(got, `{"pid":`), "}"))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestCloseEndsTheWholeGroup(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		opts *stdio.DialOptions
	}{
		{"B046 a grandchild that leaves on EOF", []string{"polite"}, legacy()},
		{"D1.6 a stubborn grandchild that holds stdout", []string{"stubborn"}, impatient()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, wrapper.command(tt.args...), tt.opts)
			grandchild := grandchildOf(t, c)
			began := time.Now()
			end(t, c)
			if took := time.Since(began); took > 2*tt.opts.ExitWait+promptly {
				t.Errorf("closing took %v", took)
			}
			if running(grandchild) {
				t.Errorf("grandchild %d is still running", grandchild)
			}
		})
	}
}

func TestD16CloseWithCallsInFlight(t *testing.T) {
	o := legacy()
	o.ExitWait = 700 * time.Millisecond
	c := dial(t, silentLater.command(), o)
	var calls []*pending
	for range 5 {
		calls = append(calls, start(t, c, toolCall("x", "{}"), mcp.NoCaller{}))
	}
	eventually(t, "calls", func() bool { return strings.Count(c.Stderr(), "\n") == len(calls) })
	began := time.Now()
	var closing sync.WaitGroup
	defer closing.Wait()
	closing.Go(func() { end(t, c) })
	for _, p := range calls {
		_, err := p.wait(t)
		wantFailure(t, err, mcp.ConnectionLost, mcp.MaybeExecuted)
		if !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("S1.52: got %v", err)
		}
		// They do not wait for a child that takes its time.
		if took := p.ended.Sub(began); took > promptly {
			t.Errorf("a call ended after %v", took)
		}
	}
}

// silentLater answers the handshake, and then nothing; nor does it exit. It writes
// a line to stderr for each message.
var silentLater = newMode("silent later", func(c *child) int {
	ignoreSignals()
	c.handshake()
	for c.next() != nil {
		fmt.Fprintln(os.Stderr, "not now")
	}
	forever()
	return 0
})

// middle dials a wrapper, tells the process ids that it has started, and waits for
// its end.
var middle = newMode("middle", func(c *child) int {
	conn, err := stdio.Dial(context.Background(), wrapper.command(c.args...), legacy())
	if err != nil {
		c.fail("%v", err)
	}
	result, err := conn.Handle(context.Background(), toolCall("pid", "{}"), mcp.NoCaller{})
	if err != nil {
		c.fail("%v", err)
	}
	pid, _ := result.Lookup("pid")
	c.say(fmt.Sprintf("%d %s", conn.PID(), pid))
	forever()
	return 0
})

func TestP1KillOfThisProcessEndsItsChildren(t *testing.T) {
	for _, how := range []string{"polite", "stubborn"} {
		t.Run("P1 with a grandchild that is "+how, func(t *testing.T) {
			nothingLeft(t)
			us := middle.command(how)
			cmd := exec.Command(us.Path, us.Args...)
			cmd.Env = append(os.Environ(), modeVar+"="+string(middle))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var child, grandchild int
			if _, err := fmt.Fscan(bufio.NewReader(out), &child, &grandchild); err != nil {
				t.Error(err)
			}
			eventually(t, "a guardian", func() bool { return guardianOf(cmd.Process.Pid) != 0 || noGuardian })
			guardian := guardianOf(cmd.Process.Pid)
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // signal: killed
			eventually(t, "the end of all", func() bool {
				return !running(child) && !running(grandchild) && (guardian == 0 || !running(guardian))
			})
		})
	}
}
