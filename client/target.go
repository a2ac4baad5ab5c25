package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A Target is a server that can be connected to, again and again. It is safe for
// concurrent use.
type Target interface {
	// Dial connects once. Ctx ends the dialing, not the connection. An error
	// names the server, without secrets.
	Dial(ctx context.Context, opts transport.DialOptions) (transport.Edge, error)
	// String names the server for people. It holds no secrets.
	String() string
}

// A CommandTarget is a server that runs as a child of this process and is spoken
// to over its standard streams.
type CommandTarget struct {
	Command stdio.Command
	Options stdio.DialOptions // its DialOptions are the client's, but for MaxNoise
}

// Command returns the target that path, looked up in PATH, and its arguments
// start. No shell sees them.
func Command(path string, args ...string) *CommandTarget {
	return &CommandTarget{Command: stdio.Command{Path: path, Args: args}}
}

// Dial implements [Target].
func (t *CommandTarget) Dial(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
	o := t.Options
	opts.MaxNoise = o.MaxNoise
	o.DialOptions = opts
	conn, err := stdio.Dial(ctx, t.Command, &o)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// String returns the program's name. Arguments may be secrets.
func (t *CommandTarget) String() string { return t.Command.Path }

// A URLTarget is a server behind an http or https URL, of Streamable HTTP or HTTP
// with SSE; Options.Binding says which, if that is known.
type URLTarget struct {
	URL     string
	Options streamable.DialOptions // its DialOptions are the client's
}

// URL returns the target at an http or https URL.
func URL(address string) *URLTarget { return &URLTarget{URL: address} }

// WithHeader returns the target with a header that is sent with each request to
// its origin, such as Authorization.
func (t *URLTarget) WithHeader(name, value string) *URLTarget {
	with := *t
	with.Options.Header = t.Options.Header.Clone()
	if with.Options.Header == nil {
		with.Options.Header = make(http.Header)
	}
	with.Options.Header.Set(name, value)
	return &with
}

// Dial implements [Target].
func (t *URLTarget) Dial(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
	o := t.Options
	o.DialOptions = opts
	return streamable.DialAny(ctx, t.URL, &o)
}

// String returns the URL without what may be secret in it.
func (t *URLTarget) String() string { return streamable.Redacted(t.URL) }

// A HandlerTarget is a server in this process.
type HandlerTarget struct {
	Handler mcp.Handler
}

// Handler returns the target that is a Handler of this process.
func Handler(h mcp.Handler) *HandlerTarget { return &HandlerTarget{h} }

// Dial implements [Target].
func (t *HandlerTarget) Dial(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
	req := &mcp.Request{Method: mcp.MethodDiscover, Meta: mcp.Metadata{Client: opts.Client, Capabilities: opts.Capabilities}}
	discover, err := t.Handler.Handle(ctx, req, mcp.NoCaller{})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", t, err)
	}
	return newInProcess(t.Handler, transport.ServerInfo{Era: mcp.Modern, Revision: mcp.NewestModern, Discover: discover}), nil
}

// String implements [Target].
func (t *HandlerTarget) String() string { return "a server in this process" }
