package transport

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// A baton is the right to read from the link of a Conn. It belongs to the read loop,
// which lays it down when calls come one after the other and quickly: then each of
// them reads for itself, which saves waking two goroutines for it.
//
// The read loop looks at the baton at every tick meanwhile. It takes it up again when
// nobody has done so for a whole tick, and takes it away from a caller that has had
// it for that long: so what comes unasked is late by two ticks at most, and a caller
// that reads learns as late of the end of its context.
type baton struct {
	link    Interruptible // nil if reads cannot be interrupted: the read loop keeps the baton
	pending func() int    // calls that wait for a response

	free atomic.Bool // nobody has it, and it may be taken; changed under mu

	mu     sync.Mutex
	caller bool          // a caller has it, guarded by mu, like what follows
	wanted bool          // the read loop has asked the caller for it
	passes uint64        // how often it was taken or passed
	back   chan struct{} // holds a value if the read loop has been given the baton

	broken error // what has ended the link; owned by who has the baton

	quick int       // responses in a row; owned by the read loop, like what follows
	last  time.Time // when one came
}

const (
	batonTick  = time.Millisecond
	quickCalls = 8 // in a row, before callers read for themselves
)

// An Interruptible is what a [Link] reads from if a read can be ended while it waits.
type Interruptible interface {
	// Interrupt has a Read that waits, and later ones, return
	// [jsonrpc.ErrInterrupted] until Resume is called. Nothing is lost.
	Interrupt()
	Resume()
}

func newBaton(link Link, calls *inflight.Calls) *baton {
	b := &baton{pending: calls.Pending, back: make(chan struct{}, 1)}
	if l, ok := link.(*lineLink); ok {
		b.link = l.interruptible
	}
	return b
}

// take gives the baton to a caller, if nobody has it.
func (b *baton) take() bool {
	if !b.free.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.free.Load() {
		return false
	}
	b.free.Store(false)
	b.caller = true
	b.passes++
	return true
}

// pass takes the baton from a caller: to the read loop if that wants it or if there
// are others to read for.
func (b *baton) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caller = false
	b.passes++
	if b.offer() && !b.wanted && b.broken == nil {
		return
	}
	b.free.Store(false)
	b.wanted = false
	b.back <- struct{}{}
}

// offer lays the baton down, and reports whether it may lie there. A call that begins
// at this moment finds it, or is seen here: otherwise nobody would read for it until
// the read loop looks. b.mu is held, so that nobody has taken it yet.
func (b *baton) offer() bool {
	b.free.Store(true)
	return b.pending() == 0
}

// mayRest reports, after a response was read, whether the read loop is to lay the
// baton down. More says that something else has been read with it.
func (b *baton) mayRest(more bool) bool {
	if b.link == nil {
		return false
	}
	if more || b.pending() > 0 {
		b.quick = 0
		return false
	}
	now := time.Now()
	if now.Sub(b.last) > batonTick {
		b.quick = 0
	}
	b.last = now
	b.quick++
	return b.quick > quickCalls
}

// rest lays the baton down and returns when the read loop has it again.
func (b *baton) rest() {
	ticker := time.NewTicker(batonTick)
	defer ticker.Stop()
	last, lies := b.lay()
	if !lies {
		return // calls are as quick as before
	}
	b.quick = 0
	for {
		select {
		case <-b.back:
			b.link.Resume()
			return
		case <-ticker.C:
			if b.look(&last) {
				return
			}
		}
	}
}

// lay lays the baton down, unless a call has begun meanwhile. It returns what look
// begins with.
func (b *baton) lay() (last uint64, lies bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.offer() {
		b.free.Store(false)
		return 0, false
	}
	return b.passes - 1, true
}

// look sees whether anything has happened since the last look. If not, it takes the
// baton up, which it reports, or asks for it.
func (b *baton) look(last *uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.passes != *last {
		*last = b.passes
		return false
	}
	b.recall()
	return b.free.CompareAndSwap(true, false)
}

// recall asks a caller for the baton. b.mu is held.
func (b *baton) recall() {
	if b.caller && !b.wanted {
		b.wanted = true
		b.link.Interrupt()
	}
}

// end ends a caller's reading.
func (b *baton) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recall()
}

// A callReader is a Conn that a caller reads from.
type callReader struct{ conn *Conn }

// Take implements [inflight.Reader].
func (r callReader) Take() bool { return r.conn.baton.take() }

// Read implements [inflight.Reader].
func (r callReader) Read() bool {
	_, err := r.conn.read()
	if err != nil && !errors.Is(err, jsonrpc.ErrInterrupted) {
		r.conn.baton.broken = err
	}
	return err == nil
}

// Pass implements [inflight.Reader].
func (r callReader) Pass() { r.conn.baton.pass() }
