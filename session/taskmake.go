package session

import (
	"bytes"
	"context"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// makeTask makes a call that its client wants to be a task, and keeps whose that is.
// Nobody hears of a task whose call was given up meanwhile: it is told to stop.
func (c *Client) makeTask(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if err := c.expectTask(req); err != nil {
		return mcp.Result{}, err
	}
	result, call, err := c.sendTask(ctx, req, caller)
	t := newTask(req, &result, call.id)
	c.tasks.made(call.id, t)
	if t != nil && ctx.Err() != nil {
		c.tasks.forget(t)
		c.cancelTask(ctx, t)
	}
	return result, err
}

// expectTask counts a call more that may make a task. Clients that are gone do not keep
// others from that.
func (c *Client) expectTask(req *mcp.Request) error {
	err := c.tasks.make(req)
	if err != nil && c.tasks.forgetAbsent(c.calls.Clients()) {
		err = c.tasks.make(req)
	}
	return err
}

// taskCreateWait is how long a call that makes a task goes on when nobody wants it
// any more: such a request is not cancelled, its task is (2025-11-25, utilities/
// cancellation), and only its result names that.
const taskCreateWait = 5 * time.Second

// sendTask is send for a call that makes a task.
func (c *Client) sendTask(ctx context.Context, req *mcp.Request, caller mcp.Caller, edits ...jsonrpc.Edit) (mcp.Result, sent, error) {
	if ctx.Err() != nil {
		return mcp.Result{}, sent{}, &mcp.CallError{Method: req.Method, Kind: mcp.Cancelled, Outcome: mcp.NotSent, Err: context.Cause(ctx)}
	}
	call, err := c.calls.Start(req)
	if err != nil {
		return mcp.Result{}, sent{}, err
	}
	call.MakesTask = true
	c.tasks.begun(call.ID)
	creating, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	grace := time.AfterFunc(taskCreateWait, func() { stop(context.Cause(ctx)) })
	grace.Stop()
	defer grace.Stop()
	defer context.AfterFunc(ctx, func() { grace.Reset(taskCreateWait) })()
	answered := false
	defer func() {
		if !answered { // the caller has panicked
			c.tasks.made(call.ID, nil)
		}
	}()
	result, made, err := c.sendCall(creating, call, caller, edits...)
	answered = true
	return result, made, err
}

// newTask returns the task that a call has made, nil if its result tells of none.
func newTask(req *mcp.Request, result *mcp.Result, call int64) *knownTask {
	v := result.Get("task")
	task, ok := mcp.ReadTask(&v)
	if !ok {
		return nil
	}
	t := &knownTask{id: task.ID, owner: req.Meta.ClientKey(), call: call, over: overAt(task.Life)}
	if token := req.Meta.ProgressToken; !token.IsZero() {
		t.token, _ = jsonrpc.RawID(bytes.Clone(token.Raw()))
	}
	return t
}

// idEdit returns what names the task in the params of a request about it.
func (t *knownTask) idEdit() jsonrpc.Edit {
	return jsonrpc.Edit{Name: "taskId", Value: jsonrpc.AppendString(nil, t.id)}
}

// cancelTask tells the server to stop a task.
func (c *Client) cancelTask(ctx context.Context, t *knownTask) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), taskCancelWait)
	defer stop()
	if _, err := c.request(ctx, mcp.MethodCancelTask, t.idEdit()); err != nil {
		c.opts.Logger.Debug("a task was not cancelled", "method", mcp.MethodCancelTask, "err", err)
	}
}
