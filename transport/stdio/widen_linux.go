package stdio

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is how much a pipe should hold: with its usual 64 KiB both ends wait
// for each other in the middle of larger messages.
const pipeSize = 256 << 10

// widen makes a pipe hold more. One that cannot, because the user has used up
// what is granted, works all the same.
func widen(f *os.File) {
	_, _ = unix.FcntlInt(descriptor(f), unix.F_SETPIPE_SZ, pipeSize)
}
