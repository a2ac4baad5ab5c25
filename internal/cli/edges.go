package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// This file holds what the commands want of the transports.

// A dialer connects to a target.
type dialer struct {
	app    *app
	target *target
	logger *slog.Logger
	tap    transport.Tap
	// quiet keeps what a child writes to stderr to errors.
	quiet  bool
	starts atomic.Int64 // of commands
}

// dial connects to the target, telling it of the client what meta says. Its error is an
// errNotDialed.
func (d *dialer) dial(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
	e, err := d.connect(ctx, meta)
	if err != nil {
		return nil, &dialError{connecting(d.target, err)}
	}
	return e, nil
}

func (d *dialer) connect(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
	options := transport.DialOptions{
		Era: d.target.era, Prefer: meta.Revision.Era(), Client: meta.Client, Capabilities: meta.Capabilities,
		MaxCall: d.target.timeout, Logger: d.logger,
	}
	if options.Client == nil {
		options.Client = implementation().JSON()
	}
	if d.target.demo {
		return client.Handler(newDemo()).Dial(ctx, options)
	}
	if d.target.url != nil {
		return streamable.DialAny(ctx, d.target.url.String(), &streamable.DialOptions{
			DialOptions: options, Binding: d.target.binding, Header: d.target.header, Tap: d.tap,
		})
	}
	o := &stdio.DialOptions{DialOptions: options, Tap: d.tap}
	if !d.quiet {
		o.Stderr = d.app.newChildLines(d.target.command.Path, d.starts.Add(1), d.app.console.terminal())
	}
	return edge(stdio.Dial(ctx, *d.target.command, o))
}

// transportOf names the way to a target that an edge is connected to.
func transportOf(t *target, e transport.Edge) string {
	if _, isStream := e.(*transport.Conn); isStream && t.url != nil {
		return string(streamable.HTTPWithSSE)
	}
	return t.transport()
}

// edge keeps a nil pointer from becoming an Edge that is not nil.
func edge[E transport.Edge](e E, err error) (transport.Edge, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}

// pool returns a handler over connections to the target, to be closed.
func (d *dialer) pool(options transport.PoolOptions) *transport.Pool {
	options.Logger = d.logger
	return transport.NewPool(d.dial, options)
}

// newDemo returns the built-in server.
func newDemo() mcp.Handler { return demo.New(version()) }

// A listener serves clients at one address until its context is done.
type listener struct {
	url   string // "stdio" or the address of the endpoint
	sse   string // of the stream for clients of 2024-11-05; empty for none
	serve func(ctx context.Context) error
	close func() error // for one that has not served
}

// listenOptions are what all listeners have in common.
type listenOptions struct {
	streams     Streams
	handler     mcp.Handler
	era         mcp.Era // of the clients that are served; NoEra for all
	hosts       []string
	origins     []string
	allowRemote bool
	timeout     time.Duration // of calls
	logger      *slog.Logger
	tap         transport.Tap
}

func listen(a address, o *listenOptions) (*listener, error) {
	if a.stdio {
		options := &stdio.ServeOptions{
			ServeOptions: transport.ServeOptions{Era: o.era, Fallback: implementation(), Logger: o.logger, MaxTaskWait: o.timeout},
			In:           o.streams.In, Out: o.streams.Out, Tap: o.tap,
		}
		return &listener{
			url:   "stdio",
			serve: func(ctx context.Context) error { return stdio.Serve(ctx, o.handler, options) },
			close: func() error { return nil },
		}, nil
	}
	server, err := streamable.Listen(a.host, o.handler, &streamable.ServerOptions{
		HandlerOptions: streamable.HandlerOptions{
			Era: o.era, Fallback: implementation(), Logger: o.logger, Tap: o.tap, MaxTaskWait: o.timeout,
			AllowedHosts: o.hosts, AllowedOrigins: o.origins,
		},
		Path: a.path, AllowRemote: o.allowRemote,
	})
	if err != nil {
		return nil, cannotListen(a, err)
	}
	return &listener{url: server.URL(), sse: server.SSEURL(), serve: server.Serve, close: server.Close}, nil
}

// cannotListen is the error of an address that cannot be used, which is a
// matter of configuration.
func cannotListen(a address, err error) error {
	hint := ""
	if errors.Is(err, streamable.ErrRemote) {
		hint = "--allow-remote serves beyond loopback: whoever can reach the address can then use the server"
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		hint = "another program listens there; port 0 stands for any free one: --listen http://127.0.0.1:0"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err
	}
	return &usageError{fmt.Errorf("listening on %s: %w", a.host, err), hint}
}

// needsAuthorization reports whether a server wants to know who we are.
func needsAuthorization(err error) bool {
	_, ok := errors.AsType[*streamable.AuthError](err)
	return ok
}

// statusOf returns the HTTP status that a server answered instead of a message,
// 0 if it did not.
func statusOf(err error) int {
	if e, ok := errors.AsType[*streamable.StatusError](err); ok {
		return e.Status
	}
	return 0
}

// restOf returns how long a server wants to be left alone that answered an HTTP
// status instead of a message, 0 if it did not say.
func restOf(err error) time.Duration {
	if e, ok := errors.AsType[*streamable.StatusError](err); ok {
		return e.RetryAfter
	}
	return 0
}

// isWebPage reports whether a server answered with what is for browsers.
func isWebPage(err error) bool {
	e, ok := errors.AsType[*streamable.StatusError](err)
	return ok && e.ContentType == "text/html"
}
