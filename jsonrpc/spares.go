package jsonrpc

import "sync"

// Bounds of the memory of lines that is used again: less is not worth it, and
// more is not kept, neither of one line nor of all.
const (
	minRecycled = 16 << 10
	maxRecycled = maxBlock
)

// spares are memory of lines that was given back: as much as lines that were in use
// at once have had.
type spares struct {
	mu    sync.Mutex
	list  [][]byte // guarded by mu, like what follows
	bytes int
}

func (s *spares) put(memory []byte) {
	n := cap(memory)
	if n < minRecycled || n > maxRecycled {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.list) > 0 && s.bytes+n > maxRecycled {
		s.pop() // lines have become longer
	}
	s.list = append(s.list, memory[:0])
	s.bytes += n
}

// get returns an empty slice that holds n bytes without growing, or nil.
func (s *spares) get(n int) []byte {
	if n < minRecycled {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return nil
	}
	if last := s.pop(); cap(last) >= n {
		return last
	}
	return nil
}

// pop takes the last one out. s.mu is held.
func (s *spares) pop() []byte {
	i := len(s.list) - 1
	last := s.list[i]
	s.list[i] = nil
	s.list = s.list[:i]
	s.bytes -= cap(last)
	return last
}

// drop forgets all of them.
func (s *spares) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.bytes = nil, 0
}
