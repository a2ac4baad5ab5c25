package transport

import (
	"context"
	"errors"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Call sends a request for call and waits for its result. It is how an era
// speaks; see session.Wire.
func (c *Conn) Call(ctx context.Context, call *inflight.Call, params *jsonrpc.Value, caller mcp.Caller, edits ...jsonrpc.Edit) (mcp.Result, error) {
	method := call.Request.Method
	if c.poster != nil {
		var over context.CancelFunc
		ctx, over = context.WithCancel(ctx)
		defer over()
	}
	if err := c.request(ctx, call, params, edits); err != nil {
		return mcp.Result{}, c.notSent(ctx, method, err)
	}
	m, err := call.WaitReading(ctx, caller, c.limitFor(method), callReader{c})
	if err != nil {
		return mcp.Result{}, c.failed(ctx, call, method, err)
	}
	defer recycle(m)
	if m.Failed {
		return mcp.Result{}, jsonrpc.ReadError(&m.Body)
	}
	if !m.Body.IsObject() {
		return mcp.Result{}, &mcp.CallError{Method: method, Kind: mcp.BadReply, Outcome: mcp.Answered, Public: "the result is no object"}
	}
	if r, ok := c.link.(recycler); ok && len(m.Memory) >= minLent {
		Lend(caller, m.Memory, r.Recycle)
	}
	return mcp.Result{Value: m.Body}, nil
}

func (c *Conn) limitFor(method string) time.Duration {
	if method == mcp.MethodListen || method == mcp.MethodTaskResult {
		return 0
	}
	return c.opts.MaxCall
}

func (c *Conn) send(ctx context.Context, build func(dst []byte) []byte) error {
	return WithFrame(build, func(frame []byte) error { return c.write(ctx, frame) })
}

func (c *Conn) write(ctx context.Context, frame []byte) error {
	return c.link.Write(ctx, frame, c.calls.Pending() > 1)
}

// request sends the request of a call. Ctx ends with the call.
func (c *Conn) request(ctx context.Context, call *inflight.Call, params *jsonrpc.Value, edits []jsonrpc.Edit) error {
	buf := takeFrame()
	defer giveFrame(buf)
	*buf = jsonrpc.AppendRequest((*buf)[:0], call.WireID(), call.Request.Method, params, edits...)
	if c.poster != nil {
		return c.poster.Post(ctx, *buf, call.Finish)
	}
	return c.write(ctx, *buf)
}

// notSent returns the error of a call whose request could not be sent.
func (c *Conn) notSent(ctx context.Context, method string, err error) error {
	e := &mcp.CallError{Method: method, Outcome: mcp.NotSent, Err: err}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		e.Kind = kindOf(ctx, err)
		return e
	}
	e.Kind = mcp.ConnectionLost
	if cause := c.awaitEnd(ctx); cause != nil {
		e.Err = cause
	}
	return e
}

// endWait is how long a link to which nothing can be written may take to end.
const endWait = time.Second

// awaitEnd returns why the link has ended, nil if it has not. A server that has
// exited is often met by a write before its output is read to the end, which tells
// more.
func (c *Conn) awaitEnd(ctx context.Context) error {
	timer := time.NewTimer(endWait)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-ctx.Done():
	case <-timer.C:
	}
	return c.linkErr()
}

// kindOf returns how a call failed that was given up because of its context or
// its limit. The cause of a context need not tell.
func kindOf(ctx context.Context, err error) mcp.FailureKind {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return mcp.TimedOut
	}
	return mcp.Cancelled
}

// failed returns the error of a call that got no response, and tells the server
// if it still works on it.
func (c *Conn) failed(ctx context.Context, call *inflight.Call, method string, err error) error {
	e := &mcp.CallError{Kind: kindOf(ctx, err), Outcome: mcp.MaybeExecuted, Err: err}
	known, ok := errors.AsType[*mcp.CallError](err)
	switch {
	case ok:
		copied := *known
		e = &copied
	case e.Kind == mcp.TimedOut:
		e.Err = c.hinted(err)
	}
	e.Method = method
	// Of a task's result that got lost another answer is waited for.
	lost := e.Outcome == mcp.MaybeExecuted && method != mcp.MethodTaskResult && c.linkErr() == nil
	abandoned := !ok || lost
	// "The initialize request MUST NOT be cancelled by clients" (2025-11-25,
	// utilities/cancellation).
	if abandoned && method != mcp.MethodInitialize && !call.MakesTask {
		c.cancel(call, string(e.Kind))
	}
	return e
}

// cancel tells the server that a call was left, without waiting for a server that
// does not read.
func (c *Conn) cancel(call *inflight.Call, reason string) {
	told := call.Telling()
	if c.sendCancelled(call.ID, reason, cancelNow) || !c.start(func() {
		defer told()
		c.sendCancelled(call.ID, reason, cancelWait)
	}) {
		told()
	}
}

// Bounds of how long telling a server of a cancellation may wait for room in the
// queue: with the caller waiting, and without.
const (
	cancelNow  = time.Millisecond
	cancelWait = 5 * time.Second
)

// sendCancelled reports whether the server has been told, as far as that is
// possible.
func (c *Conn) sendCancelled(id int64, reason string, wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	params := jsonrpc.Edited(&jsonrpc.Value{},
		jsonrpc.Edit{Name: "requestId", Value: jsonrpc.IntID(id).Raw()},
		jsonrpc.Edit{Name: "reason", Value: jsonrpc.AppendString(nil, reason)})
	err := c.Notify(ctx, mcp.NotificationCancelled, &params)
	if err != nil {
		c.log.Debug("a cancellation was not sent", "err", err)
	}
	return err == nil || ctx.Err() == nil
}

// Notify sends a notification.
func (c *Conn) Notify(ctx context.Context, method string, params *jsonrpc.Value) error {
	return c.send(ctx, func(dst []byte) []byte { return jsonrpc.AppendNotification(dst, method, params) })
}

// Reply answers a request of a legacy server.
func (c *Conn) Reply(ctx context.Context, id jsonrpc.ID, result mcp.Result, err error) error {
	return c.send(ctx, func(dst []byte) []byte { return appendReply(dst, id, result, err) })
}

func appendReply(dst []byte, id jsonrpc.ID, result mcp.Result, err error) []byte {
	if err != nil {
		return jsonrpc.AppendError(dst, id, jsonrpc.ToWire(err))
	}
	return jsonrpc.AppendResult(dst, id, &result.Value)
}
