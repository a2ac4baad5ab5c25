//go:build unix

package stdio_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/transporttest"
)

// suite serves the handler of the suite.
var suite = newMode("suite", func(*child) int {
	err := stdio.Serve(context.Background(), transporttest.NewHandler(), &stdio.ServeOptions{
		ServeOptions: transport.ServeOptions{Drain: 10 * time.Millisecond},
	})
	if err != nil {
		return 1
	}
	return 0
})

func TestSuiteOverChildProcesses(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, _ mcp.Handler) transporttest.Server {
		nothingLeft(t)
		var conns []*stdio.Conn
		return transporttest.Server{
			Dial: func(ctx context.Context, opts transporttest.DialOptions) (transport.Edge, error) {
				c, err := stdio.Dial(ctx, suite.command(), &stdio.DialOptions{
					DialOptions: opts.DialOptions, MaxLine: opts.MaxMessage,
				})
				if err != nil {
					return nil, err
				}
				conns = append(conns, c)
				return c, nil
			},
			Vanish: func() {
				for _, c := range conns {
					if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				}
			},
		}
	})
}

// pipes are what a parent has made for a child's standard streams.
type pipes struct {
	in, out        *os.File // the child's
	toIn, fromOut  *os.File // the parent's
	closing        sync.Once
	closingFailure error
}

func newPipes(t *testing.T) *pipes {
	t.Helper()
	var p pipes
	var err error
	if p.in, p.toIn, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	if p.fromOut, p.out, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.closeOurs() })
	return &p
}

// closeOurs closes the parent's ends.
func (p *pipes) closeOurs() error {
	p.closing.Do(func() { p.closingFailure = errors.Join(p.toIn.Close(), p.fromOut.Close()) })
	return p.closingFailure
}

func TestSuiteOverServe(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, handler mcp.Handler) transporttest.Server {
		nothingLeft(t)
		ctx, cancel := context.WithCancel(context.Background())
		var serving sync.WaitGroup
		t.Cleanup(func() {
			cancel()
			serving.Wait()
		})
		return transporttest.Server{
			Dial: func(dialing context.Context, opts transporttest.DialOptions) (transport.Edge, error) {
				p := newPipes(t)
				serving.Go(func() {
					if err := stdio.Serve(ctx, handler, &stdio.ServeOptions{
						ServeOptions: transport.ServeOptions{Drain: 10 * time.Millisecond}, In: p.in, Out: p.out,
					}); err != nil {
						t.Errorf("serving: %v", err)
					}
				})
				link := transport.NewLineLink(p.fromOut, p.toIn, p.closeOurs, transport.LineOptions{MaxLine: opts.MaxMessage})
				return transport.Dial(dialing, link, opts.DialOptions)
			},
			Vanish: cancel,
		}
	})
}
