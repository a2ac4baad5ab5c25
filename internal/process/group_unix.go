//go:build unix

package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// A group is a child's session and process group; both bear the child's
// process id. Its methods are called by supervise alone, and while the id is
// ours (see the package comment), except reap, which ends that time.
type group struct {
	id int
}

// spawn starts the child in a session of its own. A session rather than just a
// group: it has no terminal, so neither Ctrl+Z nor a read from /dev/tty can
// stop a server, and its number also finds members that changed their group.
func spawn(l *launch, files []*os.File) (*os.Process, *group, error) {
	attr := &os.ProcAttr{Dir: l.dir, Env: l.env, Files: files}
	child, err := fork(l.path, l.argv, attr)
	if err != nil {
		return nil, nil, err
	}
	guard.add(child.Pid)
	return child, &group{id: child.Pid}, nil
}

// terminates reports whether there is a polite signal.
func (g *group) terminates() bool { return true }

func (g *group) terminate() { signalGroup(g.id, unix.SIGTERM) }

func (g *group) kill() { signalGroup(g.id, unix.SIGKILL) }

// alive returns the members that still run, zombies not counted. It is asked
// after the child has ended. Where they cannot be told from the zombie that
// the child is now, it kills what there may be and believes in that.
func (g *group) alive() []int {
	live, exact := liveGroups([]int{g.id})
	if !exact {
		g.kill()
		return nil
	}
	return live[g.id]
}

// reap takes the child's exit status from the kernel, which frees its numbers.
// The guardian forgets the group before, so that it never knows a number that
// could be somebody else's.
func (g *group) reap(child *os.Process) {
	guard.remove(g.id)
	// Linux has told the status; elsewhere this is the second call and fails.
	_, _ = child.Wait()
	g.reapAdopted()
	forkDone()
}

// reapAdopted reaps grandchildren that became our children when theirs ended:
// the case where we are process 1 of a container, or a subreaper. They are dead
// and nobody else's.
func (g *group) reapAdopted() {
	for {
		pid, err := unix.Wait4(-g.id, nil, unix.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}
