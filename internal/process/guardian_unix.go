//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// guard is the one of this process: group numbers are the system's, so a
// second list of them could only be a part of the first.
var guard = &guardian{groups: make(map[int]bool)}

// GuardianErr returns why there is no guardian (see the package comment)
// although there are children, or nil. It returns nil while one is being
// started. It is never set on Windows.
func GuardianErr() error {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	return guard.err
}

// A guardian keeps a keeper process while groups are registered. A keeper that
// dies is replaced, unless it was short-lived: then the next registration
// tries again.
type guardian struct {
	// Guarded by mu. It is held over a write to the keeper's pipe, of a few
	// bytes and with a deadline: a group must be known before add returns.
	mu     sync.Mutex
	groups map[int]bool
	keeper *keeper // nil when there is none, not even on its way
	err    error
}

// A keeper is our side of one guardian process.
type keeper struct {
	done chan struct{} // closed when the process was reaped or not started

	// Guarded by guardian.mu. Nil until it runs.
	process *os.Process
	pipe    *os.File
}

const (
	keeperWriteWait = 100 * time.Millisecond
	keeperEndWait   = time.Second
	keeperShortLife = time.Second
)

// add registers a group. It does not wait for a keeper that is on its way.
func (g *guardian) add(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[id] = true
	if g.keeper == nil {
		g.launch()
		return
	}
	g.keeper.send('+', id)
}

// remove forgets a group. With the last one it ends the keeper and waits for
// its end, which takes about a millisecond, and one second at most.
func (g *guardian) remove(id int) {
	g.mu.Lock()
	delete(g.groups, id)
	k := g.keeper
	if k == nil {
		if len(g.groups) == 0 {
			g.err = nil
		}
		g.mu.Unlock()
		return
	}
	k.send('-', id)
	if len(g.groups) > 0 {
		g.mu.Unlock()
		return
	}
	g.keeper, g.err = nil, nil
	k.stop()
	g.mu.Unlock()

	late := time.NewTimer(keeperEndWait)
	defer late.Stop()
	select {
	case <-k.done:
	case <-late.C:
	}
}

// launch starts a keeper in the background. It is called with mu held.
func (g *guardian) launch() {
	g.keeper = &keeper{done: make(chan struct{})}
	go g.run(g.keeper)
}

// run starts the keeper's process, tells it the groups, and reaps it. Its
// owner is the remove of the last group.
func (g *guardian) run(k *keeper) {
	defer close(k.done)
	early := g.early()
	process, pipe, err := startKeeper(early)
	begin := time.Now()

	g.mu.Lock()
	current := g.keeper == k
	if err != nil {
		if current {
			g.keeper, g.err = nil, fmt.Errorf("starting the guardian: %w", err)
		}
		g.mu.Unlock()
		return
	}
	k.process, k.pipe = process, pipe
	if current {
		g.err = nil
		for _, id := range early {
			if !g.groups[id] {
				k.send('-', id)
			}
		}
		for id := range g.groups {
			k.send('+', id)
		}
	} else {
		k.stop()
	}
	g.mu.Unlock()

	state, err := process.Wait()

	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keeper != k {
		return
	}
	_ = pipe.Close()
	g.keeper = nil
	g.err = fmt.Errorf("guardian ended early: %v", state)
	if err != nil {
		g.err = fmt.Errorf("waiting for the guardian: %w", err)
	}
	if time.Since(begin) > keeperShortLife {
		g.launch()
	}
}

// early returns the groups that a keeper is told of before it starts, since we may
// be killed as soon as there is one: no more than fit into a pipe that nobody
// reads yet.
func (g *guardian) early() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	var early []int
	for id := range g.groups {
		if early = append(early, id); len(early) == maxEarly {
			break
		}
	}
	return early
}

// maxEarly groups take less than the 4096 bytes that any pipe holds.
const maxEarly = 256

// send tells the keeper of a change. An error means that it is gone or stopped;
// run notices the former, and the latter nobody can mend.
func (k *keeper) send(sign byte, id int) {
	if k.pipe == nil {
		return // run sends the whole list
	}
	_ = k.pipe.SetWriteDeadline(time.Now().Add(keeperWriteWait))
	_, _ = fmt.Fprintf(k.pipe, "%c%d\n", sign, id)
}

// stop ends a keeper that has no groups. The end of the pipe would do; the
// signal also reaches one that has not come so far as to read it.
func (k *keeper) stop() {
	if k.pipe == nil {
		return // run stops it
	}
	_ = k.pipe.Close()
	_ = k.process.Kill()
}

// startKeeper runs our own executable again, as a guardian, and returns the
// write end of its pipe, in which the early groups are already.
func startKeeper(early []int) (*os.Process, *os.File, error) {
	exe, err := ownExecutable()
	if err != nil {
		return nil, nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = null.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = r.Close() }()
	var list []byte
	for _, id := range early {
		list = fmt.Appendf(list, "+%d\n", id)
	}
	if _, err := w.Write(list); err != nil {
		_ = w.Close()
		return nil, nil, err
	}
	process, err := os.StartProcess(exe, []string{keeperName}, &os.ProcAttr{
		Dir:   "/",
		Env:   keeperEnv(os.Environ()),
		Files: []*os.File{null, null, null, r},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = w.Close()
		return nil, nil, err
	}
	return process, w, nil
}

// ownExecutable returns the path of this very executable. Linux's link leads
// there even when the file was replaced or removed by an upgrade.
func ownExecutable() (string, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-buildmode" && slices.Contains(foreignModes, s.Value) {
				return "", errors.New("build mode " + s.Value + ": the executable is not ours")
			}
		}
	}
	const self = "/proc/self/exe"
	if runtime.GOOS == "linux" {
		if _, err := os.Stat(self); err == nil {
			return self, nil
		}
	}
	return os.Executable()
}

// In these modes the executable is a program that loaded us.
var foreignModes = []string{"c-archive", "c-shared", "plugin"}

// keeperEnv holds none of our variables but those that a dynamically linked
// executable may need to start.
func keeperEnv(parent []string) []string {
	env := []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	for _, kv := range parent {
		if strings.HasPrefix(kv, "LD_LIBRARY_PATH=") || strings.HasPrefix(kv, "DYLD_LIBRARY_PATH=") {
			env = append(env, kv)
		}
	}
	return env
}
