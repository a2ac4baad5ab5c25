package process

import (
	"os"
	"runtime"
	"sync"
	"syscall"
)

// PR_SET_PDEATHSIG fires when the thread that forked ends, not the process. Go
// ends threads when it likes (a locked goroutine that returns takes its thread
// along), so all forks happen on one thread that lives while children do.
var forks forker

// A forker forks on a goroutine that is locked to its thread. The goroutine
// starts with the first child and ends with the last, whose reap waits for it.
type forker struct {
	// Guarded by mu.
	mu       sync.Mutex
	children int         // running, or being forked
	jobs     chan func() // nil while there is no goroutine
	done     chan struct{}
}

func fork(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	// SIGTERM, not SIGKILL: the server may have something to save, and the
	// guardian sends SIGKILL later.
	attr.Sys = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	var (
		child *os.Process
		err   error
	)
	forks.do(func() { child, err = os.StartProcess(path, argv, attr) })
	if err != nil {
		forks.release()
	}
	return child, err
}

// forkDone tells that a child was reaped.
func forkDone() { forks.release() }

// do runs the job on the thread and counts a child.
func (f *forker) do(job func()) {
	ran := make(chan struct{})
	f.mu.Lock()
	f.children++
	if f.jobs == nil {
		f.jobs, f.done = make(chan func()), make(chan struct{})
		go f.run(f.jobs, f.done)
	}
	jobs := f.jobs
	f.mu.Unlock()
	// The goroutine cannot end before: the child is counted.
	jobs <- func() {
		defer close(ran)
		job()
	}
	<-ran
}

func (f *forker) release() {
	f.mu.Lock()
	f.children--
	if f.children > 0 {
		f.mu.Unlock()
		return
	}
	done := f.done
	close(f.jobs)
	f.jobs = nil
	f.mu.Unlock()
	<-done
}

func (f *forker) run(jobs <-chan func(), done chan<- struct{}) {
	defer close(done)
	runtime.LockOSThread()
	// Unlocked at the end, so that the thread goes back to the pool.
	defer runtime.UnlockOSThread()
	for job := range jobs {
		job()
	}
}
