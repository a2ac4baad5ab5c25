package faulttest

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// Leftovers are what a process has, or has left behind.
type Leftovers struct {
	Processes   int // of children, as their directory shows; see [Processes]
	Goroutines  int
	Descriptors int
}

// String names the three numbers.
func (l Leftovers) String() string {
	return fmt.Sprintf("%d processes, %d goroutines, %d descriptors", l.Processes, l.Goroutines, l.Descriptors)
}

// None reports whether nothing is left.
func (l Leftovers) None() bool { return l == Leftovers{} }

// Count counts what this process has now, and the child processes of the
// directory dir.
func Count(dir string) Leftovers {
	return Leftovers{Processes: len(Processes(dir)), Goroutines: runtime.NumGoroutine(), Descriptors: descriptors()}
}

// settling is how long [Since] waits for what ends a moment later.
const settling = 10 * time.Second

// Since returns what there is more than there was before, when that has had time to
// end.
func Since(before Leftovers, dir string) Leftovers {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		now := Count(dir)
		left := Leftovers{
			Processes:   max(now.Processes-before.Processes, 0),
			Goroutines:  max(now.Goroutines-before.Goroutines, 0),
			Descriptors: max(now.Descriptors-before.Descriptors, 0),
		}
		if left.None() || time.Since(began) > settling {
			return left
		}
	}
}

// descriptors returns how many there are, 0 where the system does not tell.
func descriptors() int {
	// The poller's own are made with the first pipe.
	if r, w, err := os.Pipe(); err == nil {
		_, _ = r.Close(), w.Close()
	}
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
