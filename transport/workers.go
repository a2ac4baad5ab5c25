package transport

import (
	"sync"
	"sync/atomic"
)

// workers run tasks concurrently up to a limit. Further tasks wait in a queue,
// so that whoever hands them in never waits: behind a request that must wait
// there may be the answer that another one waits for.
//
// A worker that has run a task stays for the next one, with the stack that it
// has grown.
type workers struct {
	// Set at construction.
	limit, maxQueue int
	next            chan func()   // to a worker that waits
	stop            chan struct{} // closed by close
	running         sync.WaitGroup

	busy atomic.Int32 // tasks that run

	mu     sync.Mutex
	queue  []func() // guarded by mu, like what follows
	active int      // workers
	idle   int      // workers that wait and have not been promised a task
	closed bool
}

func newWorkers(limit, maxQueue int) *workers {
	return &workers{limit: limit, maxQueue: maxQueue, next: make(chan func()), stop: make(chan struct{})}
}

// run has a worker run task. It reports false, and does nothing, if the queue is
// full or close has been called.
func (w *workers) run(task func()) bool {
	w.mu.Lock()
	switch {
	case w.closed:
		w.mu.Unlock()
		return false
	case w.idle > 0:
		w.idle--
		w.mu.Unlock()
		select {
		case w.next <- task:
			return true
		case <-w.stop:
			return false
		}
	case w.active < w.limit:
		w.active++
		w.running.Go(func() { w.work(task) })
	case len(w.queue) < w.maxQueue:
		w.queue = append(w.queue, task)
	default:
		w.mu.Unlock()
		return false
	}
	w.mu.Unlock()
	return true
}

// beside runs task in a goroutine of its own, whatever the limit. It reports
// false if close has been called.
func (w *workers) beside(task func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.running.Go(task)
	return true
}

func (w *workers) work(task func()) {
	for task != nil {
		w.busy.Add(1)
		task()
		w.busy.Add(-1)
		task = w.take()
	}
}

// take returns the next task, nil at the end. Tasks in the queue are run even
// after close.
func (w *workers) take() func() {
	w.mu.Lock()
	if len(w.queue) > 0 {
		task := w.queue[0]
		w.queue[0] = nil
		w.queue = w.queue[1:]
		w.mu.Unlock()
		return task
	}
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.idle++
	w.mu.Unlock()
	select {
	case task := <-w.next:
		return task
	case <-w.stop:
		return nil
	}
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
