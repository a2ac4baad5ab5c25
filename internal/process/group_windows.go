package process

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A group is a job object, which the child's descendants cannot leave. It is
// set to end its processes when its last handle is closed, and the system
// closes ours when we end, however that happens: no guardian is needed.
//
// The child is put into the job right after its start. What it started before
// that (some microseconds) stays outside; starting it suspended would need the
// handle of its thread, which package os does not give. A job that cannot be
// made, as within some old sandboxes, leaves the child alone to be killed.
type group struct {
	job   windows.Handle // 0 for none
	child *os.Process
}

func spawn(l *launch, files []*os.File) (*os.Process, *group, error) {
	path, line, err := l.throughCmd()
	if err != nil {
		return nil, nil, err
	}
	child, err := os.StartProcess(path, l.argv, &os.ProcAttr{
		Dir: l.dir, Env: l.env, Files: files,
		Sys: &syscall.SysProcAttr{
			HideWindow:    true,
			CmdLine:       line,
			CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
		},
	})
	if err != nil {
		return nil, nil, err
	}
	g := &group{child: child}
	if job, err := newJob(); err == nil {
		g.job = job
		g.assign()
	}
	return child, g, nil
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

func (g *group) assign() {
	var assigned error
	err := g.child.WithHandle(func(h uintptr) {
		assigned = windows.AssignProcessToJobObject(g.job, windows.Handle(h))
	})
	if err != nil || assigned != nil {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}

// terminates reports false: a process without a window or a console of ours
// has no polite signal but the end of its stdin.
func (g *group) terminates() bool { return false }

func (g *group) terminate() {}

func (g *group) kill() {
	if g.job == 0 {
		_ = g.child.Kill()
		return
	}
	_ = windows.TerminateJobObject(g.job, 1)
}

// alive returns up to 256 members of the job.
func (g *group) alive() []int {
	if g.job == 0 {
		return nil
	}
	var list struct {
		assigned, listed uint32
		ids              [256]uintptr
	}
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil && !errors.Is(err, windows.ERROR_MORE_DATA) {
		return nil
	}
	var pids []int
	for _, id := range list.ids[:min(int(list.listed), len(list.ids))] {
		pids = append(pids, int(id))
	}
	return pids
}

// awaitExit waits for the child's end. Its id stays reserved while os.Process
// holds the handle, which is of no weight here: the job is what is ended.
func awaitExit(child *os.Process) ExitStatus {
	state, err := child.Wait()
	if err != nil {
		return ExitStatus{Code: -1}
	}
	return ExitStatus{Code: state.ExitCode()}
}

func (g *group) reap(*os.Process) {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
	}
}

// GuardianErr returns nil: job objects need no guardian.
func GuardianErr() error { return nil }
