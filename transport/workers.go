package transport

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// maxQueuedBytes is how many bytes the messages may have that wait for workers.
// A single larger one is let in.
const maxQueuedBytes = 64 << 20

// workers run tasks concurrently up to a limit. Further tasks wait in a queue,
// so that whoever hands them in never waits: behind a request that must wait
// there may be the answer that another one waits for.
//
// A worker that has run a task stays for the next one, with the stack that it
// has grown.
type workers struct {
	// Set at construction.
	limit, maxQueue int
	total           *Backlog      // of what waits here and elsewhere; nil for no bound
	next            chan func()   // to a worker that waits
	stop            chan struct{} // closed by close
	running         sync.WaitGroup

	busy atomic.Int32 // tasks that run

	mu     sync.Mutex
	queue  []task // guarded by mu, like what follows
	bytes  int    // of the messages in queue
	active int    // workers, and callers of enter
	idle   int    // workers that wait and have not been promised a task
	closed bool
}

// A task that waits.
type task struct {
	run  func()
	size int // of its message
}

func newWorkers(limit, maxQueue int, total *Backlog) *workers {
	return &workers{limit: limit, maxQueue: maxQueue, total: total, next: make(chan func()), stop: make(chan struct{})}
}

// errClosed is why a task is not run once close has been called.
var errClosed = &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent, Public: errDraining.Error()}

// run has a worker run f, for a message of size bytes. It does nothing, and returns
// why, if there is no room in the queue or close has been called.
func (w *workers) run(size int, f func()) error {
	w.mu.Lock()
	switch {
	case w.closed:
		w.mu.Unlock()
		return errClosed
	case w.full():
		err := w.enqueue(task{f, size})
		w.mu.Unlock()
		return err
	case w.idle == 0:
		w.active++
		w.running.Go(func() { w.work(f) })
		w.mu.Unlock()
		return nil
	}
	w.idle--
	w.mu.Unlock()
	select {
	case w.next <- f:
		return nil
	case <-w.stop:
		return errClosed
	}
}

// enqueue has a task wait. w.mu is held.
func (w *workers) enqueue(t task) error {
	switch {
	case len(w.queue) >= w.maxQueue:
		return tooMany("MaxQueued", fmt.Sprintf("%d requests are in flight, and as many wait as may", w.limit))
	case len(w.queue) > 0 && w.bytes+t.size > maxQueuedBytes:
		return tooMany("MaxQueued", fmt.Sprintf("%d bytes of messages wait, and one has %d; the limit is %d", w.bytes, t.size, maxQueuedBytes))
	}
	if err := w.total.add(t.size, len(w.queue), w.bytes); err != nil {
		return err
	}
	w.queue = append(w.queue, t)
	w.bytes += t.size
	return nil
}

// full reports whether as many tasks run as may. w.mu is held.
func (w *workers) full() bool { return w.active-w.idle >= w.limit }

// haveRoom reports whether one more task can run at once. It stays true until
// the caller, if nobody else hands in tasks, has handed in one.
func (w *workers) haveRoom() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.full()
}

// enter has the caller's goroutine count as a worker, until leave. It reports false
// if close has been called. Whether there is room the caller has asked.
func (w *workers) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.active++
	w.running.Add(1)
	w.busy.Add(1)
	return true
}

// leave ends what enter has begun, and leaves what waits to a worker.
func (w *workers) leave() {
	w.busy.Add(-1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if first := w.pop(); first != nil {
		w.running.Go(func() { w.work(first) })
	} else {
		w.active--
	}
	w.running.Done()
}

// beside runs f in a goroutine of its own, whatever the limit. It reports false
// if close has been called.
func (w *workers) beside(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.running.Go(f)
	return true
}

func (w *workers) work(f func()) {
	for f != nil {
		w.busy.Add(1)
		f()
		w.busy.Add(-1)
		f = w.take()
	}
}

// take returns the next task, nil at the end. Tasks in the queue are run even
// after close.
func (w *workers) take() func() {
	w.mu.Lock()
	if first := w.pop(); first != nil {
		w.mu.Unlock()
		return first
	}
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.idle++
	w.mu.Unlock()
	select {
	case f := <-w.next:
		return f
	case <-w.stop:
		return nil
	}
}

// pop returns the task that waits longest, nil if there is none. w.mu is held.
func (w *workers) pop() func() {
	if len(w.queue) == 0 {
		return nil
	}
	first := w.queue[0]
	w.queue[0] = task{}
	w.queue = w.queue[1:]
	w.bytes -= first.size
	w.total.remove(first.size)
	return first.run
}

// close lets no more tasks in. Those handed in before are run; wait waits for
// them.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.stop)
	}
}

func (w *workers) wait() { w.running.Wait() }
