package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/process"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A Command says how to start a server. Only Path is required.
type Command struct {
	Path string            // program; without a slash it is looked up in PATH
	Args []string          // arguments, without the program's name; no shell sees them
	Dir  string            // working directory; default ours
	Env  map[string]string // variables besides a minimal set of ours (PATH, HOME, LANG and the like)
}

// Find returns the program that [Dial] would start now, as an absolute path, or why it
// would start none.
func (c *Command) Find() (string, error) {
	p := process.Command{Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env}
	return p.Find()
}

// DialOptions configure [Dial]. The zero value is usable.
type DialOptions struct {
	transport.DialOptions

	// Stderr gets what the child writes to stderr; it may be slow, and then
	// misses some. Nil for nobody; the last 64 KiB are kept for errors in any
	// case.
	Stderr  io.Writer
	MaxLine int // bytes; default jsonrpc.DefaultMaxLineDialing
	// StartTimeout bounds start, probe and handshake together. Default
	// DefaultStartTimeout.
	StartTimeout time.Duration
	// ExitWait is how long the child may take to exit once its stdin is
	// closed, and again after SIGTERM, before the next harder step. Default 2 s.
	ExitWait time.Duration
	Tap      transport.Tap // nil for none
}

// DefaultStartTimeout is how long starting a server may take, until it has
// answered the handshake.
const DefaultStartTimeout = 30 * time.Second

// A Conn is a connection to a server that runs as a child of this process.
type Conn struct {
	*transport.Conn
	child   *process.Process
	output  output
	running sync.WaitGroup
	closing sync.Once
	ended   chan struct{} // closed when the child and its group are gone
}

// Dial starts a server and connects to it. Ctx ends the dialing, not the
// connection. Its error is a [StartError]: that of a server that would not run names
// its exit status and the end of its stderr.
//
// A legacy server that exits at the probe for its era is started again without
// one. If that fails as well, the error is a [transport.ErrProbeEnded]: there were
// two starts.
func Dial(ctx context.Context, cmd Command, opts *DialOptions) (*Conn, error) {
	var o DialOptions
	if opts != nil {
		o = *opts
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = DefaultStartTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.StartTimeout, fmt.Errorf("the server did not answer within the start timeout of %v", o.StartTimeout))
	defer cancel()
	c, err := dial(ctx, cmd, &o)
	if errors.Is(err, transport.ErrProbeEnded) && ctx.Err() == nil {
		o.Era = mcp.Legacy
		if c, err = dial(ctx, cmd, &o); err != nil {
			err = &restartedError{err}
		}
	}
	return c, err
}

// A restartedError is why a server did not run that had exited before, when it was
// probed.
type restartedError struct{ error }

func (e *restartedError) Unwrap() error      { return e.error }
func (*restartedError) Is(target error) bool { return target == transport.ErrProbeEnded }

func dial(ctx context.Context, cmd Command, o *DialOptions) (*Conn, error) {
	child, err := process.Start(ctx, process.Command{
		Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env, Stderr: o.Stderr,
		Waits: process.Waits{Exit: o.ExitWait, Term: o.ExitWait},
	})
	if err != nil {
		err = &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: err, Public: "the server does not start"}
		return nil, &StartError{Path: cmd.Path, Err: err}
	}
	widen(child.Stdin())
	widen(child.Stdout())
	c := &Conn{child: child, ended: make(chan struct{})}
	c.output.child = child
	c.output.said.Store(new(beginning))
	link := transport.NewLineLink(&c.output, child.Stdin(), c.end, transport.LineOptions{
		MaxLine: o.MaxLine, MaxWait: cmp.Or(max(o.MaxCall, 0), transport.DefaultMaxCall), Explain: c.explain, Tap: o.Tap,
	})
	c.running.Go(c.watch)
	c.Conn, err = transport.Dial(ctx, link, o.DialOptions)
	if err != nil {
		c.running.Wait()
		return nil, c.failed(cmd.Path, err)
	}
	c.output.said.Store(nil)
	return c, nil
}

// lastWords is how long nothing may come from a child that has exited before its
// output counts as ended, and how long the exit of one that has closed its
// output is waited for.
const lastWords = 250 * time.Millisecond

// maxLastWords is how long the output of a child that has exited is read at
// most: something else may hold it open and write on.
const maxLastWords = 2 * time.Second

// An output is what a child writes to stdout. When the child has exited its
// reader is woken by a deadline; what is still in the pipe is read all the same,
// however late the reader comes to it.
type output struct {
	child *process.Process
	until time.Time                 // when reading ends in any case; zero while the child runs; owned by the reader
	said  atomic.Pointer[beginning] // nil once the server is connected to

	mu          sync.Mutex
	deadline    time.Time // zero while the child runs, guarded by mu
	interrupted bool      // guarded by mu
}

// Read implements [io.Reader].
func (o *output) Read(p []byte) (int, error) {
	n, err := o.read(p)
	keep(&o.said, p[:n])
	return n, err
}

func (o *output) read(p []byte) (int, error) {
	n, err := o.child.Stdout().Read(p)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if o.isInterrupted() {
		return 0, jsonrpc.ErrInterrupted
	}
	now := time.Now()
	if o.until.IsZero() {
		o.until = now.Add(maxLastWords)
	}
	if now.After(o.until) {
		return 0, err
	}
	if err := o.readUntil(now.Add(lastWords)); err != nil {
		return 0, err
	}
	n, err = o.child.Stdout().Read(p)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && o.isInterrupted() {
		err = jsonrpc.ErrInterrupted
	}
	return n, err
}

// readUntil sets the deadline of a child that has exited.
func (o *output) readUntil(deadline time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deadline = deadline
	if o.interrupted {
		return nil
	}
	return o.child.Stdout().SetReadDeadline(deadline)
}

func (o *output) isInterrupted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.interrupted
}

// Interrupt implements [transport.Interruptible].
func (o *output) Interrupt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.interrupted = true
	// An error would say that it has been closed.
	_ = o.child.Stdout().SetReadDeadline(time.Unix(1, 0))
}

// Resume implements [transport.Interruptible].
func (o *output) Resume() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.interrupted {
		o.interrupted = false
		_ = o.child.Stdout().SetReadDeadline(o.deadline) // as above
	}
}

// watch wakes the reader when the child has exited, even if something else holds
// its output open.
func (c *Conn) watch() {
	select {
	case <-c.child.Done():
		// An error would say that it has been closed.
		_ = c.output.readUntil(time.Now())
	case <-c.ended:
	}
}

// explain returns why the child's output ended, and has the child end: "EOF on
// stdout" is the server's way to shut down.
func (c *Conn) explain(err error) error {
	select {
	case <-c.child.Done():
	case <-time.After(lastWords):
	}
	exit := c.child.Err() // before it exits because of us
	c.running.Go(func() {
		_ = c.end() // Close returns the error
	})
	if exit != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("the server exited: %w", exit)
	}
	return err
}

// end ends the child and all that it has started.
func (c *Conn) end() error {
	_, err := c.child.Close()
	c.closing.Do(func() { close(c.ended) })
	return err
}

// Close ends the connection and the child, and returns when nothing of it is
// left; see [transport.Edge]. It takes as long as the child needs, but no more
// than twice ExitWait and a second.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.running.Wait()
	return err
}

// Retire ends the connection and the child as Close does, but not before the calls in
// flight have ended; see [transport.Conn.Retire].
func (c *Conn) Retire(ctx context.Context) error {
	err := c.Conn.Retire(ctx)
	c.running.Wait()
	return err
}

// PID returns the process id of the child.
func (c *Conn) PID() int { return c.child.PID() }

// Stderr returns the last that the child wrote to stderr, at most 64 KiB.
func (c *Conn) Stderr() string { return c.child.StderrTail() }

// Gone is closed when the child and everything that it started have ended.
func (c *Conn) Gone() <-chan struct{} { return c.ended }
