package mcp

import (
	"context"
	"time"
)

// A Releaser is a [Caller] of which the client need not wait on the line: it can
// drop its connection and come back for what it missed (2025-11-25, transports,
// Sending Messages, "poll").
type Releaser interface {
	// Release closes the event stream on which the client waits for the
	// request, and asks the client to come back after retry, 0 for a time that
	// the transport chooses. The request goes on; what is sent meanwhile waits
	// for the client. Release does not wait for the client. Where the client
	// cannot come back, it does nothing and returns nil.
	Release(ctx context.Context, retry time.Duration) error
}

// Release lets the client that waits behind caller go until retry is over, for a
// request that will take long, if there is a way to: see [Releaser]. Otherwise it
// does nothing: on byte streams, for modern clients, and for legacy ones before
// 2025-11-25 or that take no event stream. It may be called several times.
func Release(ctx context.Context, caller Caller, retry time.Duration) error {
	if r, ok := caller.(Releaser); ok {
		return r.Release(ctx, retry)
	}
	return nil
}
