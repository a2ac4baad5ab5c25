package client

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/visit"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Bounds of calls whose results need input.
const (
	// MaxRounds is how often such a call is made again, unless it only waits for its
	// user to be done with pages.
	MaxRounds = 16
	// MaxInputRequests is how many questions one result may hold.
	MaxInputRequests = 64
	// MaxPageWait is how long a call waits for its user to be done with pages that
	// the server wants to be opened: ten minutes. Its other limits do not run
	// meanwhile.
	MaxPageWait = visit.MaxWait
)

// Waits before a call is made again whose result asks nothing.
const (
	minRetryWait = 100 * time.Millisecond
	maxRetryWait = 15 * time.Second
)

// complete makes a call, and makes it again with the answers while its results
// need input (2026-07-28, patterns/mrtr, Client Requirements), or while the server
// wants pages to be opened first.
func (c *Client) complete(ctx context.Context, req *mcp.Request, caller *guardedCaller) (mcp.Result, error) {
	result, err := c.handle(ctx, req, caller)
	if !mcp.MayNeedInput(req.Method) {
		if err != nil {
			return result, err
		}
		return c.final(req.Method, result, result.Type())
	}
	var d *dialogue
	for wantsMore(&result, err) {
		if d == nil {
			d = &dialogue{client: c, req: req, next: *req, caller: caller, idle: backoff{bound: minRetryWait / 2}}
		}
		if err := d.prepare(ctx, &result, err); err != nil {
			return mcp.Result{}, err
		}
		caller.clock.progress()  // the server has shown that it is there
		caller.used.Store(false) // what follows is a request of its own
		result, err = c.handle(ctx, &d.next, caller)
		err = mcp.Begun(err)
	}
	if err != nil {
		return result, err
	}
	return c.final(req.Method, result, result.Type())
}

// wantsMore reports whether a call is to be made again, after what the server wants, and
// indexes its result.
func wantsMore(result *mcp.Result, err error) bool {
	if err != nil {
		return len(requiredPages(err)) > 0
	}
	result.Value = result.Indexed()
	return result.Type() == mcp.InputRequired
}

// A dialogue is a call that is made again while its server wants something first.
type dialogue struct {
	client *Client
	req    *mcp.Request // as it was made first
	next   mcp.Request  // as it is made next
	caller *guardedCaller
	rounds int
	idle   backoff // while the server asks nothing
	visits visits
}

// prepare does what the server wants before the next attempt, as it has told by a result
// or by an error.
func (d *dialogue) prepare(ctx context.Context, result *mcp.Result, refusal error) error {
	defer func() { d.visits.done = d.client.elicitations.completion() }()
	if refusal != nil {
		return d.openPages(ctx, refusal)
	}
	return d.answer(ctx, result)
}

// count counts one round more. Refusal is the error that the server has answered with,
// nil if it was a result.
func (d *dialogue) count(refusal error) error {
	if d.rounds++; d.rounds <= MaxRounds {
		return nil
	}
	failure := &mcp.CallError{
		Method: d.req.Method, Kind: mcp.LimitExceeded, Limit: "MaxRounds", Outcome: mcp.Answered,
		Public: fmt.Sprintf("the server still needs input after %d rounds", MaxRounds),
	}
	if refusal != nil {
		failure.Err = fmt.Errorf("%s: %w", failure.Public, refusal)
	}
	return failure
}

// ended returns the failure of a call that was ended meanwhile, nil if it goes on.
// Refusal is what the server has answered with, nil for a result.
func (d *dialogue) ended(ctx context.Context, refusal error) error {
	switch {
	case ctx.Err() != nil:
		return givenUp(ctx, d.req.Method, mcp.Answered, refusal)
	case d.client.ctx.Err() != nil:
		return &mcp.CallError{Method: d.req.Method, Kind: mcp.ConnectionLost, Outcome: mcp.Answered, Err: mcp.ErrClosed}
	}
	return nil
}

// final returns the result, of a type, that a call has ended with: "A resultType of
// any value unrecognized by the client MUST be considered invalid" (2026-07-28,
// basic, ResultType). Who declares extensions has to know theirs.
func (c *Client) final(method string, result mcp.Result, kind string) (mcp.Result, error) {
	if kind == mcp.Complete || c.Verdict().Era != mcp.Modern {
		return result, nil
	}
	declared := jsonrpc.Trusted(c.link.dialer.opts.Capabilities)
	if _, extended := declared.Lookup("extensions"); extended && kind != mcp.InputRequired {
		return result, nil
	}
	return mcp.Result{}, badReply(method, fmt.Errorf("the result is of the type %.40q, which is none for this call", kind))
}

func badReply(method string, err error) error {
	return &mcp.CallError{Method: method, Kind: mcp.BadReply, Outcome: mcp.Answered, Err: err}
}
