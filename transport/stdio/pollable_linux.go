package stdio

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pollable returns f under a descriptor of its own, such that closing it ends
// reads and writes that wait, and writes need not wait, if that is possible.
//
// A pipe is opened anew, because O_NONBLOCK set on f itself would be seen by
// every process that shares it. Descriptor 1 is not used in any case: a write to
// it whose reader has gone would end this process by SIGPIPE.
func pollable(f *os.File, flag int) *os.File {
	info, err := f.Stat()
	if err != nil {
		return f
	}
	if info.Mode()&os.ModeType == os.ModeNamedPipe {
		again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", descriptor(f)), flag|unix.O_NONBLOCK, 0)
		if err == nil {
			return again
		}
	}
	fd, err := unix.FcntlInt(descriptor(f), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return f
	}
	if info.Mode()&os.ModeType == os.ModeSocket {
		// A socket that keeps waiting can still be used.
		_ = unix.SetNonblock(fd, true)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// descriptor is f.Fd without its side effect on f's mode.
func descriptor(f *os.File) uintptr {
	number := ^uintptr(0)
	if raw, err := f.SyscallConn(); err == nil {
		// An error leaves a number that no system call takes.
		_ = raw.Control(func(fd uintptr) { number = fd })
	}
	return number
}
