package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// askFirst puts a question on the call on, nil for the one that it belongs to, and
// reports whether that is possible. Several is as whomToAsk has it.
func (c *Client) askFirst(ctx context.Context, q *question, on *inflight.Call) (asked, several bool) {
	if on != nil {
		return c.ask(ctx, q, on), false
	}
	for {
		on, several = c.whomToAsk(q.req)
		if on == nil {
			return false, several
		}
		q.guessed, q.client = true, on.Client()
		if c.ask(ctx, q, on) {
			return true, false
		}
		if !on.Over() {
			return false, false
		}
		// It ended in between, and the question is another call's.
	}
}

// askElsewhere puts a question on another call of the same client, if the one that
// carried it by our guess has ended, or cannot: it is that other one's, most likely,
// and its server waits. It reports false if there is none.
func (c *Client) askElsewhere(ctx context.Context, q *question, on *inflight.Call) bool {
	for {
		next := c.elsewhere(q, on)
		if next == nil || c.ask(ctx, q, next) {
			return next != nil
		}
	}
}

// elsewhere returns another call of the same client that a question may belong to
// which on has carried, nil if it is on that for certain or there is no other that has
// not carried it. The session's listen call may have been replaced.
func (c *Client) elsewhere(q *question, on *inflight.Call) *inflight.Call {
	fresh := func(call *inflight.Call) bool { return !slices.Contains(q.carried, call.ID) }
	switch {
	case !q.guessed:
		return nil
	case on.Request.Method == mcp.MethodListen:
		if listener := c.listenerOf(q.client); listener != nil && fresh(listener) {
			return listener
		}
		return nil
	case q.req.Method == mcp.MethodListRoots:
		return nil
	}
	return c.calls.Of(q.client, func(call *inflight.Call) bool { return canCarry(call.Request) && fresh(call) })
}

// whomToAsk returns the call that a question outside any stream belongs to: one
// in flight, or the only session that listens. Several says that it may belong to
// either of several clients, between whom nobody guesses.
//
// Roots are asked for on the server's own account, most often while a call that
// has nothing to do with them is in flight and soon over: for them the session
// comes first.
//
// So does what a server wants of a task that its client works on: it may wait for
// longer than any call.
func (c *Client) whomToAsk(req *mcp.Request) (call *inflight.Call, several bool) {
	if isTaskRequest(req.Method) {
		if owner, known := c.tasks.theirs.owner(mcp.TaskID(&req.Params)); known {
			return c.listenerOf(owner), false
		}
	}
	listener, sessions := c.sessionListeners()
	if listener != nil && (req.Method == mcp.MethodListRoots || isTaskRequest(req.Method)) {
		if c.servesOthers(listener.Client()) {
			return nil, true
		}
		return listener, false
	}
	owner, several := c.calls.Owner(canCarry)
	if owner == nil && !several {
		owner, several = listener, sessions
	}
	if owner != nil && c.calls.LeftByOthers(owner.Client()) {
		return nil, true
	}
	return owner, several
}

// servesOthers reports whether calls of other clients than the given one are in flight, or
// were left a short while ago.
func (c *Client) servesOthers(client string) bool {
	call, several := c.calls.Owner(func(*mcp.Request) bool { return true })
	return several || call != nil && call.Client() != client || c.calls.LeftByOthers(client)
}

// canCarry reports whether a client can be asked something under a request.
func canCarry(req *mcp.Request) bool {
	return req.Meta.Revision.Era() == mcp.Legacy || mcp.MayNeedInput(req.Method) || req.Method == mcp.MethodTaskResult
}

// leavingWait is how much earlier than the cancellation of a call the error may come
// with which its client answers the question that made it leave.
const leavingWait = 500 * time.Millisecond

func awaitEnd(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// unanswered does what is to be done with a question that the client of a call has
// answered with an error, or not at all.
func (c *Client) unanswered(ctx context.Context, q *question, on *inflight.Call, err error) {
	moves := !isWire(err) || on.Left() && !saysNo(err)
	if moves && q.withdrawn.Err() == nil && c.askElsewhere(ctx, q, on) {
		return
	}
	c.conclude(ctx, q, mcp.Result{}, err)
}

// codeRejected is how users refuse to have something sampled (2025-11-25,
// client/sampling, Error Handling).
const codeRejected = -1

// saysNo reports whether an error is a user's answer.
func saysNo(err error) bool {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && wire.Code == codeRejected
}

// refuseToGuess answers a question that may belong to either of several clients.
func (c *Client) refuseToGuess(ctx context.Context, q *question) {
	n := c.unattributed.Add(1)
	if n&(n-1) == 0 { // so that a server that asks on and on does not fill a log
		c.opts.Logger.Warn("a question of the server was refused: several clients are served, and it does not say to whom it belongs",
			"method", q.req.Method, "refused", n)
	}
	if q.req.Method == mcp.MethodListRoots {
		c.mu.Lock()
		c.roots.missed = true
		c.mu.Unlock()
	}
	c.reply(ctx, q.wait, q.id, mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInternalError,
		"Internal error: several clients are served, and the question does not say to whom it belongs"))
}
