package faulttest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Processes returns the process ids of children, and of what they have started,
// whose directory is dir or below it. Where the system does
// not tell there are none.
func Processes(dir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(env, []byte(childPrefix)) && bytes.Contains(env, []byte(dir)) {
			found = append(found, pid)
		}
	}
	return found
}
