package process

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A Process is a child that was started, with all that it starts. Its methods
// may be called from several goroutines at once. [Process.Close] must be
// called in the end, whether or not the child ended by itself; until then our
// ends of the pipes stay open.
type Process struct {
	// Set at construction.
	child   *os.Process
	group   *group
	waits   Waits
	stdin   *os.File
	stdout  *os.File
	stderr  *stderr
	closing chan struct{} // closed by Close
	exited  chan struct{} // closed by await: the child has ended, status and step stand
	release chan struct{} // closed by supervise: no more signals, await may reap
	reaped  chan struct{} // closed by await at its end
	gone    chan struct{} // closed by supervise at its end: end and endErr stand

	closeOnce sync.Once
	trying    atomic.Int32 // Atomic. The Step that is being tried.

	// Owned by await until exited is closed.
	status ExitStatus
	step   Step
	err    *ExitError

	// Owned by supervise until gone is closed.
	end    End
	endErr error
}

// Start starts the command. The context is asked before the fork only: it
// ends the starting, not the process. The error is always a [*StartError].
//
// Start does not wait for the guardian (see the package comment), and the
// child's group is registered with it before Start returns.
func Start(ctx context.Context, c Command) (*Process, error) {
	p, err := start(ctx, &c)
	if err != nil {
		return nil, &StartError{Path: c.Path, Dir: c.Dir, Err: err}
	}
	return p, nil
}

func start(ctx context.Context, c *Command) (*Process, error) {
	l, err := c.launch(ctx)
	if err != nil {
		return nil, err
	}
	var pipes pipes
	if err := pipes.open(); err != nil {
		return nil, err
	}
	child, group, err := spawn(l, pipes.child[:])
	pipes.closeChild()
	if err != nil {
		pipes.closeOurs()
		return nil, l.explain(err)
	}
	p := &Process{
		child:   child,
		group:   group,
		waits:   c.Waits.withDefaults(),
		stdin:   pipes.ours[0],
		stdout:  pipes.ours[1],
		stderr:  newStderr(pipes.ours[2], c.StderrTail, c.Stderr),
		closing: make(chan struct{}),
		exited:  make(chan struct{}),
		release: make(chan struct{}),
		reaped:  make(chan struct{}),
		gone:    make(chan struct{}),
	}
	p.stderr.run()
	go p.await()
	go p.supervise()
	return p, nil
}

// PID returns the child's process id, which on Unix is also the id of its
// process group and session.
func (p *Process) PID() int { return p.child.Pid }

// Stdin returns our end of the child's stdin. SetWriteDeadline works except on
// Windows, so a child that stops reading need not hold its writer. It is
// closed by Close and when the child ends, which unblocks a writer with
// [os.ErrClosed].
//
// Calling Fd on it, or on Stdout, takes the deadlines away; do not.
func (p *Process) Stdin() *os.File { return p.stdin }

// Stdout returns our end of the child's stdout. SetReadDeadline works except
// on Windows. It stays open when the child ends, so that what it wrote can
// still be read up to io.EOF, which comes when the group is gone; a process
// that escaped from the group can delay that, so a reader should set a
// deadline after Done. Close closes it, which unblocks a reader with
// [os.ErrClosed].
func (p *Process) Stdout() *os.File { return p.stdout }

// StderrTail returns the last bytes that the child wrote to stderr, as valid
// UTF-8 without ANSI sequences and control characters: it goes into error
// messages, and a server must not write to the terminal through them. CR and
// CR LF become LF, so each state of a progress bar is a line. After Done it
// holds all that the child wrote before it ended.
func (p *Process) StderrTail() string { return p.stderr.text() }

// StderrDropped returns how many bytes of stderr the sink of [Command] did not
// get, because it was too slow or had failed.
func (p *Process) StderrDropped() int64 { return p.stderr.dropped.Load() }

// Done is closed when the child has ended and its status is known, even while
// other members of its group still live.
func (p *Process) Done() <-chan struct{} { return p.exited }

// Err returns nil until Done is closed, and then an [*ExitError].
func (p *Process) Err() error {
	if !p.ended() {
		return nil
	}
	return p.err
}

func (p *Process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Close ends the child and its group, waits for that, and tells how they
// ended. It closes stdin and waits Waits.Exit, sends SIGTERM to the group and
// waits Waits.Term, sends SIGKILL and waits Waits.Kill; it goes on as soon as
// no member is left, and returns at once if none was. Then it closes our end
// of stdout. On Windows, which has no SIGTERM, that step is left out.
//
// Close may be called again and from several goroutines; all calls return the
// same. Its error is a [*SurvivorError], or nil.
func (p *Process) Close() (End, error) {
	p.closeOnce.Do(func() { close(p.closing) })
	<-p.gone
	// An error could only say that it is closed already.
	_ = p.stdout.Close()
	return p.end, p.endErr
}

// await waits for the child, tells, and reaps it once supervise needs the
// group's number no longer. Its owner is supervise.
func (p *Process) await() {
	defer close(p.reaped)
	p.status = awaitExit(p.child)
	p.step = Step(p.trying.Load())
	p.stderr.catchUp()
	p.err = &ExitError{Status: p.status, Stderr: p.stderr.text()}
	close(p.exited)
	<-p.release
	p.group.reap(p.child)
}

// supervise ends the group when Close is called or when the child has ended.
// Each of its waits is bounded, so Close is, which owns it.
func (p *Process) supervise() {
	defer close(p.gone)
	wait := p.waits.Group
	select {
	case <-p.exited:
	case <-p.closing:
		wait = p.waits.Exit
		p.try(StepExit)
	}
	// Also for a child that is gone: another member may hold the read end,
	// and then a blocked writer would wait for ever.
	_ = p.stdin.Close()

	ctx, cancel := p.dissolve(wait)
	defer cancel()
	close(p.release)
	p.stderr.close(ctx)
	select {
	case <-p.reaped:
	case <-ctx.Done():
	}
	p.conclude()
}

// dissolve runs the steps until no member of the group is left, or SIGKILL was
// not enough. The context that it returns bounds what remains to be done.
func (p *Process) dissolve(wait time.Duration) (context.Context, context.CancelFunc) {
	if p.waitGroup(wait, nil) {
		return context.WithTimeout(context.Background(), p.waits.Kill)
	}
	if p.group.terminates() {
		p.try(StepTerm)
		p.group.terminate()
		if p.waitGroup(p.waits.Term, nil) {
			return context.WithTimeout(context.Background(), p.waits.Kill)
		}
	}
	p.try(StepKill)
	ctx, cancel := context.WithTimeout(context.Background(), p.waits.Kill)
	p.group.kill()
	// Again at every look: a member outside the group may have forked between
	// being listed and being killed.
	if !p.waitGroup(p.waits.Kill, p.group.kill) {
		p.endErr = &SurvivorError{PIDs: p.left()}
	}
	return ctx, cancel
}

// try notes the step and, if the child is gone, that the others needed it.
func (p *Process) try(s Step) {
	p.trying.Store(int32(s))
	if p.ended() {
		p.end.GroupStep = s
	}
}

// waitGroup waits until the child has ended and no other member of its group
// lives, and reports whether that came to pass within the time. The first look
// at the group is free; then it is polled, since nothing tells of the end of a
// process that is not our child.
func (p *Process) waitGroup(d time.Duration, each func()) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	if !p.ended() {
		select {
		case <-p.exited:
		case <-timer.C:
			return false
		}
	}
	return pollUntil(timer.C, func() bool {
		if len(p.group.alive()) == 0 {
			return true
		}
		if each != nil {
			each()
		}
		return false
	})
}

// pollUntil calls ok at growing intervals until it holds or the time is over.
// The interval follows what a look costs, so that looking takes at most a
// fifth of the time.
func pollUntil(over <-chan time.Time, ok func() bool) bool {
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		begin := time.Now()
		if ok() {
			return true
		}
		next := time.NewTimer(max(pause, 4*time.Since(begin)))
		select {
		case <-over:
			next.Stop()
			return ok()
		case <-next.C:
		}
	}
}

// left lists who is still there.
func (p *Process) left() []int {
	if p.ended() {
		return p.group.alive()
	}
	return []int{p.child.Pid}
}

func (p *Process) conclude() {
	p.end.Status, p.end.Step = ExitStatus{Code: -1}, StepKill
	if p.ended() {
		p.end.Status, p.end.Step = p.status, p.step
	}
}

// pipes are the three pipes of a child, in the order of their descriptors.
type pipes struct {
	ours  [3]*os.File
	child [3]*os.File
}

func (p *pipes) open() error {
	for i := range p.ours {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeChild()
			p.closeOurs()
			return err
		}
		if i == 0 {
			p.child[i], p.ours[i] = r, w
			continue
		}
		p.ours[i], p.child[i] = r, w
	}
	return nil
}

func (p *pipes) closeChild() { closeFiles(p.child[:]) }
func (p *pipes) closeOurs()  { closeFiles(p.ours[:]) }

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
