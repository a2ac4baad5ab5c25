//go:build unix && !linux

package process

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// fork needs no thread of its own here: there is no parent-death signal.
func fork(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	attr.Sys = &syscall.SysProcAttr{Setsid: true}
	return os.StartProcess(path, argv, attr)
}

func forkDone() {}

// awaitExit waits for the child's end and reaps it at once: waitid(2) with
// WNOWAIT is missing on some systems and does not tell the signal on others.
// Members of the group that live on keep its number; a group without members
// is not signalled, save between a look and the signal that follows it.
func awaitExit(child *os.Process) ExitStatus {
	state, err := child.Wait()
	if err != nil {
		return ExitStatus{Code: -1}
	}
	w, ok := state.Sys().(syscall.WaitStatus)
	if ok && w.Signaled() {
		return ExitStatus{Code: -1, Signal: w.Signal(), Core: w.CoreDump()}
	}
	return ExitStatus{Code: state.ExitCode()}
}

// signalGroup signals the group; SIGCONT lets a stopped member get the signal.
func signalGroup(id int, sig unix.Signal) {
	_ = unix.Kill(-id, sig)
	_ = unix.Kill(-id, unix.SIGCONT)
}

// liveGroups returns the groups that kill(2) finds, each with its own number
// in place of its members', which it does not tell.
func liveGroups(ids []int) (map[int][]int, bool) {
	live := make(map[int][]int)
	for _, id := range ids {
		err := unix.Kill(-id, 0)
		// Darwin says EPERM of a group of zombies.
		if err == nil || errors.Is(err, unix.EPERM) && runtime.GOOS != "darwin" {
			live[id] = []int{id}
		}
	}
	return live, true
}
