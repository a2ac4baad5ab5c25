//go:build unix

package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// drain reads until the pipe's end or its closing.
func (s *stderr) drain() {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	for more := true; more; {
		err := raw.Read(func(fd uintptr) bool {
			n, err := s.read(fd)
			more = n > 0
			return !errors.Is(err, unix.EAGAIN)
		})
		if err != nil {
			return
		}
	}
}

// catchUp takes what lies in the pipe now, so that the tail is complete when a
// child has ended, whether or not another process still holds the pipe open.
// It takes at most 2 MiB, twice what a pipe can be made to hold, since that
// other process may be writing all the time.
func (s *stderr) catchUp() {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	// An error says that the file is closed: then the drain had the rest.
	_ = raw.Control(func(fd uintptr) {
		for taken := 0; taken < 2<<20; {
			n, _ := s.read(fd)
			if n <= 0 {
				return
			}
			taken += n
		}
	})
}

// read does one read, which does not block, and keeps what it brought in one
// step under mu: drain and catchUp cannot take each other's bytes out of order.
func (s *stderr) read(fd uintptr) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		n, err := unix.Read(int(fd), s.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n > 0 {
			s.take(s.buf[:n])
		}
		return n, err
	}
}
