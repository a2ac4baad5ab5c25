package drive

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/mcpsplice/mcpsplice/bench/internal/raw"
)

// ConnectRaw connects the raw client, which is what the others are compared with.
func ConnectRaw(_ context.Context, t *Task) (Runner, error) {
	peer := raw.Peer{
		Revision: t.Revision, Copied: t.Kind == Copied, Typed: t.Kind == Typed || t.Kind == Apart, Apart: t.Kind == Apart,
	}
	if t.Addr != "" {
		c := raw.NewHTTP(t.Addr, peer)
		return c, c.Open()
	}
	cmd := exec.Command(t.Command[0], t.Command[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{raw.NewPipe(stdin, io.NopCloser(stdout), peer), cmd}
	return c, c.Open()
}

// A child is a raw client with its server.
type child struct {
	*raw.Pipe
	cmd *exec.Cmd
}

// Close implements [Runner].
func (c *child) Close() error { return errors.Join(c.Pipe.Close(), c.cmd.Wait()) }
