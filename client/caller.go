package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A guardedCaller is the Caller of one call with its clock: progress puts the
// timeout off, and an open question stops it.
type guardedCaller struct {
	caller mcp.Caller
	clock  clock
	lent   func()      // gives the memory of the result back; nil if it is the result's
	used   atomic.Bool // something has come for the call, which is not to be made again
}

// An ownCall is a call that the client's own functions answer for, all of it in one
// piece of memory.
type ownCall struct {
	guardedCaller
	answers answerer
	opts    CallOptions
	req     mcp.Request
}

func (c *Client) newCall(method string, opts *CallOptions) *ownCall {
	call := &ownCall{req: mcp.Request{Method: method}}
	if opts != nil {
		call.opts = *opts
	}
	call.answers = answerer{client: c, opts: &call.opts}
	call.caller = &call.answers
	return call
}

// encode gives the request its params, and what belongs to them.
func (o *ownCall) encode(params any) error {
	encoded, err := mcp.NewRequest(o.req.Method, params)
	if err != nil {
		return fmt.Errorf("%s: encoding its params: %w", o.req.Method, err)
	}
	o.req.Params = encoded.Params
	return o.complement()
}

// complement adds to a request with params what the call's options and the client
// say of it.
func (o *ownCall) complement() error {
	client := o.answers.client
	o.req.Meta.LogLevel = o.opts.LogLevel
	if o.opts.Progress != nil || mcp.MayNeedInput(o.req.Method) {
		// Progress of what may take long keeps it alive, even if nobody looks.
		o.req.Meta.ProgressToken = jsonrpc.IntID(client.tokens.Add(1))
	}
	if len(o.opts.Meta) > 0 {
		raw, err := mcp.NewJSON(o.opts.Meta)
		if err != nil {
			return fmt.Errorf("%s: encoding its _meta: %w", o.req.Method, err)
		}
		o.req.Params = jsonrpc.Edited(&o.req.Params, jsonrpc.Edit{Name: "_meta", Value: raw})
	}
	client.introduce(&o.req.Meta)
	return nil
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
