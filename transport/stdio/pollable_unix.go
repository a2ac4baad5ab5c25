//go:build unix && !linux

package stdio

import (
	"os"

	"golang.org/x/sys/unix"
)

// pollable returns f under a descriptor of its own: there is no way to have it
// not wait that other processes would not notice, but a write to descriptor 1
// whose reader has gone would end this process by SIGPIPE.
func pollable(f *os.File, _ int) *os.File {
	raw, err := f.SyscallConn()
	if err != nil {
		return f
	}
	again := f
	// An error says that f is closed, which its user will find out.
	_ = raw.Control(func(number uintptr) {
		if fd, err := unix.FcntlInt(number, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			again = os.NewFile(uintptr(fd), f.Name())
		}
	})
	return again
}
