package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// How often a task is looked at: as often as the server wants, within these bounds.
const (
	MinTaskPoll     = 100 * time.Millisecond
	MaxTaskPoll     = time.Minute
	DefaultTaskPoll = time.Second // if the server does not say
)

// Bounds of waiting for a task.
const (
	// MaxTaskPollFailures is how often in a row looking at a task may fail without
	// an answer of the server.
	MaxTaskPollFailures = 5
	// MaxTaskQuestions is how many questions a task may ask, from its beginning to
	// its end.
	MaxTaskQuestions = 1000
	// taskCancelWait bounds telling a server that a task is to be cancelled.
	taskCancelWait = 2 * time.Second
)

// A taskWait waits, for a legacy client, for the task that a modern server has made
// of its call (extension tasks). It belongs to the goroutine that makes the call.
type taskWait struct {
	d         *dialogue
	state     mcp.Result // as last seen
	task      mcp.Task   // what state says
	clock     *taskClock
	failures  int       // of polling, in a row
	looked    time.Time // when the server was last asked
	questions taskQuestions
	progress  taskProgress
	watch     taskWatch
	running   sync.WaitGroup // questions, and the listen call of watch
}

// await returns what a call results in that has become a task. However it ends, a
// task that goes on is told to stop.
func (d *dialogue) await(ctx context.Context, created *mcp.Result) (mcp.Result, error) {
	task, ok := mcp.ReadTask(&created.Value)
	if !ok {
		return mcp.Result{}, badInput(d.req.Method, "the server's result is a task without a usable id")
	}
	t := &taskWait{d: d, state: *created, task: task, clock: startTaskClock(ctx, d.req.Method, d.c.session.opts.MaxTaskWait)}
	t.questions.answered = make(chan answeredQuestion, MaxInputRequests)
	t.watch.news = make(chan mcp.Result, 1)
	result, err := t.run(t.clock.ctx)
	if t.task.Over() {
		_ = t.clock.stop(nil) // in vain, if at all
		t.running.Wait()
		d.closePages(ctx, nil)
		return result, err
	}
	err = t.clock.stop(err)
	t.running.Wait()
	t.cancel(ctx)
	return mcp.Result{}, ofCall(d.req.Method, err)
}

// ofCall returns the failure of a request about a task as that of the call, which the
// server has had and may go on with, whatever became of the request.
func ofCall(method string, err error) error {
	if e, ok := errors.AsType[*mcp.CallError](err); ok {
		failed := *e
		failed.Method, failed.Outcome = method, mcp.MaybeExecuted
		return &failed
	}
	return err
}

// run looks at the task until it has ended.
func (t *taskWait) run(ctx context.Context) (mcp.Result, error) {
	// What made the task tells little about one that has ended or asks already.
	look := t.task.Status != mcp.TaskWorking
	for {
		t.progress.tell(ctx, t)
		if t.interval() > DefaultTaskPoll {
			t.watch.start(ctx, t)
		}
		if !look {
			var err error
			if look, err = t.pause(ctx); err != nil {
				return mcp.Result{}, err
			}
		}
		if look {
			if err := t.poll(ctx); err != nil {
				return mcp.Result{}, err
			}
		}
		look = false
		if !t.task.Over() {
			if err := t.questions.update(ctx, t); err != nil {
				return mcp.Result{}, err
			}
		}
		if t.task.Over() {
			return t.outcome()
		}
		t.watch.start(ctx, t)
	}
}

// pause waits until the task is to be looked at, or has been by other means, and tells
// the client meanwhile that it goes on. It reports whether to look.
func (t *taskWait) pause(ctx context.Context) (look bool, err error) {
	timer, beat := time.NewTimer(t.interval()), time.NewTimer(t.progress.rest())
	defer timer.Stop()
	defer beat.Stop()
	for {
		select {
		case <-timer.C:
			return true, nil
		case <-beat.C:
			t.progress.tell(ctx, t)
			beat.Reset(taskHeartbeat)
		case a := <-t.questions.answered:
			return false, t.questions.take(t, a)
		case news := <-t.watch.news:
			if t.see(&news) && !t.asksUnsaid() {
				return false, nil
			}
			// A server that tells much and says nothing is not asked more often for that.
			timer.Reset(max(0, time.Until(t.looked.Add(MinTaskPoll))))
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// interval returns how long to wait before the task is looked at again.
func (t *taskWait) interval() time.Duration {
	wait := t.task.Poll
	if wait == 0 {
		wait = DefaultTaskPoll
	}
	if t.watch.granted.Load() {
		wait = MaxTaskPoll // to find out what was not told
	}
	return min(max(wait, MinTaskPoll), MaxTaskPoll)
}

// poll asks the server how the task is.
func (t *taskWait) poll(ctx context.Context) error {
	t.looked = time.Now()
	result, err := t.handle(ctx, mcp.MethodGetTask)
	if err == nil {
		t.failures = 0
		result.Value = result.Indexed()
		if !t.see(&result) {
			return badInput(t.d.req.Method, "the server's answer about the task is not one")
		}
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && jsonrpc.FromPeer(err) {
		return t.refused(mcp.MethodGetTask, refused)
	}
	if t.failures++; t.failures >= MaxTaskPollFailures {
		return err
	}
	t.d.c.session.opts.Logger.Debug("looking at a task", "method", mcp.MethodGetTask, "err", err)
	return nil
}

// refused returns how a call fails whose task the server does not let be looked at or
// answered, as when its time to live is over. The server's own error would be taken for
// one about the call's params.
func (t *taskWait) refused(method string, err *jsonrpc.Error) error {
	public := fmt.Sprintf("the server refuses %s: %.200s", method, err.Message)
	if t.task.Life > 0 {
		public = fmt.Sprintf("%s (its time to live is %v)", public, t.task.Life)
	}
	return &mcp.CallError{
		Method: t.d.req.Method, Kind: mcp.BadReply, Outcome: mcp.MaybeExecuted,
		Err: fmt.Errorf("%s: %v", method, err), Public: public,
	}
}

// see takes up a state of the task, if it is one.
func (t *taskWait) see(state *mcp.Result) bool {
	task, ok := mcp.ReadTask(&state.Value)
	if !ok || task.ID != t.task.ID {
		return false
	}
	switch task.Status {
	case mcp.TaskWorking, mcp.InputRequired, mcp.TaskCompleted, mcp.TaskFailed, mcp.TaskCancelled:
	default:
		return false
	}
	t.state, t.task = *state, task
	return true
}

// outcome returns what a task that has ended says.
func (t *taskWait) outcome() (mcp.Result, error) {
	switch t.task.Status {
	case mcp.TaskCompleted:
		if result := t.state.Get("result"); result.IsObject() {
			return mcp.Result{Value: result}, nil
		}
		return mcp.Result{}, badInput(t.d.req.Method, "the server's task is completed and has no result")
	case mcp.TaskFailed:
		if failure := t.state.Get("error"); failure.IsObject() {
			return mcp.Result{}, jsonrpc.ReadError(&failure)
		}
	}
	public := "the server's task has " + t.task.Status
	if t.task.Status == mcp.TaskCancelled {
		public = "the server has cancelled its task"
	}
	if t.task.Message != "" {
		public = fmt.Sprintf("%s: %.200s", public, t.task.Message)
	}
	return mcp.Result{}, &mcp.CallError{
		Method: t.d.req.Method, Kind: mcp.Cancelled, Outcome: mcp.MaybeExecuted, Public: public,
	}
}

// cancel tells the server to stop a task whose call has ended.
func (t *taskWait) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), taskCancelWait)
	defer stop()
	if _, err := t.handle(ctx, mcp.MethodCancelTask); err != nil {
		t.d.c.session.opts.Logger.Debug("a task was not cancelled", "method", mcp.MethodCancelTask, "err", err)
	}
}

// handle makes a request about the task.
func (t *taskWait) handle(ctx context.Context, method string, edits ...jsonrpc.Edit) (mcp.Result, error) {
	edits = append([]jsonrpc.Edit{{Name: "taskId", Value: jsonrpc.AppendString(nil, t.task.ID)}}, edits...)
	req := t.request(method, jsonrpc.Edited(&jsonrpc.Value{}, edits...))
	return t.d.c.session.handler.Handle(ctx, req, mcp.NoCaller{})
}

func (t *taskWait) request(method string, params jsonrpc.Value) *mcp.Request {
	req := &mcp.Request{Method: method, Params: params, Meta: t.d.req.Meta}
	req.Meta.ProgressToken, req.Meta.TakesTasks = jsonrpc.ID{}, true
	return req
}
