package main

import (
	"context"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A side is one way to speak MCP: what stands before the bridge, or behind it.
type side struct {
	name     string
	era      mcp.Era
	revision mcp.Revision
	// direct tells that there is no wire, but a handler that is called.
	direct bool
	// http tells that messages travel with HTTP headers of their own.
	http bool
	// process tells that a server of this side is a process of its own, a child
	// of its client.
	process bool
	// older tells that the side differs from another one in its revision alone, and
	// is left out where few cells stand for all.
	older bool
	// open serves a handler until the stage ends, to clients of one era or, if
	// that is NoEra, of both.
	open func(s *stage, handler mcp.Handler, served mcp.Era) (reach, error)
}

// A reach returns the target of one client, whose messages pass w.
type reach func(w *wire) client.Target

// sides are the rows and the columns of the matrix, the older ones last. A further
// transport is a further line.
var sides = []side{
	{name: "memory-legacy", era: mcp.Legacy, revision: mcp.NewestLegacy, open: openMemory},
	{name: "memory-modern", era: mcp.Modern, revision: mcp.NewestModern, direct: true, open: openDirect},
	{name: "stdio-legacy", era: mcp.Legacy, revision: mcp.NewestLegacy, process: true, open: openStdio},
	{name: "stdio-modern", era: mcp.Modern, revision: mcp.NewestModern, process: true, open: openStdio},
	{name: "http-legacy", era: mcp.Legacy, revision: mcp.NewestLegacy, http: true, open: openHTTP},
	{name: "http-modern", era: mcp.Modern, revision: mcp.NewestModern, http: true, open: openHTTP},
	{name: "sse-2024-11-05", era: mcp.Legacy, revision: mcp.Revision20241105, http: true, open: openSSE},
	{name: "http-2025-06-18", era: mcp.Legacy, revision: mcp.Revision20250618, http: true, older: true, open: openHTTP},
	{name: "http-2025-03-26", era: mcp.Legacy, revision: mcp.Revision20250326, http: true, older: true, open: openHTTP},
}

// A target is a way to connect that this command has made.
type target struct {
	name string
	dial func(ctx context.Context, opts dialOptions) (edge, error)
}

// Dial implements [client.Target].
func (t *target) Dial(ctx context.Context, opts dialOptions) (edge, error) { return t.dial(ctx, opts) }

// String implements [client.Target].
func (t *target) String() string { return t.name }
