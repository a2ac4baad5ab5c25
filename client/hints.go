package client

import (
	"context"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// stillRepeatable reports whether a tool may be called twice as the server says now, on
// the connection that the second call goes over: it may be another version than the one
// which was lost. If several calls need to know that, one of them lists the tools for
// all. That takes of the call's own time.
func (c *Client) stillRepeatable(ctx context.Context, edge transport.Edge, f *failure) bool {
	name, _ := f.req.Params.LookupString("name")
	select {
	case c.tools.listing <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-c.tools.listing }()
	for range maxLooks {
		if c.tools.stillRepeatable(name, f) {
			return true
		}
		before := c.tools.asOf()
		if err := c.listTools(ctx, edge, &f.req.Meta); err != nil {
			c.opts.Logger.Debug("a call is not made again: its tool cannot be looked up", "method", f.req.Method, "err", err)
			return false
		}
		if c.tools.asOf().changes == before.changes {
			break
		}
	}
	return c.tools.stillRepeatable(name, f)
}

// maxLooks is how often tools are listed that change meanwhile: a server that has just
// started may tell of some that it has found.
const maxLooks = 3

// listTools learns what all pages of the list of tools say that a connection has for a
// client.
func (c *Client) listTools(ctx context.Context, edge transport.Edge, like *mcp.Metadata) error {
	meta := *like
	meta.Revision, meta.ProgressToken, meta.Headers = "", jsonrpc.ID{}, nil
	var asOf moment
	ask := func(cursor mcp.JSON) ([]byte, error) {
		asOf = c.tools.asOf()
		req, err := mcp.NewRequest(mcp.MethodListTools, pageParams{cursor})
		if err != nil {
			return nil, err
		}
		result, err := edge.Handle(ctx, &mcp.Request{Method: req.Method, Params: req.Params, Meta: meta}, mcp.NoCaller{})
		return result.Raw(), err
	}
	for raw, err := range c.follow(mcp.MethodListTools, ask) {
		if err != nil {
			return err
		}
		var page mcp.ListToolsResult
		if err := readPage[mcp.Tool](c, mcp.MethodListTools, raw, &page); err != nil {
			return err
		}
		c.tools.learn(page.Tools, asOf)
	}
	return nil
}
