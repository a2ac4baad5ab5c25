package process

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

const (
	fragmentSize  = 8 << 10 // bytes that a sink gets at most in one Write
	fragmentQueue = 64      // fragments that may wait for a sink
	readSize      = 32 << 10
)

// A stderr drains the pipe of a child's stderr: into a ring, and into a queue
// that a second goroutine empties into the sink. The drain itself never waits
// for anybody, so the child never does.
type stderr struct {
	// Set at construction.
	file    *os.File
	sink    io.Writer     // nil for none
	queue   chan []byte   // closed by close
	drained chan struct{} // closed when drain ends
	fed     chan struct{} // closed when feed ends

	dropped atomic.Int64 // Atomic.

	// Guarded by mu, which is held over no I/O that can block.
	mu     sync.Mutex
	buf    []byte // for reads
	ring   ring
	closed bool
}

func newStderr(f *os.File, tail int, sink io.Writer) *stderr {
	switch {
	case tail == 0:
		tail = DefaultStderrTail
	case tail < 0:
		tail = 0
	}
	return &stderr{
		file:    f,
		sink:    sink,
		queue:   make(chan []byte, fragmentQueue),
		drained: make(chan struct{}),
		fed:     make(chan struct{}),
		buf:     make([]byte, readSize),
		ring:    ring{limit: tail},
	}
}

// run starts the goroutines; close waits for them.
func (s *stderr) run() {
	go func() {
		defer close(s.drained)
		s.drain()
	}()
	if s.sink == nil {
		close(s.fed)
		return
	}
	go func() {
		defer close(s.fed)
		s.feed()
	}()
}

// close takes what is still in the pipe, ends the drain, and gives the sink
// until ctx ends to accept what is queued. After that the sink's goroutine is
// left to itself: it ends when the sink returns.
func (s *stderr) close(ctx context.Context) {
	s.catchUp()
	_ = s.file.Close()
	<-s.drained
	s.mu.Lock()
	s.closed = true
	close(s.queue)
	s.mu.Unlock()
	select {
	case <-s.fed:
	case <-ctx.Done():
	}
}

// take puts bytes into the ring and, if there is a sink, into its queue. It
// is called with mu held.
func (s *stderr) take(b []byte) {
	s.ring.write(b)
	if s.sink == nil {
		return
	}
	for len(b) > 0 {
		n := min(len(b), fragmentSize)
		s.offer(b[:n])
		b = b[n:]
	}
}

func (s *stderr) offer(b []byte) {
	if !s.closed && len(s.queue) < cap(s.queue) {
		s.queue <- append([]byte(nil), b...) // never blocks: we are the only sender
		return
	}
	s.dropped.Add(int64(len(b)))
}

func (s *stderr) feed() {
	failed := false
	for b := range s.queue {
		if failed {
			s.dropped.Add(int64(len(b)))
			continue
		}
		n, err := s.sink.Write(b)
		if err != nil {
			failed = true
			s.dropped.Add(int64(max(len(b)-n, 0)))
		}
	}
}

func (s *stderr) text() string {
	s.mu.Lock()
	b := s.ring.bytes()
	s.mu.Unlock()
	return clean(b)
}

// A ring keeps the last limit bytes that were written to it.
type ring struct {
	limit int
	buf   []byte // grows up to limit, then is overwritten from next on
	next  int
	cut   bool // whether something was overwritten
}

func (r *ring) write(b []byte) {
	if len(b) > r.limit {
		r.cut = true
		b = b[len(b)-r.limit:]
	}
	if room := r.limit - len(r.buf); room > 0 {
		n := min(room, len(b))
		r.buf = append(r.buf, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(r.buf[r.next:], b)
		r.next = (r.next + n) % r.limit
		r.cut = true
		b = b[n:]
	}
}

// bytes returns a copy in order, without the rest of a rune whose begin was
// overwritten.
func (r *ring) bytes() []byte {
	b := make([]byte, 0, len(r.buf))
	b = append(append(b, r.buf[r.next:]...), r.buf[:r.next]...)
	if !r.cut {
		return b
	}
	for i := 0; i < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
		b = b[1:]
	}
	return b
}

// clean makes text of what a child wrote: valid UTF-8, line ends as LF, and no
// control character but LF and tab, with ANSI sequences taken out whole.
func clean(b []byte) string {
	var out strings.Builder
	s := strings.ToValidUTF8(string(b), "\ufffd")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == 0x1b:
			size = escapeLen(s)
		case r == '\r':
			out.WriteByte('\n')
		case r == '\n' || r == '\t' || r >= 0x20 && r < 0x7f || r > 0x9f:
			out.WriteRune(r)
		}
		s = s[size:]
	}
	return out.String()
}

// escapeLen returns the length of the escape sequence that s begins with: CSI
// (ESC [ ... final), a string such as OSC (ESC ] ... BEL or ESC \), or a short
// one (ESC, intermediates, final). Of a sequence that does not end before the
// line does only the ESC counts, so that it cannot hide text.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch s[1] {
	case '[':
		return sequenceLen(s, 2, 0x20, 0x3f)
	case ']', 'P', 'X', '^', '_':
		return stringLen(s)
	}
	return sequenceLen(s, 1, 0x20, 0x2f)
}

// sequenceLen skips the bytes within lo and hi from i on and one final byte.
func sequenceLen(s string, i int, lo, hi byte) int {
	for i < len(s) && lo <= s[i] && s[i] <= hi {
		i++
	}
	if i < len(s) && 0x30 <= s[i] && s[i] < 0x7f {
		return i + 1
	}
	return 1
}

func stringLen(s string) int {
	for i := 2; i < len(s) && s[i] != '\n'; i++ {
		if s[i] == 0x07 {
			return i + 1
		}
		if strings.HasPrefix(s[i:], "\x1b\\") {
			return i + 2
		}
	}
	return 1
}
