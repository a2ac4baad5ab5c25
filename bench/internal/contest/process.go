package contest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/memstats"
	"github.com/mcpsplice/mcpsplice/bench/internal/raw"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A Process is a started contestant with a client connected to it.
type Process struct {
	Client raw.Client

	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	addr    string        // that it serves HTTP at
	memAddr string
	stderr  *tail
}

// StartOptions say how to start a contestant.
type StartOptions struct {
	Revision wire.Revision
	// MemStats asks for heap counters.
	MemStats bool
	// Home is a directory for the contestant's own files, so that it neither
	// reads nor writes those of whoever measures.
	Home string
}

const (
	listenTime = 10 * time.Second
	listenPoll = 200 * time.Microsecond
)

// Start starts a contestant, waits until it can be spoken to, greets it and
// lists its tools. The process ends with ctx at the latest.
func (c *Contestant) Start(ctx context.Context, p Paths, o StartOptions) (*Process, error) {
	proc, err := c.start(ctx, p, o)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	if err := proc.Client.Open(); err != nil {
		proc.Stop()
		return nil, fmt.Errorf("greeting %s: %w%s", c.Name, err, proc.stderr)
	}
	return proc, nil
}

func (c *Contestant) start(ctx context.Context, p Paths, o StartOptions) (*Process, error) {
	proc := &Process{ended: make(chan struct{}), stderr: new(tail)}
	var addr string
	var err error
	if c.Transport == HTTP {
		if addr, err = freeAddr(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, p.of(c.Program), c.Args(p, addr)...)
	cmd.Stderr = proc.stderr
	cmd.Env = append(os.Environ(), "HOME="+o.Home,
		"XDG_CONFIG_HOME="+o.Home, "XDG_CACHE_HOME="+o.Home, "XDG_STATE_HOME="+o.Home)
	if o.MemStats {
		if proc.memAddr, err = freeAddr(); err != nil {
			return nil, err
		}
		cmd.Env = append(cmd.Env, memstats.Env+"="+proc.memAddr)
	}
	// A group of its own, so that a bridge's child ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	proc.cmd = cmd

	if c.Transport == Stdio {
		return proc, proc.startPipe(c.Peer(o.Revision))
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go proc.wait()
	if err := proc.awaitListening(ctx, addr); err != nil {
		proc.Stop()
		return nil, err
	}
	proc.addr, proc.Client = addr, raw.NewHTTP(addr, c.Peer(o.Revision))
	return proc, nil
}

func (p *Process) startPipe(peer raw.Peer) error {
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stdout = theirs
	err = p.cmd.Start()
	theirs.Close()
	if err != nil {
		stdout.Close()
		return err
	}
	go p.wait()
	p.Client = raw.NewPipe(stdin, stdout, peer)
	return nil
}

func (p *Process) wait() {
	p.cmd.Wait()
	close(p.ended)
}

func (p *Process) awaitListening(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, listenTime)
	defer cancel()
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("it ended%s", p.stderr)
		case <-ctx.Done():
			return fmt.Errorf("waiting for it to listen at %s: %w%s", addr, ctx.Err(), p.stderr)
		case <-time.After(listenPoll):
		}
	}
}

// Addr returns the address that the process serves HTTP at, empty for stdio.
func (p *Process) Addr() string { return p.addr }

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// MemStats connects to the process's heap counters.
func (p *Process) MemStats(ctx context.Context) (*memstats.Reader, error) {
	if p.memAddr == "" {
		return nil, errors.New("started without heap counters")
	}
	if err := p.awaitListening(ctx, p.memAddr); err != nil {
		return nil, err
	}
	return memstats.Dial(p.memAddr)
}

// Stderr returns the end of what the process wrote to stderr, for an error
// text; it is empty or begins with a line break.
func (p *Process) Stderr() string { return p.stderr.String() }

// Stop ends the process and its children, and waits for the end.
func (p *Process) Stop() {
	if p.Client != nil {
		p.Client.Close()
	}
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// freeAddr returns a loopback address that nobody listens at.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	// Guarded by mu.
	kept []byte
}

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 2 << 10
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-most):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := bytes.TrimSpace(t.kept); len(text) > 0 {
		return "\nstderr: " + string(text)
	}
	return ""
}
