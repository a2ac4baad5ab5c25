package transport

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

var errLinkClosed = errors.New("link closed")

// A gate lets many goroutines write whole frames to one writer.
//
// Whoever finds the gate idle writes its frame itself, in one attempt that does
// not wait; what arrives meanwhile is queued and goes out in one piece. If the
// peer does not read, what is left is handed to a flusher of the gate's own, so
// that no caller is held by another one's bytes.
type gate struct {
	// Set at construction.
	w       io.Writer
	try     func(p []byte) (int, error) // writes what fits without waiting; nil if w cannot
	limit   int
	maxWait time.Duration // longest that a frame waits for room; 0 for no bound

	mu    sync.Mutex
	queue []byte        // frames that wait, guarded by mu
	out   []byte        // the queue taken last, being written while busy
	busy  bool          // somebody writes, guarded by mu
	err   error         // why nothing can be written any more, guarded by mu
	room  chan struct{} // closed when the queue has been taken; nil if nobody waits
	still chan struct{} // closed when all has been written; nil if nobody waits
	done  sync.WaitGroup

	// broken is called once, when a write has failed and what was queued is lost.
	broken func()
}

func newGate(w io.Writer, limit int, maxWait time.Duration, broken func()) *gate {
	if limit <= 0 {
		limit = DefaultMaxQueue
	}
	return &gate{w: w, try: nonBlocking(w), limit: limit, maxWait: maxWait, broken: broken}
}

// write sends or queues one frame with its end. An error means that nothing of
// it has been written.
func (g *gate) write(ctx context.Context, frame []byte, more bool) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	g.mu.Lock()
	if g.full(frame) {
		if err := g.waitForRoom(ctx, frame); err != nil {
			return err
		}
	}
	if g.err != nil {
		err := g.err
		g.mu.Unlock()
		return err
	}
	if g.busy {
		g.queue = append(g.queue, frame...)
		g.mu.Unlock()
		return nil
	}
	g.busy = true
	if more && len(frame) < minAlone {
		// Others that run now find the gate busy and add to the queue.
		g.queue = append(g.queue, frame...)
		g.mu.Unlock()
		runtime.Gosched()
		frame = nil
	} else {
		g.mu.Unlock()
	}
	return g.drain(frame)
}

// minAlone is from how many bytes on a frame waits for no others: to copy it costs
// more than a write.
const minAlone = 16 << 10

// maxHeld is how many bytes are held before they are written after all.
const maxHeld = 64 << 10

// hold queues one frame with its end for the next write or kick, if there is
// room, and reports whether there was.
func (g *gate) hold(frame []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil || len(g.queue)+len(frame) > maxHeld {
		return false
	}
	g.queue = append(g.queue, frame...)
	return true
}

// kick writes what is held.
func (g *gate) kick() {
	g.mu.Lock()
	if g.busy || g.err != nil || len(g.queue) == 0 {
		g.mu.Unlock()
		return
	}
	g.busy = true
	g.mu.Unlock()
	g.drain(nil)
}

// full reports whether frame has to wait for room. g.mu is held.
func (g *gate) full(frame []byte) bool {
	return g.err == nil && g.busy && len(g.queue) > 0 && len(g.queue)+len(frame) > g.limit
}

// waitForRoom waits until there is room for frame. g.mu is held before, and
// after unless there is an error.
func (g *gate) waitForRoom(ctx context.Context, frame []byte) error {
	if g.maxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.maxWait)
		defer cancel()
	}
	for g.full(frame) {
		if g.room == nil {
			g.room = make(chan struct{})
		}
		room := g.room
		g.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		g.mu.Lock()
	}
	return nil
}

// maxPieces is how many pieces of others one writer writes on.
const maxPieces = 8

// drain writes frame and then what is queued, until nothing is left, the writer
// would have to wait, or it has done enough for others. The error is that of
// frame, if nothing of it was written.
func (g *gate) drain(frame []byte) error {
	own := frame != nil
	for pieces := 0; ; pieces++ {
		if pieces > maxPieces {
			g.handOver(frame)
			return nil
		}
		if frame != nil {
			n, err := g.attempt(frame)
			if err == nil && n < len(frame) {
				n, err = g.linger(frame, n)
			}
			if err != nil {
				g.fail(err)
				if own && pieces == 0 && n == 0 {
					return err
				}
				return nil
			}
			if n < len(frame) {
				g.handOver(frame[n:])
				return nil
			}
		}
		if frame = g.take(); frame == nil {
			return nil
		}
	}
}

func (g *gate) attempt(p []byte) (int, error) {
	if g.try == nil {
		return 0, nil
	}
	return g.try(p)
}

// lingerTime is how long a writer waits for a peer that is slow to read, before
// it leaves the rest to the flusher. Messages longer than a pipe holds need it.
const lingerTime = 10 * time.Millisecond

// linger writes on from n, while the peer takes it within lingerTime.
func (g *gate) linger(frame []byte, n int) (int, error) {
	d, ok := g.w.(interface{ SetWriteDeadline(time.Time) error })
	if !ok || g.try == nil {
		return n, nil
	}
	if err := d.SetWriteDeadline(time.Now().Add(lingerTime)); err != nil {
		return n, nil
	}
	more, err := g.w.Write(frame[n:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	// The flusher waits as long as it takes.
	return n + more, errors.Join(err, d.SetWriteDeadline(time.Time{}))
}

// take returns the queue, or nil and an idle gate if it is empty. The piece
// taken before has been written.
func (g *gate) take() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 || g.err != nil {
		g.busy = false
		g.tellStill()
		if cap(g.out) > maxPooledFrame {
			g.out = nil
		}
		return nil
	}
	g.queue, g.out = g.out[:0], g.queue
	if g.room != nil {
		close(g.room)
		g.room = nil
	}
	return g.out
}

// handOver lets a goroutine of the gate write rest and what follows, waiting
// for the peer as long as it takes.
func (g *gate) handOver(rest []byte) {
	rest = append(make([]byte, 0, len(rest)), rest...)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return // nothing is started any more
	}
	g.done.Go(func() {
		for frame := rest; frame != nil; frame = g.take() {
			if _, err := g.w.Write(frame); err != nil {
				g.fail(err)
				return
			}
		}
	})
}

// failure returns why nothing can be written any more.
func (g *gate) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// fail shuts the gate after a write has failed, and tells so.
func (g *gate) fail(err error) {
	if g.shut(err) && g.broken != nil {
		g.broken()
	}
}

// flush waits until all that was handed in has been written, or cannot be, no
// longer than ctx.
func (g *gate) flush(ctx context.Context) error {
	g.mu.Lock()
	if !g.busy || g.err != nil {
		defer g.mu.Unlock()
		return g.err
	}
	if g.still == nil {
		g.still = make(chan struct{})
	}
	still := g.still
	g.mu.Unlock()
	select {
	case <-still:
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tellStill wakes those who flush. g.mu is held.
func (g *gate) tellStill() {
	if g.still != nil {
		close(g.still)
		g.still = nil
	}
}

// shut lets nothing in any more. It reports whether it is the first to do so.
func (g *gate) shut(err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := g.err == nil
	if first {
		g.err = err
	}
	g.queue = nil
	g.tellStill()
	if g.room != nil {
		close(g.room)
		g.room = nil
	}
	return first
}

// closeWait bounds waiting for a flusher whose writer cannot be unblocked.
const closeWait = 2 * time.Second

// wait waits for the flusher after the writer was closed.
func (g *gate) wait() {
	ended := make(chan struct{})
	go func() {
		g.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeWait):
	}
}
