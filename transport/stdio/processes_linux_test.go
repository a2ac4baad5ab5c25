package stdio_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// childless reports whether this process has no child, zombies included.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}

// noGuardian says that none can be found.
const noGuardian = false

// guardianOf returns the process that ends the children of another one when that
// is killed, 0 if there is none yet.
func guardianOf(parent int) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		if text := string(status); strings.HasPrefix(text, "Name:\tmcpsplice-guard\n") &&
			strings.Contains(text, fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			return pid
		}
	}
	return 0
}
