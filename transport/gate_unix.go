//go:build unix

package transport

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonBlocking returns a function that writes to w what fits without waiting, or
// nil if w is no file or socket in non-blocking mode.
func nonBlocking(w io.Writer) func(p []byte) (int, error) {
	sc, ok := w.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	nonblock := false
	err = raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		nonblock = err == nil && flags&unix.O_NONBLOCK != 0
	})
	if err != nil || !nonblock {
		return nil
	}
	t := &tryWriter{raw: raw}
	t.once = t.write
	return t.try
}

// A tryWriter is used by one goroutine at a time, the holder of the gate.
type tryWriter struct {
	raw  syscall.RawConn
	once func(fd uintptr) bool
	p    []byte
	n    int
	err  error
}

func (t *tryWriter) try(p []byte) (int, error) {
	t.p, t.n, t.err = p, 0, nil
	if err := t.raw.Write(t.once); err != nil {
		return 0, err
	}
	t.p = nil
	return t.n, t.err
}

func (t *tryWriter) write(fd uintptr) bool {
	for t.n < len(t.p) {
		n, err := unix.Write(int(fd), t.p[t.n:])
		switch {
		case n > 0:
			t.n += n
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return true
		case err != nil:
			t.err = err
			return true
		}
	}
	return true
}
