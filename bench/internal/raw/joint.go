package raw

import (
	"io"
	"runtime"
	"sync"
)

// A joint is a writer that several callers share. What comes while others run goes out
// with one write, unless to copy it would cost more than that.
type joint struct {
	w io.Writer

	writing sync.Mutex

	mu    sync.Mutex
	queue []byte // guarded by mu
	out   []byte // the queue taken last, of whoever writes it
	busy  bool   // somebody is to write the queue; guarded by mu
}

// jointBytes is up to which length a message waits for others.
const jointBytes = 16 << 10

// write writes a message, or leaves it to the caller that writes already.
func (j *joint) write(message []byte) error {
	if len(message) > jointBytes {
		return j.send(message)
	}
	j.mu.Lock()
	j.queue = append(j.queue, message...)
	first := !j.busy
	j.busy = true
	j.mu.Unlock()
	if !first {
		return nil
	}
	runtime.Gosched() // others find it busy
	for piece := j.take(); piece != nil; piece = j.take() {
		if err := j.send(piece); err != nil {
			return err
		}
	}
	return nil
}

// take returns the queue, or nil when it is empty and nobody writes it any more. The
// piece taken before has been written.
func (j *joint) take() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 {
		j.busy = false
		return nil
	}
	j.queue, j.out = j.out[:0], j.queue
	return j.out
}

func (j *joint) send(message []byte) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	_, err := j.w.Write(message)
	return err
}
