package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

// A turn is the right to read from a link, and what goes with it: whoever reads
// serves a request itself as long as requests have been served fast. That saves
// waking another goroutine, which for a small request is most of the work, and
// lets the answers to requests that came together go out together.
//
// A request that turns out to be slow loses its server the turn: a watcher gives
// it to another reader, so that nothing waits behind it for longer than two
// ticks. Then requests are served by workers again until enough were fast.
type turn struct {
	// Atomic. Even while its holder reads, odd while it serves a request; it
	// grows with each change, and by another one when the turn is given away.
	state atomic.Uint64
	fast  atomic.Int32 // requests in a row that were served fast

	watched atomic.Bool // whether there is a watcher; changed under mu

	mu      sync.Mutex
	stopped bool // guarded by mu
	watcher sync.WaitGroup

	takeOver func() // has somebody else read on; set at construction
}

const (
	fastEnough = 100 * time.Microsecond // a request that took no longer was fast
	fastInARow = 16                     // of these, before the reader serves requests itself
	tick       = 2 * time.Millisecond   // of the watcher
	idleTicks  = 500                    // without a request, after which it stops
)

// note takes up how long a request took.
func (t *turn) note(took time.Duration) {
	if took > fastEnough {
		t.fast.Store(0)
	} else if t.fast.Load() < fastInARow {
		t.fast.Add(1)
	}
}

// mayServe reports whether the reader is to serve the next request itself.
func (t *turn) mayServe() bool { return t.fast.Load() >= fastInARow }

// begin is called before the reader serves a request itself. It returns the state
// for pause and end.
func (t *turn) begin() uint64 {
	serving := t.state.Add(1) // before the look at the watcher: see leave
	t.watch()
	return serving
}

// end reports, after a request was served that took so long, whether the caller
// still has the turn. If it does not, takeOver was called meanwhile.
func (t *turn) end(serving uint64, took time.Duration) bool {
	t.note(took)
	return t.state.CompareAndSwap(serving, serving+1)
}

// pause reports whether the caller, who serves a request, still has the turn, and
// if so keeps it from being given away until resume is called. That must be soon.
func (t *turn) pause(serving uint64) bool { return t.state.CompareAndSwap(serving, serving+1) }

// resume ends a pause and returns the state for what follows.
func (t *turn) resume() uint64 { return t.state.Add(1) }

// watch starts a watcher unless there is one.
func (t *turn) watch() {
	if t.watched.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped || t.watched.Load() {
		return
	}
	t.watched.Store(true)
	t.watcher.Go(t.keepWatch)
}

// keepWatch gives the turn away when one request has been served for a whole
// tick.
func (t *turn) keepWatch() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last, idle := t.state.Load(), 0
	for range ticker.C {
		state := t.state.Load()
		switch {
		case state != last:
			last, idle = state, 0
		case state%2 == 1 && t.state.CompareAndSwap(state, state+1):
			t.fast.Store(0)
			t.takeOver()
		default:
			idle++
		}
		if t.leave(idle, last) {
			return
		}
	}
}

// leave reports whether the watcher, which has seen the state last, is to end. A request
// that begins at this moment finds that there is none, or is seen here: otherwise nobody
// would watch it.
func (t *turn) leave(idle int, last uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped && idle < idleTicks {
		return false
	}
	t.watched.Store(false)
	if t.stopped || last%2 == 0 && t.state.Load() == last {
		return true
	}
	t.watched.Store(true)
	return false
}

// stop ends the watcher and waits for it. The turn is given away no more.
func (t *turn) stop() {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	t.watcher.Wait()
}
