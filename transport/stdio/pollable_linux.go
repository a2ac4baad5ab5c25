package stdio

import (
	"fmt"
	"os"
	"syscall"
)

// pollable returns f such that closing it ends reads and writes that wait, and
// writes need not wait, if that is possible; else f itself.
//
// A pipe is opened anew, because O_NONBLOCK set on f itself would be seen by
// every process that shares it.
func pollable(f *os.File, flag int) *os.File {
	info, err := f.Stat()
	if err != nil {
		return f
	}
	switch info.Mode() & os.ModeType {
	case os.ModeNamedPipe:
		again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", descriptor(f)), flag|syscall.O_NONBLOCK, 0)
		if err == nil {
			return again
		}
	case os.ModeSocket:
		fd, err := syscall.Dup(descriptor(f))
		if err != nil {
			return f
		}
		if err := syscall.SetNonblock(fd, true); err != nil {
			return f
		}
		return os.NewFile(uintptr(fd), f.Name())
	}
	return f
}

// descriptor is f.Fd without its side effect on f's mode.
func descriptor(f *os.File) (number int) {
	number = -1
	if raw, err := f.SyscallConn(); err == nil {
		// An error leaves -1, which no system call takes.
		_ = raw.Control(func(fd uintptr) { number = int(fd) })
	}
	return number
}
