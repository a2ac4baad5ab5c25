package process

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// awaitExit waits for the child's end and leaves it a zombie.
func awaitExit(child *os.Process) ExitStatus {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, child.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			// ECHILD: somebody else in this process waits for all children.
			return ExitStatus{Code: -1}
		}
		return statusOf(&info)
	}
}

// sigchld is siginfo_t as waitid(2) fills it.
type sigchld struct {
	signo, errno, code int32
	_                  [0]uintptr // the union that follows is aligned like a pointer
	pid                int32
	uid                uint32
	status             int32
}

func statusOf(info *unix.Siginfo) ExitStatus {
	const exited, dumped = 1, 3 // CLD_EXITED, CLD_DUMPED
	c := (*sigchld)(unsafe.Pointer(info))
	code := c.code
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		code = c.errno // the two are swapped there
	}
	if code == exited {
		return ExitStatus{Code: int(c.status)}
	}
	return ExitStatus{Code: -1, Signal: unix.Signal(c.status), Core: code == dumped}
}

// signalGroup signals the group, and one by one the members of the session
// that left it. SIGCONT follows so that a stopped member gets the signal, too.
func signalGroup(id int, sig unix.Signal) {
	// Errors say that a member is gone or belongs to somebody else; whether
	// anyone is left is looked up, not concluded from them.
	_ = unix.Kill(-id, sig)
	_ = unix.Kill(-id, unix.SIGCONT)
	members, err := scan(map[int]bool{id: true})
	if err != nil {
		return
	}
	for _, m := range members {
		if m.pgrp != id {
			m.signal(sig)
			m.signal(unix.SIGCONT)
		}
	}
}

// liveGroups returns the members of each group or session that still run.
// Without /proc it tells what kill(2) tells, which counts zombies, and reports
// false.
func liveGroups(ids []int) (map[int][]int, bool) {
	want := make(map[int]bool, len(ids))
	for _, id := range ids {
		want[id] = true
	}
	live := make(map[int][]int)
	members, err := scan(want)
	if err != nil {
		for _, id := range ids {
			if unix.Kill(-id, 0) == nil {
				live[id] = []int{id}
			}
		}
		return live, false
	}
	for _, m := range members {
		id := m.session
		if !want[id] {
			id = m.pgrp
		}
		live[id] = append(live[id], m.pid)
	}
	for _, pids := range live {
		slices.Sort(pids)
	}
	return live, true
}

// A member is what /proc/PID/stat tells of a process.
type member struct {
	pid, pgrp, session int
	start              string // clock ticks since boot: with pid, an identity
}

// signal signals the process if it is still the one that was seen.
func (m member) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil { // an old kernel, or a sandbox
		_ = unix.Kill(m.pid, sig)
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if now, ok := readMember(m.pid); ok && now == m {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// procDir is changed by tests only.
var procDir = "/proc"

// scan returns the running processes whose group or session is wanted.
func scan(want map[int]bool) ([]member, error) {
	proc, err := os.Open(procDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = proc.Close() }()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, "self") {
		return nil, errors.New("/proc is not mounted")
	}
	var members []member
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		m, ok := readMember(pid)
		if ok && (want[m.session] || want[m.pgrp]) {
			members = append(members, m)
		}
	}
	return members, nil
}

// readMember reads by system calls: os.ReadFile takes twice as many, and there
// may be thousands of processes.
func readMember(pid int) (member, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return member{}, false
	}
	defer func() { _ = unix.Close(fd) }()
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return member{}, false
	}
	return parseStat(pid, buf[:n])
}

// parseStat reads a line of proc_pid_stat(5). It reports false for a process
// that has ended. The name in parentheses may hold any byte, so fields are
// counted from the last one on.
func parseStat(pid int, line []byte) (member, bool) {
	const state, pgrp, session, threads, start = 0, 2, 3, 17, 19
	f := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(f) <= start {
		return member{}, false
	}
	// A main thread that ended before the others is shown as a zombie.
	ended := f[state][0] == 'Z' && string(f[threads]) <= "1" || f[state][0] == 'X'
	m := member{pid: pid, start: string(f[start])}
	var errG, errS error
	m.pgrp, errG = strconv.Atoi(string(f[pgrp]))
	m.session, errS = strconv.Atoi(string(f[session]))
	return m, !ended && errG == nil && errS == nil
}
