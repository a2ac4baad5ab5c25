package transporttest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/transporttest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An end is one side of a byte stream.
type end struct {
	r     io.Reader
	w     io.Writer
	close func() error
}

// connect makes a new byte stream.
type connect func(t *testing.T) (client, server end)

func pipes(t *testing.T) (client, server end) {
	t.Helper()
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	both := func(r, w *os.File) end {
		return end{r, w, func() error { return errors.Join(r.Close(), w.Close()) }}
	}
	return both(r1, w2), both(r2, w1)
}

func inMemory(*testing.T) (client, server end) {
	a, b := net.Pipe()
	return end{a, a, a.Close}, end{b, b, b.Close}
}

func tcp(t *testing.T) (client, server end) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return end{a, a, a.Close}, end{b, b, b.Close}
}

// A cutter writes in pieces whose ends lie anywhere.
type cutter struct{ w io.Writer }

func (c cutter) Write(p []byte) (n int, err error) {
	const piece = 1021 // a prime, so that every character is cut sooner or later
	for err == nil && n < len(p) {
		var m int
		m, err = c.w.Write(p[n:min(n+piece, len(p))])
		n += m
	}
	return n, err
}

func inPieces(t *testing.T) (client, server end) {
	client, server = inMemory(t)
	client.w, server.w = cutter{client.w}, cutter{server.w}
	return client, server
}

// serve serves over byte streams.
func serve(c connect) transporttest.Serve {
	return func(t *testing.T, handler mcp.Handler) transporttest.Server {
		var serving sync.WaitGroup
		t.Cleanup(serving.Wait)
		var ends []end
		dial := func(ctx context.Context, opts transporttest.DialOptions) (transport.Edge, error) {
			client, server := c(t)
			ends = append(ends, server)
			var once sync.Once
			closed := func() (err error) {
				once.Do(func() { err = server.close() })
				return err
			}
			link := transport.NewLineLink(server.r, server.w, closed, transport.LineOptions{MaxLine: 10 << 20})
			serving.Go(func() {
				// It ends with an error if the server is made to vanish.
				_ = transport.Serve(context.Background(), link, handler, transport.ServeOptions{Drain: 50 * time.Millisecond})
			})
			return transport.Dial(ctx, transport.NewLineLink(client.r, client.w, client.close,
				transport.LineOptions{MaxLine: opts.MaxMessage}), opts.DialOptions)
		}
		vanish := func() {
			for _, e := range ends {
				_ = e.close()
			}
		}
		return transporttest.Server{Dial: dial, Vanish: vanish}
	}
}

func TestLineLinks(t *testing.T) {
	for name, c := range map[string]connect{"os.Pipe": pipes, "net.Pipe": inMemory, "in pieces": inPieces, "TCP": tcp} {
		t.Run(name, func(t *testing.T) { transporttest.Run(t, serve(c)) })
	}
}
