package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// handle makes one call, and makes it once more if the first one provably was not
// executed, or may be repeated.
func (c *Client) handle(ctx context.Context, req *mcp.Request, caller *guardedCaller) (mcp.Result, error) {
	edge, generation, err := c.connection(ctx, req.Method)
	if err != nil {
		return mcp.Result{}, err
	}
	result, err := edge.Handle(ctx, req, caller)
	if err == nil || ctx.Err() != nil || caller.used.Load() {
		return result, err
	}
	first := failure{req: req, edge: edge, generation: generation, err: err}
	if !c.mayFollow(ctx, &first, caller.clock.remaining()) {
		return mcp.Result{}, first.ended(ctx)
	}
	if mcp.OutcomeOf(first.err) == mcp.Answered {
		caller.clock.progress() // the server has shown that it is there
	}
	edge, _, err = c.connection(ctx, req.Method)
	if err != nil {
		return mcp.Result{}, first.followedBy(err)
	}
	if first.hinted && !c.stillRepeatable(ctx, edge, &first) {
		return mcp.Result{}, first.ended(ctx)
	}
	result, err = edge.Handle(ctx, req, caller)
	if err != nil {
		return mcp.Result{}, first.followedBy(err)
	}
	return result, nil
}

// connection returns the connection for a call, and its number. While Close ends it, a
// call whose wait Close has ended is not sent on it any more.
func (c *Client) connection(ctx context.Context, method string) (transport.Edge, int, error) {
	if c.ctx.Err() != nil {
		return nil, 0, closed(method)
	}
	return c.link.get(ctx, method)
}

// A failure is a call that has failed at its first attempt.
type failure struct {
	req        *mcp.Request
	edge       transport.Edge
	generation int
	err        error
	hinted     bool   // only what a list said of a tool lets it be made again
	at         moment // when it failed
}

// mayFollow reports whether the call may be made once more, when it is time for
// that. It waits for less than limit.
func (c *Client) mayFollow(ctx context.Context, f *failure, limit time.Duration) bool {
	status, replied := errors.AsType[*streamable.StatusError](f.err)
	// Otherwise it is that of a GET which was to resume the call's stream.
	if replied = replied && mcp.OutcomeOf(f.err) == mcp.Answered; replied {
		if pause, asked := retryAfter(status); asked {
			return pause < limit && sleep(ctx, pause, c.ctx.Done())
		}
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](f.err); ok {
		return jsonrpc.FromPeer(f.err) && c.afterRefusal(ctx, f, refused)
	}
	failed, ok := errors.AsType[*mcp.CallError](f.err)
	switch {
	case !ok:
		return false
	case failed.Kind == mcp.ConnectionLost:
		return c.afterLoss(ctx, f, failed.Outcome)
	case failed.Kind != mcp.BadReply || !replied:
		return false
	}
	switch status.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return c.afterDoubt(ctx, f)
	}
	return false
}

// afterRefusal is mayFollow for a call that the server answered with an error. One
// that only servers of another era or revision give shows that it has become such a
// server; some of these prove that the call was not executed. Legacy servers may have a
// meaning of their own for the code of another revision, and then name none, and those
// without headers for that of wrong ones.
func (c *Client) afterRefusal(ctx context.Context, f *failure, refused *jsonrpc.Error) bool {
	server := f.edge.Server()
	switch {
	case refused.Code == jsonrpc.CodeUnsupportedVersion && (server.Era == mcp.Modern || mcp.IsModernError(refused)):
		if slices.Contains(mcp.SupportedIn(refused), server.Revision) {
			return false // another connection would be like this one
		}
		c.link.drop(f.generation, f.err)
		return true
	case server.Era == mcp.Legacy && refused.Code == jsonrpc.CodeHeaderMismatch && hasHeaders(f.edge):
		c.link.drop(f.generation, f.err)
		return true
	}
	// That we lack a capability (-32021) shows nothing: servers that have both eras,
	// and bridges, say so to legacy clients, too.
	return server.Era == mcp.Modern && server.Discover.IsZero() && c.checked.Load() != int64(f.generation) && c.afterDoubt(ctx, f)
}

// hasHeaders reports whether requests on a connection have headers, which a server may
// refuse.
func hasHeaders(edge transport.Edge) bool {
	_, isChild := edge.(*stdio.Conn)
	return !isChild
}

// endingWait is how long a connection that took no call may take to end.
const endingWait = time.Second

// afterLoss is mayFollow for a call whose connection was lost. One of a connection
// that goes on, as over HTTP, is made again over that.
func (c *Client) afterLoss(ctx context.Context, f *failure, outcome mcp.Outcome) bool {
	if outcome == mcp.MaybeExecuted {
		return c.mayRepeat(f)
	}
	if outcome != mcp.NotSent {
		return false
	}
	if !over(f.edge) {
		sleep(ctx, endingWait, f.edge.Done())
	}
	return ctx.Err() == nil
}

// afterDoubt is mayFollow for a call whose answer is more that of a server of another
// era or binding. If that is what the server has become, calls that may be repeated are.
func (c *Client) afterDoubt(ctx context.Context, f *failure) bool {
	method := mcp.MethodDiscover
	if f.edge.Server().Era == mcp.Legacy {
		method = mcp.MethodPing
	}
	if f.req.Method == method {
		return false
	}
	req := &mcp.Request{Method: method}
	c.introduce(&req.Meta)
	result, err := f.edge.Handle(ctx, req, mcp.NoCaller{})
	if !c.confirmed(f, result, err) {
		return false
	}
	c.link.drop(f.generation, f.err)
	return c.mayRepeat(f)
}

// confirmed reports whether the answer to a question of afterDoubt shows that the server
// is another one than it was.
func (c *Client) confirmed(f *failure, result mcp.Result, err error) bool {
	if f.edge.Server().Era == mcp.Legacy {
		return err != nil && !jsonrpc.FromPeer(err) && showsEra(err)
	}
	switch era, _ := transport.Judge(result, err); era {
	case mcp.Modern:
		c.checked.Store(int64(f.generation))
		return false
	case mcp.NoEra:
		return showsEra(err)
	}
	return true
}

// ended returns the error of a call that is not made again.
func (f *failure) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return givenUp(ctx, f.req.Method, mcp.OutcomeOf(f.err), f.err)
	}
	return f.err
}

// followedBy returns the error of a call whose second attempt has failed with err.
// If the first may have been executed, so may the call.
func (f *failure) followedBy(err error) error {
	second, ok := errors.AsType[*mcp.CallError](err)
	if !ok || second.Outcome != mcp.NotSent || mcp.OutcomeOf(f.err) == mcp.NotSent {
		return err
	}
	both := *second
	both.Outcome = mcp.OutcomeOf(f.err)
	both.Err = fmt.Errorf("%w; trying again: %w", opaque{f.err}, err)
	return &both
}

// maxRetryAfter is the longest wait of a server's that is obeyed, and
// usualRetryAfter the wait if one that takes no more calls names none.
const (
	maxRetryAfter   = 30 * time.Second
	usualRetryAfter = time.Second
)

// retryAfter returns how long a server wants to be left alone which did not execute
// a call, and whether that is what a status says.
func retryAfter(e *streamable.StatusError) (time.Duration, bool) {
	switch {
	case e.RetryAfter > maxRetryAfter:
		return 0, false
	case e.Status == http.StatusTooManyRequests && e.RetryAfter == 0:
		return usualRetryAfter, true
	case e.Status == http.StatusTooManyRequests, e.Status == http.StatusServiceUnavailable:
		return e.RetryAfter, e.RetryAfter > 0
	}
	return 0, false
}

// mayRepeat reports whether doing twice what a request asks for does no harm. A
// subscription that was acknowledged is not repeated for other reasons.
func (c *Client) mayRepeat(f *failure) bool {
	switch f.req.Method {
	case mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource, mcp.MethodGetPrompt, mcp.MethodComplete, mcp.MethodPing,
		mcp.MethodListen:
		return true
	case mcp.MethodCallTool:
		f.hinted, f.at = true, c.tools.asOf()
		name, _ := f.req.Params.LookupString("name")
		return c.tools.repeatable(name)
	}
	return false
}

// repeatAnnotated is the default of [Options].Repeat.
func repeatAnnotated(tool *mcp.Tool) bool {
	hints := tool.Annotations
	return hints != nil && (isTrue(hints.ReadOnlyHint) || isTrue(hints.IdempotentHint))
}

func isTrue(b *bool) bool { return b != nil && *b }
