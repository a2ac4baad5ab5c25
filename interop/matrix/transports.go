package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

type (
	dialOptions = transport.DialOptions
	edge        = transport.Edge
)

// drain is how long a listener waits for calls when its stage ends.
const drain = time.Second

// A stage is where one cell's parts run. It ends what it has started.
type stage struct {
	ctx    context.Context // of what serves
	cancel context.CancelFunc
	http   *http.Transport // of the HTTP clients

	serving sync.WaitGroup

	mu   sync.Mutex
	errs []error // of what served; guarded by mu
}

func newStage() *stage {
	s := &stage{http: http.DefaultTransport.(*http.Transport).Clone()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// run runs what serves until the stage ends.
func (s *stage) run(serve func(ctx context.Context) error) {
	s.serving.Go(func() {
		if err := serve(s.ctx); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.errs = append(s.errs, err)
		}
	})
}

// end ends what serves, and returns its errors.
func (s *stage) end() error {
	s.cancel()
	s.serving.Wait()
	s.http.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// openDirect has the handler called without anything between: what a program does
// that has its server within itself.
func openDirect(_ *stage, handler mcp.Handler, _ mcp.Era) (reach, error) {
	return func(*wire) client.Target { return client.Handler(handler) }, nil
}

// openMemory passes whole messages from goroutine to goroutine.
func openMemory(s *stage, handler mcp.Handler, served mcp.Era) (reach, error) {
	return func(w *wire) client.Target {
		return &target{name: "memory", dial: func(ctx context.Context, opts dialOptions) (edge, error) {
			near, far := memoryLinks(w)
			s.run(func(ctx context.Context) error {
				return transport.Serve(ctx, far, handler, transport.ServeOptions{Era: served, Drain: drain})
			})
			return dialed(transport.Dial(ctx, near, opts))
		}}
	}, nil
}

// openStdio serves pipes as [stdio.Serve] serves a process's standard streams, so
// that several clients have one bridge. Servers of this transport are children: see
// openChild.
func openStdio(s *stage, handler mcp.Handler, served mcp.Era) (reach, error) {
	return func(w *wire) client.Target {
		return &target{name: "stdio", dial: func(ctx context.Context, opts dialOptions) (edge, error) {
			return s.dialPipes(ctx, opts, w, func(ctx context.Context, in, out *os.File) error {
				return stdio.Serve(ctx, handler, &stdio.ServeOptions{
					ServeOptions: transport.ServeOptions{Era: served, Drain: drain}, In: in, Out: out,
				})
			})
		}}
	}, nil
}

// dialPipes has the ends of two pipes served, and connects over the others.
func (s *stage) dialPipes(ctx context.Context, opts dialOptions, w *wire,
	serve func(ctx context.Context, in, out *os.File) error,
) (edge, error) {
	in, toServer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), toServer.Close())
	}
	s.run(func(ctx context.Context) error { return serve(ctx, in, out) })
	closeBoth := func() error { return errors.Join(fromServer.Close(), toServer.Close()) }
	link := transport.NewLineLink(fromServer, toServer, closeBoth, transport.LineOptions{Tap: w.tap})
	return dialed(transport.Dial(ctx, link, opts))
}

// dialed keeps a nil pointer from becoming an edge that is not nil.
func dialed(conn *transport.Conn, err error) (edge, error) {
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func openHTTP(s *stage, handler mcp.Handler, served mcp.Era) (reach, error) {
	listener, err := s.listen(handler, served)
	if err != nil {
		return nil, err
	}
	return s.url(listener.URL()), nil
}

// openSSE is HTTP with SSE. Whoever dials has to find that out.
func openSSE(s *stage, handler mcp.Handler, served mcp.Era) (reach, error) {
	listener, err := s.listen(handler, served)
	if err != nil {
		return nil, err
	}
	return s.url(listener.SSEURL()), nil
}

// listen serves Streamable HTTP and, if that is for legacy clients, HTTP with SSE.
func (s *stage) listen(handler mcp.Handler, served mcp.Era) (*streamable.Server, error) {
	listener, err := streamable.Listen("127.0.0.1:0", handler, &streamable.ServerOptions{
		HandlerOptions: streamable.HandlerOptions{Era: served}, Drain: drain,
	})
	if err != nil {
		return nil, err
	}
	s.run(listener.Serve)
	return listener, nil
}

func (s *stage) url(address string) reach {
	return func(w *wire) client.Target {
		t := client.URL(address)
		w.next = s.http
		t.Options.Transport, t.Options.Tap = w, w.tap
		return t
	}
}

// childVariable has this program, or its test, be a fixture on its standard
// streams, for clients of the era that it names.
const childVariable = "MATRIX_FIXTURE"

// openChild returns the fixture as a process of its own.
func openChild(served mcp.Era) (reach, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return func(w *wire) client.Target {
		t := client.Command(self)
		t.Command.Env = map[string]string{childVariable: served.String()}
		t.Options.Tap = w.tap
		return t
	}, nil
}

// serveChild serves the fixture if this process is to be one.
func serveChild(ctx context.Context) (isChild bool, err error) {
	var served mcp.Era
	switch os.Getenv(childVariable) {
	case "":
		return false, nil
	case mcp.Legacy.String():
		served = mcp.Legacy
	case mcp.Modern.String():
		served = mcp.Modern
	}
	return true, stdio.Serve(ctx, newFixture(served), &stdio.ServeOptions{ServeOptions: transport.ServeOptions{Era: served}})
}
