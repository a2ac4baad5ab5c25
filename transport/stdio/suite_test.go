//go:build unix

package stdio_test

import (
	"context"
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
					DialOptions: opts.DialOptions, MaxLine: opts.MaxMessage, ExitWait: 300 * time.Millisecond,
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
