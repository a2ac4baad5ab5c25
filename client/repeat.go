package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// handle makes one call, and makes it once more if the first one provably was not
// executed, or may be repeated.
func (c *Client) handle(ctx context.Context, req *mcp.Request, caller *guardedCaller) (mcp.Result, error) {
	edge, generation, err := c.link.get(ctx, req.Method)
	if err != nil {
		return mcp.Result{}, err
	}
	result, err := edge.Handle(ctx, req, caller)
	if err == nil || ctx.Err() != nil || caller.used.Load() {
		return result, err
	}
	switch c.next(req, err) {
	case elsewhere:
		if !over(edge) {
			c.link.drop(generation)
		}
	case later:
		if !wait(ctx, retryAfter(err)) {
			return mcp.Result{}, err
		}
	default:
		return mcp.Result{}, err
	}
	edge, _, gone := c.link.get(ctx, req.Method)
	if gone != nil {
		return mcp.Result{}, err
	}
	return edge.Handle(ctx, req, caller)
}

// A step is what follows a call that has failed.
type step int

const (
	giveUp    step = iota
	elsewhere      // once more, over another connection
	later          // once more, when the server said
)

// next returns what follows a call that has failed with err.
func (c *Client) next(req *mcp.Request, err error) step {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && jsonrpc.FromPeer(err) {
		if refused.Code == jsonrpc.CodeUnsupportedVersion {
			return elsewhere // it has become a server of another revision
		}
		return giveUp
	}
	failed, ok := errors.AsType[*mcp.CallError](err)
	switch {
	case !ok:
		return giveUp
	case retryAfter(err) > 0:
		return later
	case failed.Kind != mcp.ConnectionLost:
		return giveUp
	case failed.Outcome == mcp.NotSent, failed.Outcome == mcp.MaybeExecuted && c.mayRepeat(req):
		return elsewhere
	}
	return giveUp
}

// maxRetryAfter is the longest wait of a server's that is obeyed.
const maxRetryAfter = 30 * time.Second

// retryAfter returns how long a server that did not execute a call wants to be
// left alone, 0 if it did not say so.
func retryAfter(err error) time.Duration {
	status, ok := errors.AsType[*streamable.StatusError](err)
	if !ok || status.Status != http.StatusTooManyRequests && status.Status != http.StatusServiceUnavailable ||
		status.RetryAfter > maxRetryAfter {
		return 0
	}
	return status.RetryAfter
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// mayRepeat reports whether doing twice what a request asks for does no harm.
func (c *Client) mayRepeat(req *mcp.Request) bool {
	switch req.Method {
	case mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource, mcp.MethodGetPrompt, mcp.MethodComplete, mcp.MethodPing:
		return true
	case mcp.MethodCallTool:
		name, _ := req.Params.LookupString("name")
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
