//go:build unix

package process_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/process"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test binary is its own child: the variable says as what.
const modeVar = "PROCESS_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVar); mode != "" {
		// Not os.Exit: under the race detector that takes a second.
		syscall.Exit(runMode(mode, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

func runMode(mode string, args []string) int {
	switch mode {
	case "save": // leaves on EOF, after something that takes a while
		say("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		<-time.After(150 * time.Millisecond)
		if err := os.WriteFile(args[0], []byte("saved"), 0o600); err != nil {
			return 1
		}
		return 0
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
		return 0
	case "obeys-term":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		say("ready")
		<-term
		return 7
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		say("ready " + strconv.Itoa(os.Getpid()))
		forever()
	case "wrapper": // starts a grandchild with our pipes, leaves on EOF with 0, on input with 5
		return wrapper(args[0])
	case "flood":
		return flood(args[0])
	case "fatal":
		fmt.Fprintln(os.Stderr, "\x1b[31mFATAL: missing API key\x1b[0m")
		return 3
	case "closes-stdout":
		_ = os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 4
	case "environ":
		say(strings.Join(os.Environ(), "\n"))
		return 0
	case "inspect":
		return inspect()
	case "middle":
		return middle(args)
	}
	return 99
}

func say(s string) { fmt.Println(s) }

func forever() { <-time.After(time.Hour) }

func wrapper(how string) int {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), modeVar+"=stubborn")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if how == "own-group" {
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	if err := c.Start(); err != nil {
		return 1
	}
	if n, _ := os.Stdin.Read(make([]byte, 1)); n == 1 {
		return 5
	}
	return 0
}

// flood writes MiB of progress without a line feed, and bytes that are no
// UTF-8, to stderr; then "done" to stdout.
func flood(mib string) int {
	n, err := strconv.Atoi(mib)
	if err != nil {
		return 1
	}
	block := bytes.Repeat([]byte("\r50%\xff\x1b[K\r\r\r\r\r\r\r\r"), 1<<16)
	for range n {
		if _, err := os.Stderr.Write(block); err != nil {
			return 1
		}
	}
	_, _ = os.Stderr.WriteString("\rlast words")
	say("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// inspect tells what a child can see of how it was started.
func inspect() int {
	for fd := range 3 {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return 1
		}
		say(fmt.Sprintf("fd%d nonblock=%v", fd, flags&unix.O_NONBLOCK != 0))
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return 1
	}
	dir, err := os.Getwd()
	if err != nil {
		return 1
	}
	say(fmt.Sprintf("leader=%v", session == os.Getpid() && unix.Getpgrp() == os.Getpid()))
	say("dir=" + dir)
	say("pwd=" + os.Getenv("PWD"))
	say(fmt.Sprintf("args=%q", os.Args))
	return 0
}

// middle starts children through the package and waits for its own kill -9. It
// says all process ids that must be gone then.
func middle(args []string) int {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return 1
	}
	pids := []string{}
	for i := range n {
		c := self("wrapper", "same-group")
		if i > 0 || args[1] == "polite" {
			c = process.Command{Path: "sh", Args: []string{"-c", shells[args[1]]}}
		}
		p, err := process.Start(context.Background(), c)
		if err != nil {
			return 1
		}
		line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
		if err != nil {
			return 1
		}
		pids = append(pids, strconv.Itoa(p.PID()), strings.Fields(line)[1])
	}
	for !guardianReady() {
		<-time.After(time.Millisecond)
	}
	say(strings.Join(append(pids, strconv.Itoa(process.GuardianPID())), " "))
	forever()
	return 0
}

// guardianReady reports whether the guardian has come to its work, or on
// systems without /proc whether it was started.
func guardianReady() bool {
	pid := process.GuardianPID()
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return pid != 0 && (err != nil || string(comm) == "mcpsplice-guard\n")
}

// Shells that leave on EOF. The child of the stubborn one holds stdout and
// ignores SIGTERM.
var shells = map[string]string{
	"polite":   `sleep 1000 & echo ready $!; read x`,
	"stubborn": `trap "" TERM; sleep 1000 & echo ready $!; read x`,
}

// self is a command that runs this binary in a mode.
func self(mode string, args ...string) process.Command {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return process.Command{
		Path: exe,
		Args: args,
		Env:  map[string]string{modeVar: mode, "GOCOVERDIR": os.TempDir()},
		// A child that is known to react gets all the time that it needs.
		Waits: process.Waits{Exit: patience, Term: patience, Kill: patience},
	}
}

// patience is how long a machine with other things to do may take for what is
// done in milliseconds.
const patience = 20 * time.Second

// Waits for children that are known not to react.
var (
	ignoresEOF = process.Waits{Exit: 30 * time.Millisecond, Term: patience, Kill: patience}
	ignoresAll = process.Waits{
		Exit:  30 * time.Millisecond,
		Term:  30 * time.Millisecond,
		Group: 30 * time.Millisecond,
		Kill:  patience,
	}
)

// start starts a command and makes sure that the test leaves nothing.
func start(t *testing.T, c process.Command) *process.Process {
	t.Helper()
	nothingLeft(t)
	return another(t, c)
}

// another starts one more in a test that called start or nothingLeft.
func another(t *testing.T, c process.Command) *process.Process {
	t.Helper()
	p, err := process.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.Close() })
	return p
}

// nothingLeft checks at the test's end that there is no child process and no
// more descriptors than now.
func nothingLeft(t *testing.T) {
	t.Helper()
	before := descriptors(t)
	t.Cleanup(func() {
		// Close waits for the guardian's end, but not for ever.
		eventually(t, "end of all child processes", childless)
		if n := process.GuardianGroups(); n != 0 {
			t.Errorf("%d groups registered", n)
		}
		eventually(t, fmt.Sprintf("at most %d descriptors", before), func() bool {
			return descriptors(t) <= before
		})
	})
}

// descriptors counts ours, with those that the runtime keeps.
func descriptors(t *testing.T) int {
	t.Helper()
	// The poller's own are made with the first pipe.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	_ = w.Close()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// line reads one line, which must come within seconds.
func line(t *testing.T, p *process.Process) string {
	t.Helper()
	if err := p.Stdout().SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var b []byte
	for one := make([]byte, 1); ; {
		if _, err := p.Stdout().Read(one); err != nil {
			t.Fatalf("reading a line: %v (got %q, stderr %q)", err, b, p.StderrTail())
		}
		if one[0] == '\n' {
			break
		}
		b = append(b, one[0])
	}
	if err := p.Stdout().SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pidIn returns the process id that ends a "ready PID" line.
func pidIn(t *testing.T, line string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimPrefix(line, "ready "))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// eventually waits for a condition that nothing announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	soon(t, patience, what, ok)
}

// soon is eventually with a time that is part of the promise.
func soon(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	over := time.After(d)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-over:
			t.Fatalf("not within %v: %s", d, what)
		case <-tick.C:
		}
	}
}

// within waits for a channel.
func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
	}
}

// running reports whether a process runs; a zombie does not.
func running(pid int) bool {
	if unix.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		_, noProc := os.Stat("/proc/self/stat")
		return noProc != nil
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}
