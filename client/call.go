package client

import (
	"context"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// Call makes a request as the typed calls do, with the client's answers to
// whatever it is asked, and returns the result as it came. Params are encoded as
// [mcp.NewRequest] does it; opts may be nil.
func (c *Client) Call(ctx context.Context, method string, params any, opts *CallOptions) (mcp.Result, error) {
	return c.raw(ctx, method, params, opts)
}
