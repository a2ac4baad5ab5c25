//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminal returns how many columns a file has that is a terminal.
func terminal(f *os.File) (columns int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
