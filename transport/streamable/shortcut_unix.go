//go:build unix

package streamable

import "syscall"

// canPeek says whether a peeker can tell.
const canPeek = true

// A peeker looks whether anything has come on a connection that nothing is expected
// on, such as its end, without waiting for it.
type peeker struct {
	raw    syscall.RawConn // nil if nothing can be found out
	look   func(fd uintptr) bool
	silent *bool
}

func newPeeker(conn syscall.Conn) peeker {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peeker{}
	}
	silent := new(bool)
	look := func(fd uintptr) bool {
		var b [1]byte
		_, err := syscall.Read(int(fd), b[:]) // sockets are in non-blocking mode
		*silent = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	}
	return peeker{raw, look, silent}
}

// quiet reports whether nothing has come.
func (p *peeker) quiet() bool { return p.raw.Read(p.look) == nil && *p.silent }
