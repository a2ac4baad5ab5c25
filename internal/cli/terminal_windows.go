package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// terminal returns how many columns a file has that is a terminal, 0 for one that
// is read.
func terminal(f *os.File) (columns int, ok bool) {
	handle := windows.Handle(f.Fd())
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(handle, &info) == nil {
		return int(info.Window.Right-info.Window.Left) + 1, true
	}
	var mode uint32
	return 0, windows.GetConsoleMode(handle, &mode) == nil
}
