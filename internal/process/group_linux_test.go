package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/process"
	"golang.org/x/sys/unix"
)

// timeout(1) does the same: it leaves the group but not the session.
func TestCloseEndsMemberThatLeftTheGroup(t *testing.T) {
	c := self("wrapper", "own-group")
	c.Waits = ignoresAll
	p := start(t, c)
	grandchild := pidIn(t, line(t, p))
	if end, err := p.Close(); err != nil {
		t.Errorf("Close = %v, %v", end, err)
	}
	if running(grandchild) {
		t.Error("grandchild runs")
	}
}

func TestGuardianHoldsNothingOfOurs(t *testing.T) {
	// A descriptor without close-on-exec, as ours may come from our parent.
	cmd := exec.Command(self("middle").Path, "1", "polite")
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	pipeR, pipeW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipeR.Close() }()
	cmd.ExtraFiles = []*os.File{null, pipeW}
	cmd.Env = append(cmd.Environ(), modeVar+"=middle", "SECRET_X=canary")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = pipeW.Close()
	var child, grandchild, guardian int
	if _, err := fmt.Fscan(out, &child, &grandchild, &guardian); err != nil {
		t.Error(err)
	}
	eventually(t, "a guardian without inherited descriptors", func() bool {
		open := openFiles(t, guardian)
		return len(open) == 4 && open[0] == os.DevNull && open[1] == os.DevNull &&
			open[2] == os.DevNull && strings.HasPrefix(open[3], "pipe:")
	})
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", guardian))
	if err != nil || strings.Contains(string(environ), "canary") {
		t.Errorf("environment %q, %v", environ, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", guardian))
	if err != nil || !strings.HasPrefix(string(status), "Name:\tmcpsplice-guard\n") {
		t.Errorf("status %q, %v", status, err)
	}
	if ignored := ignoredSignals(t, string(status)); ignored&(1<<(syscall.SIGTERM-1)) == 0 {
		t.Errorf("SIGTERM is not ignored: %x", ignored)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // signal: killed
	soon(t, 6*time.Second, "end of all", func() bool {
		return !running(child) && !running(grandchild) && !running(guardian)
	})
}

func ignoredSignals(t *testing.T, status string) uint64 {
	t.Helper()
	_, rest, _ := strings.Cut(status, "\nSigIgn:\t")
	hex, _, _ := strings.Cut(rest, "\n")
	set, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// PR_SET_PDEATHSIG fires at the end of the thread that forked.
func TestChildOutlivesThreadThatCalledStart(t *testing.T) {
	nothingLeft(t)
	var p *process.Process
	tid := onDoomedThread(func() { p = another(t, self("echo")) })
	task := fmt.Sprintf("/proc/self/task/%d", tid)
	eventually(t, "end of the thread", func() bool {
		_, err := os.Stat(task)
		return err != nil
	})
	if _, err := p.Stdin().Write([]byte("alive\n")); err != nil {
		t.Error(err)
	}
	if got := line(t, p); got != "alive" {
		t.Errorf("line %q", got)
	}
	if end, err := p.Close(); err != nil || end.Step != process.StepExit || !end.Status.Success() {
		t.Errorf("Close = %v, %v", end, err)
	}
}

// onDoomedThread runs f on a thread that ends then, and returns its number.
func onDoomedThread(f func()) int {
	thread := make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// The first thread never ends. While we hold it, another
			// goroutine cannot get it.
			defer runtime.UnlockOSThread()
			thread <- onDoomedThread(f)
			return
		}
		f()
		thread <- unix.Gettid() // no unlock: the thread ends with us
	}()
	return <-thread
}

// As process 1 of a container we get the orphans and have to reap them;
// nothingLeft sees to it.
func TestAdoptedGrandchildIsReaped(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	c := self("wrapper", "same-group")
	c.Waits = ignoresAll
	p := start(t, c)
	grandchild := pidIn(t, line(t, p))
	if _, err := p.Close(); err != nil {
		t.Error(err)
	}
	if unix.Kill(grandchild, 0) == nil {
		t.Error("grandchild is there")
	}
}

func TestCloseEndsGroupWithoutProc(t *testing.T) {
	process.HideProc(t)
	c := self("wrapper", "same-group")
	p := start(t, c)
	grandchild := pidIn(t, line(t, p))
	end, err := p.Close()
	if err != nil || end.Step != process.StepExit {
		t.Errorf("Close = %v, %v", end, err)
	}
	eventually(t, "end of the grandchild", func() bool { return !running(grandchild) })
}

func TestParseStat(t *testing.T) {
	stat := func(name, state, threads string) string {
		return "42 (" + name + ") " + state +
			" 1 40 39 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 " + threads + " 0 777 1 1"
	}
	for _, c := range []struct {
		line          string
		pgrp, session int
		want          bool
	}{
		{stat("node", "S", "7"), 40, 39, true},
		{stat("a) Z 1 (b", "R", "1"), 40, 39, true},
		{stat("dead", "Z", "1"), 0, 0, false},
		{stat("main thread ended", "Z", "2"), 40, 39, true},
		{stat("gone", "X", "0"), 0, 0, false},
		{"42 (short) S 1 40", 0, 0, false},
		{"", 0, 0, false},
	} {
		pgrp, session, ok := process.ParseStat(c.line)
		if ok != c.want || ok && (pgrp != c.pgrp || session != c.session) {
			t.Errorf("%q: %d, %d, %v", c.line, pgrp, session, ok)
		}
	}
}

// openFiles returns what descriptors lead to, without the runtime's own.
func openFiles(t *testing.T, pid int) map[int]string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	open := make(map[int]string)
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		target, err := os.Readlink(dir + e.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode:") {
			open[fd] = target
		}
	}
	return open
}
