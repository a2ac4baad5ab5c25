//go:build unix

package process_test

import (
	"bufio"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/process"
)

func TestNothingOutlivesOurKill(t *testing.T) {
	c := self("middle", "4", "stubborn")
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(cmd.Environ(), modeVar+"=middle")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	var pids []int
	for f := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		if !running(pid) {
			t.Errorf("%d does not run", pid)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 9 {
		t.Errorf("process ids: %v", pids)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // signal: killed
	soon(t, 6*time.Second, "end of all", func() bool {
		return !slices.ContainsFunc(pids, running)
	})
}

func guardianRuns() bool { return process.GuardianPID() != 0 }

func TestGuardianLivesAsLongAsChildren(t *testing.T) {
	first := start(t, self("echo"))
	second := another(t, self("echo"))
	eventually(t, "start of the guardian", guardianRuns)
	pid := process.GuardianPID()
	if _, err := first.Close(); err != nil {
		t.Error(err)
	}
	if process.GuardianPID() != pid || !running(pid) {
		t.Error("the guardian ended before the last child")
	}
	if _, err := second.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "end of the guardian", func() bool { return !running(pid) && !guardianRuns() })
	if err := process.GuardianErr(); err != nil {
		t.Error(err)
	}
}

func TestGuardianIsReplacedWhenKilled(t *testing.T) {
	start(t, self("echo"))
	eventually(t, "start of the guardian", guardianRuns)
	pid := process.GuardianPID()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "notice", func() bool { return process.GuardianPID() != pid })
	// Too short a life to try again at once, unless the machine is slow.
	if err := process.GuardianErr(); err != nil && err.Error() != "guardian ended early: signal: killed" {
		t.Errorf("GuardianErr = %v", err)
	}
	another(t, self("echo"))
	eventually(t, "start of another", func() bool { return guardianRuns() && process.GuardianErr() == nil })
}

func TestGuardianReadsSplitLines(t *testing.T) {
	got := process.GroupsOf("+12\n+1", "3\n", "-12", "\n+1\n+0\n+-5\nx7\n+\n\n+14", "")
	if want := []int{13}; !slices.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
}
