package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// callTool calls a tool for a client that does not know tasks of 2025-11-25. A tool
// that must be called as a task is, and the task awaited.
func (c *Client) callTool(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	name, _ := req.Params.LookupString("name")
	if c.toolTasks.required(ctx, c, name) {
		result, _, err := c.callAsTask(ctx, req, caller)
		return result, err
	}
	result, call, err := c.sendEdited(ctx, req, caller, withoutTask...)
	if !asksForTask(err) || ctx.Err() != nil || call.heard || c.toolTasks.mayBePlain(ctx, c, name) {
		return result, err
	}
	// It has not been executed.
	result, made, err := c.callAsTask(ctx, req, caller)
	if made || err == nil {
		c.toolTasks.require(name)
	}
	return result, err
}

// withoutTask takes out what asks for a task, which means nothing to who knows none.
var withoutTask = []jsonrpc.Edit{{Name: "task"}}

// asksForTask reports whether a server's error says that a tool must be called as a
// task (2025-11-25, tasks, Tool-Level Negotiation and Protocol Errors).
func asksForTask(err error) bool {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && jsonrpc.FromPeer(err) &&
		(refused.Code == jsonrpc.CodeMethodNotFound || refused.Code == jsonrpc.CodeInvalidRequest)
}

// An awaitedTask is a call that is made as a task, for a client that does not know.
type awaitedTask struct {
	client *Client
	req    *mcp.Request
	task   *knownTask
	known  bool // to the client's tasks
}

// callAsTask calls a tool as a task and returns what that results in, and whether a task
// has been made. However it ends, a task that goes on is told to stop.
func (c *Client) callAsTask(ctx context.Context, req *mcp.Request, caller mcp.Caller) (result mcp.Result, made bool, err error) {
	t := &awaitedTask{client: c, req: req}
	clock := startTaskClock(ctx, req.Method, c.opts.MaxTaskWait)
	result, err = t.create(ctx, caller)
	if t.task == nil {
		_ = clock.stop(nil)
		return result, false, err
	}
	defer c.tasks.forget(t.task)
	var beating sync.WaitGroup
	defer func() {
		_ = clock.stop(nil) // unless that was done: the caller may panic
		beating.Wait()
	}()
	if !req.Meta.ProgressToken.IsZero() {
		beating.Go(func() { t.beat(clock) })
	}
	result, err = t.await(clock.ctx, &clockedCaller{caller, clock})
	err = notRefused(err)
	if err == nil || jsonrpc.FromPeer(err) {
		_ = clock.stop(nil) // in vain, if at all
		return mcp.Result{Value: mcp.WithRelatedTask(&result.Value, "")}, true, err
	}
	err = clock.stop(err)
	c.cancelTask(ctx, t.task)
	return mcp.Result{}, true, ofCall(req.Method, err)
}

// notRefused returns the error of a request for a task's result. Such an error is the
// call's, except one that says that its request was not executed: in the place of the
// call's it would have the call made again, whose task has begun.
func notRefused(err error) error {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || !jsonrpc.FromPeer(err) {
		return err
	}
	isWhole := err == error(answer) // nothing came with it, as an HTTP status
	if isWhole && answer.Code != jsonrpc.CodeUnsupportedVersion && answer.Code != jsonrpc.CodeHeaderMismatch {
		return err
	}
	return &mcp.CallError{
		Kind: mcp.BadReply, Outcome: mcp.MaybeExecuted, Err: fmt.Errorf("%s: %v", mcp.MethodTaskResult, err),
		Public: fmt.Sprintf("the server refuses %s: %.200s", mcp.MethodTaskResult, answer.Message),
	}
}

// create makes the call. It leaves t.task nil if no task has come of it.
func (t *awaitedTask) create(ctx context.Context, caller mcp.Caller) (mcp.Result, error) {
	c := t.client
	if err := c.expectTask(t.req); err != nil {
		return mcp.Result{}, err
	}
	life := strconv.AppendInt(nil, min(c.opts.MaxTaskWait, DefaultMaxTaskWait).Milliseconds(), 10)
	hearing := &hearingCaller{Caller: caller}
	result, call, err := c.sendTask(ctx, t.req, hearing,
		jsonrpc.Edit{Name: "task", Value: append(append([]byte(`{"ttl":`), life...), '}')})
	if err == nil {
		t.task = newTask(t.req, &result, call.id)
	}
	if t.task != nil {
		t.task.says = hearing.progress.Load()
	}
	if t.task == nil {
		c.tasks.made(call.id, nil)
	}
	if _, unusable := result.Lookup("task"); unusable && err == nil && t.task == nil {
		return mcp.Result{}, badInput(t.req.Method, "the server's result is a task without a usable id")
	}
	return result, err
}

// A hearingCaller knows whether the server has told it of progress.
type hearingCaller struct {
	mcp.Caller
	progress atomic.Bool
}

// Notify implements [mcp.Caller].
func (c *hearingCaller) Notify(ctx context.Context, n *mcp.Notification) error {
	if n.Method == mcp.NotificationProgress {
		c.progress.Store(true)
	}
	return c.Caller.Notify(ctx, n)
}

// await asks for the result, again if the answer gets lost on its way.
func (t *awaitedTask) await(ctx context.Context, caller mcp.Caller) (mcp.Result, error) {
	wait := backoff{wait: minRetryWait}
	for attempts := 1; ; attempts++ {
		began := time.Now()
		result, err := t.result(ctx, caller)
		lost, ok := errors.AsType[*mcp.CallError](err)
		if !ok || ctx.Err() != nil || lost.Outcome != mcp.MaybeExecuted || attempts == MaxTaskPollFailures {
			return result, err
		}
		if time.Since(began) > maxRetryWait { // it had been waiting
			attempts, wait = 0, backoff{wait: minRetryWait}
		}
		if err := wait.pause(ctx); err != nil {
			return mcp.Result{}, err
		}
	}
}

// result waits for the task's end once. The call counts as the client's, so that what
// the server asks meanwhile reaches it.
func (t *awaitedTask) result(ctx context.Context, caller mcp.Caller) (mcp.Result, error) {
	c := t.client
	params := jsonrpc.Edited(&jsonrpc.Value{}, t.task.idEdit())
	req := &mcp.Request{Method: mcp.MethodTaskResult, ID: t.req.ID, Params: params, Meta: t.req.Meta}
	call, err := c.calls.Start(req)
	if err == nil {
		defer call.End()
		c.tasks.attach(t.task, call)
		defer c.tasks.attach(t.task, nil)
	}
	if !t.known {
		t.known = true
		c.tasks.made(t.task.call, t.task)
	}
	if err != nil {
		return mcp.Result{}, err
	}
	if ctx.Err() != nil {
		return mcp.Result{}, context.Cause(ctx)
	}
	return c.wire.Call(ctx, call, &req.Params, caller)
}

// beat tells the client now and then that the task goes on, until the clock ends, if
// nobody else tells it anything. It does not while the client is being asked.
func (t *awaitedTask) beat(clock *taskClock) {
	ticker := time.NewTicker(taskHeartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-clock.ctx.Done():
			return
		}
		if clock.stands() {
			continue
		}
		if call, count, token := t.client.tasks.beat(t.task); call != nil {
			call.Notify(newProgress(token, count, ""))
		}
	}
}
