package process

import "time"

// drain reads until the pipe's end or its closing.
func (s *stderr) drain() {
	buf := make([]byte, readSize)
	for {
		n, err := s.file.Read(buf)
		s.mu.Lock()
		s.take(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// catchUp gives the drain a tenth of a second to reach the end: there is no
// read that does not block. It takes that long only when another process holds
// the pipe open.
func (s *stderr) catchUp() {
	late := time.NewTimer(100 * time.Millisecond)
	defer late.Stop()
	select {
	case <-s.drained:
	case <-late.C:
	}
}
