package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// becomeReaper makes orphans among our descendants our children, so that none
// can hide by losing its parent or leaving its process group.
func becomeReaper() error {
	const prSetChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return errno
	}
	return nil
}

// descendants lists the living processes below us.
func descendants() map[int]string {
	children := map[int][]int{}
	names := map[int]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid …, and the name can hold spaces and brackets.
		stat := string(b)
		open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
		fields := strings.Fields(stat[end+1:])
		pid, _ := strconv.Atoi(strings.TrimSpace(stat[:open]))
		ppid, _ := strconv.Atoi(fields[1])
		if fields[0] == "Z" {
			reap(pid, ppid)
			continue
		}
		children[ppid] = append(children[ppid], pid)
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		names[pid] = fmt.Sprintf("%d %.120s", pid, strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
	found := map[int]string{}
	for queue := children[os.Getpid()]; len(queue) > 0; queue = queue[1:] {
		found[queue[0]] = names[queue[0]]
		queue = append(queue, children[queue[0]]...)
	}
	return found
}

// reap takes the exit status of an adopted child. Those that we started
// ourselves are waited for where they were started, before this is called.
func reap(pid, ppid int) {
	if ppid == os.Getpid() {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}
