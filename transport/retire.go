package transport

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// errRetired is why a retired edge takes no calls.
var errRetired = errors.New("the connection has been replaced")

// Retire ends the edge as Close does, but not before the calls in flight have ended, or
// ctx has, or the link. Listen calls end at once, and no others can be made: they fail as
// not sent. Like Close it may be called more than once, and concurrently.
func (c *Conn) Retire(ctx context.Context) error {
	ended := c.uses.End()
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	c.over()
	c.calls.EndListening(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: errRetired})
	select {
	case <-ended:
	case <-ctx.Done():
	case <-c.done:
	}
	return c.Close()
}

// refused returns the error of a call of a retired edge.
func refused(method string) error {
	return &mcp.CallError{Method: method, Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: errRetired}
}
