package proc

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// CPU returns the processor time, user and system, that all threads of a
// process have used so far, those that ended included. It reads the process's
// CPU clock, which counts in nanoseconds; /proc/PID/stat counts in ticks of
// 10 ms.
func CPU(pid int) (time.Duration, error) {
	// clock_getcpuclockid(3) is this and a check that the process exists.
	const schedClock = 2
	clock := int32(^pid)<<3 | schedClock
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("reading the CPU clock of process %d: %w", pid, errno)
	}
	return time.Duration(ts.Nano()), nil
}

// MemoryOf returns the resident memory of a process: now, and at its peak.
func MemoryOf(pid int) (Memory, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("reading memory: %w", err)
	}
	defer f.Close()
	var m Memory
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		kib, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		switch name {
		case "VmRSS":
			m.Resident, err = kibibytes(kib)
		case "VmHWM":
			m.Peak, err = kibibytes(kib)
		}
		if err != nil {
			return Memory{}, fmt.Errorf("reading memory: %s: %w", name, err)
		}
	}
	return m, nil
}

func kibibytes(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n << 10, err
}
