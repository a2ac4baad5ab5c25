package process

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// An ExitStatus is how a process ended: a code, or the signal that ended it.
type ExitStatus struct {
	Code   int            // exit code; -1 when a signal ended the process
	Signal syscall.Signal // 0 when it exited; always 0 on Windows
	Core   bool           // whether the signal left a core dump
}

// Success reports whether the process exited with code 0.
func (s ExitStatus) Success() bool { return s.Code == 0 && s.Signal == 0 }

// String returns "exit status 3", "signal: killed", or the latter with " (core
// dumped)"; "exit status unknown" if somebody else in our process reaped it.
func (s ExitStatus) String() string {
	switch {
	case s.Signal != 0 && s.Core:
		return "signal: " + s.Signal.String() + " (core dumped)"
	case s.Signal != 0:
		return "signal: " + s.Signal.String()
	case s.Code < 0:
		return "exit status unknown"
	}
	return "exit status " + strconv.Itoa(s.Code)
}

// An ExitError is the end of a child as an error, also when it exited with
// code 0: whoever still talked to it has lost it.
type ExitError struct {
	Status ExitStatus
	Stderr string // what [Process.StderrTail] returned then
}

// Error returns the status and the end of stderr, at most 512 bytes of it, on
// one line: `exit status 3; stderr: "FATAL: missing API key"`.
func (e *ExitError) Error() string {
	last := lastLines(e.Stderr, 512)
	if last == "" {
		return e.Status.String()
	}
	return fmt.Sprintf("%s; stderr: %q", e.Status, last)
}

// lastLines returns the end of s without surrounding space, cut at a line's
// begin where one lies within limit, and else at a rune's.
func lastLines(s string, limit int) string {
	s = strings.TrimSpace(s)
	if len(s) <= limit {
		return s
	}
	s = s[len(s)-limit:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return strings.TrimLeft(strings.ToValidUTF8(s, ""), "\ufffd")
}

// A Step says what it took to end a child.
type Step int

// The steps, in the order in which they are tried.
const (
	StepNone Step = iota // the child ended by itself, unasked
	StepExit             // its stdin was closed
	StepTerm             // SIGTERM
	StepKill             // SIGKILL
)

// String returns a phrase for a log line, such as "terminated".
func (s Step) String() string {
	switch s {
	case StepNone:
		return "ended by itself"
	case StepExit:
		return "ended after stdin was closed"
	case StepTerm:
		return "terminated"
	case StepKill:
		return "killed"
	}
	return "step " + strconv.Itoa(int(s))
}

// An End tells how a child and its group ended.
type End struct {
	// Status of the child; Code is -1 and Signal 0 if it had not ended.
	Status ExitStatus
	// Step that ended the child.
	Step Step
	// GroupStep is the last step that other members of the group needed:
	// [StepNone] if none outlived the child and its grace.
	GroupStep Step
}

// String returns both steps and the status: "terminated (exit status 0)".
func (e End) String() string {
	s := fmt.Sprintf("%v (%v)", e.Step, e.Status)
	if e.GroupStep > e.Step {
		s += fmt.Sprintf(", group %v", e.GroupStep)
	}
	return s
}

// A SurvivorError names processes of a group that did not disappear within
// [Waits].Kill after SIGKILL: the kernel holds them, or they belong to another
// user.
type SurvivorError struct {
	PIDs []int
}

// Error lists the process ids.
func (e *SurvivorError) Error() string {
	return fmt.Sprintf("processes that survive SIGKILL: %v", e.PIDs)
}
