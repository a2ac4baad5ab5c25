package process

import (
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropInherited closes what our parent had inherited without close-on-exec
// and so passed on to us: a guardian must not hold other people's pipes open.
// The runtime's own descriptors (epoll, eventfd) stay.
func dropInherited() {
	// So that ps and top, which show the executable's name, tell what this is.
	name, err := unix.ByteSliceFromString("mcpsplice-guard")
	if err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	}
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= keeperFD {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + name)
		if err == nil && !strings.HasPrefix(target, "anon_inode:") {
			_ = unix.Close(fd)
		}
	}
}
