package faulttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A BlackHole is an address that answers no attempt to connect, neither with a
// connection nor with a refusal.
type BlackHole struct {
	Addr string // host and port

	socket int
	queue  []net.Conn // fill what the system would accept by itself
}

// NewBlackHole returns a black hole on the loopback interface.
func NewBlackHole() (*BlackHole, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	b := &BlackHole{socket: socket}
	if err := b.open(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *BlackHole) open() error {
	if err := unix.Bind(b.socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if err := unix.Listen(b.socket, 0); err != nil {
		return os.NewSyscallError("listen", err)
	}
	name, err := unix.Getsockname(b.socket)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	b.Addr = fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port) // as it was bound
	const most, patience = 8, 200 * time.Millisecond
	for range most {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.Addr)
		cancel()
		if err != nil {
			return nil // the queue is full
		}
		b.queue = append(b.queue, conn)
	}
	return errors.New("the queue of connections does not fill")
}

// Close frees the address.
func (b *BlackHole) Close() error {
	for _, conn := range b.queue {
		_ = conn.Close()
	}
	return os.NewSyscallError("close", unix.Close(b.socket))
}
