package process_test

import (
	"syscall"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/process"
)

func TestTextOfStatus(t *testing.T) {
	for _, c := range []struct {
		status process.ExitStatus
		want   string
	}{
		{process.ExitStatus{}, "exit status 0"},
		{process.ExitStatus{Code: 3}, "exit status 3"},
		{process.ExitStatus{Code: -1, Signal: syscall.SIGKILL}, "signal: killed"},
		{process.ExitStatus{Code: -1, Signal: syscall.SIGABRT, Core: true}, "signal: aborted (core dumped)"},
		{process.ExitStatus{Code: -1}, "exit status unknown"},
	} {
		if got := c.status.String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.status, got, c.want)
		}
		if c.status.Success() != (c.want == "exit status 0") {
			t.Errorf("%+v: Success = %v", c.status, c.status.Success())
		}
	}
}

func TestTextOfEnd(t *testing.T) {
	for _, c := range []struct {
		end  process.End
		want string
	}{
		{process.End{}, "ended by itself (exit status 0)"},
		{process.End{Step: process.StepTerm, Status: process.ExitStatus{Code: 1}}, "terminated (exit status 1)"},
		{process.End{Step: process.StepExit, GroupStep: process.StepKill},
			"ended after stdin was closed (exit status 0), group killed"},
	} {
		if got := c.end.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
