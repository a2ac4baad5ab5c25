package client

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A guardedCaller is the Caller of one call with its clock: progress puts the
// timeout off, and an open question stops it.
type guardedCaller struct {
	caller mcp.Caller
	clock  *clock
	lent   func()      // gives the memory of the result back; nil if it is the result's
	used   atomic.Bool // something has come for the call, which is not to be made again
}

// Notify implements [mcp.Caller].
func (g *guardedCaller) Notify(ctx context.Context, n *mcp.Notification) error {
	g.used.Store(true)
	if n.Method == mcp.NotificationProgress {
		g.clock.progress()
	}
	return g.caller.Notify(ctx, n)
}

// Ask implements [mcp.Caller].
func (g *guardedCaller) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	g.used.Store(true)
	g.clock.stop()
	defer g.clock.resume()
	return g.caller.Ask(ctx, req)
}

// Lend implements [transport.Borrower].
func (g *guardedCaller) Lend(free func()) { g.lent = free }

// Release implements [mcp.Releaser]; nobody waits on a line here.
func (g *guardedCaller) Release(ctx context.Context, retry time.Duration) error {
	return mcp.Release(ctx, g.caller, retry)
}
