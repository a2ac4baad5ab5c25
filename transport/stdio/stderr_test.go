//go:build unix

package stdio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// talkative writes as many KiB as the first argument says to stderr before each
// answer, made of the second.
var talkative = newMode("talkative", func(c *child) int {
	var kib int
	if _, err := fmt.Sscan(c.args[0], &kib); err != nil {
		c.fail("%v", err)
	}
	block := bytes.Repeat([]byte(c.args[1]), 1024)[:1024]
	c.handshake()
	for m := c.next(); m != nil; m = c.next() {
		for range kib {
			if _, err := os.Stderr.Write(block); err != nil {
				c.fail("%v", err)
			}
		}
		c.answer(m, ok)
	}
	return 0
})

// A sink is a writer that a test blocks or breaks.
type sink struct {
	wait <-chan struct{} // nil for not at all
	err  error

	mu      sync.Mutex
	got     int64
	largest int
}

func (s *sink) Write(p []byte) (int, error) {
	if s.wait != nil {
		<-s.wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got += int64(len(p))
	s.largest = max(s.largest, len(p))
	return len(p), s.err
}

func (s *sink) seen() (got int64, largest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got, s.largest
}

func TestB049FloodOfStderrDoesNotStallTheServer(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for _, tt := range []struct {
		name string
		sink io.Writer
	}{
		{"B049 S1.50 nobody reads it", nil},
		{"B049 a sink takes it", &sink{}},
		{"B049 a sink blocks", &sink{wait: release}},
		{"B049 a sink fails", &sink{err: errors.New("disk full")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := legacy()
			o.Stderr = tt.sink
			c := dial(t, talkative.command("256", "some words of a log\n"), o)
			for range 3 {
				succeed(t, c, "x", "{}")
			}
			mention(t, c.Stderr(), "some words of a log\n")
			if n := len(c.Stderr()); n > 64<<10 {
				t.Errorf("%d bytes of stderr are kept", n)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if s, ok := tt.sink.(*sink); ok && s.wait == nil && s.err == nil {
				if got, _ := s.seen(); got == 0 {
					t.Error("the sink got nothing")
				}
			}
		})
	}
}

func TestB050FloodWithoutNewlinesIsBounded(t *testing.T) {
	const mib = 100
	var got sink
	o := legacy()
	o.Stderr = &got
	c := dial(t, talkative.command(fmt.Sprint(mib<<10), "\r50%\xff\x1b[K"), o)
	inUse, had := heap()
	succeed(t, c, "x", "{}")
	nowInUse, has := heap()
	if nowInUse-inUse > 8<<20 || has-had > 32<<20 {
		t.Errorf("the heap has grown by %d bytes, of which %d are in use", has-had, nowInUse-inUse)
	}
	tail := c.Stderr()
	if len(tail) > 64<<10 || !utf8.ValidString(tail) || strings.ContainsAny(tail, "\x1b\r") {
		t.Errorf("stderr ends with %d bytes: %.100q", len(tail), tail)
	}
	mention(t, tail, "50%")
	if _, largest := got.seen(); largest > 8<<10 {
		t.Errorf("a fragment has %d bytes", largest)
	}
	if err := c.Err(); err != nil {
		t.Errorf("stderr alone has ended the connection: %v", err)
	}
}

// heap returns how many bytes of the heap are in use, and how many it has taken
// from the system, which it does not give back.
func heap() (inUse, taken int64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.HeapSys)
}

func TestB050StderrOfAFailedStart(t *testing.T) {
	_, err := tryDial(t, failing.command(), legacy())
	if err == nil {
		t.Fatal("the server started")
	}
	mention(t, err.Error(), "exit status 9", "99%")
	if len(err.Error()) > 2048 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	if exit := exitOf(t, err); len(exit.Stderr) > 64<<10 {
		t.Errorf("the tail has %d bytes", len(exit.Stderr))
	}
}

// failing floods stderr and exits.
var failing = newMode("failing", func(*child) int {
	for range 1000 {
		fmt.Fprint(os.Stderr, strings.Repeat("\r99%", 100))
	}
	return 9
})
