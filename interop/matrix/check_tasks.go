package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// hasTasks reports whether a side has tasks, of either kind.
func (s *side) hasTasks() bool { return s.era == mcp.Modern || s.revision.HasTasks() }

// hasOwnTasks reports whether the client has its server's kind of tasks, which pass. Those
// of another are awaited for it.
func (c *cell) hasOwnTasks() bool {
	return c.clientSide.era == c.serverSide.era && c.clientSide.hasTasks() && c.serverSide.hasTasks()
}

func withoutTasks(c *cell) string {
	if c.serverSide.hasTasks() {
		return ""
	}
	return fmt.Sprintf("a server of %s has no tasks (2025-11-25, basic/utilities/tasks, Capabilities)", c.serverSide.revision)
}

func withoutTaskProgress(c *cell) string {
	if why := withoutTasks(c); why != "" || c.clientSide.era == mcp.Legacy || c.serverSide.era == mcp.Legacy {
		return why
	}
	return "a task of the extension tells of no progress, its state does (2026-07-28, extension tasks, Task Status Notifications)"
}

// A taskClient makes requests about tasks as they are on the wire.
type taskClient struct {
	cell   *cell
	caller mcp.Caller
}

// do makes a request, of a client that takes tasks of the extension if it is modern.
func (t *taskClient) do(ctx context.Context, method, params string) (mcp.Result, error) {
	req := &mcp.Request{Method: method, Params: jsonrpc.Trusted([]byte(params))}
	meta := req.Params.Get("_meta")
	req.Meta.ProgressToken = mcp.ReadProgressToken(&meta)
	if t.cell.clientSide.era == mcp.Modern {
		req.Meta.Capabilities = []byte(`{"extensions":{"` + mcp.ExtensionTasks + `":{}},"sampling":{}}`)
	}
	result, err := t.cell.Handle(ctx, req, t.caller)
	if err != nil {
		return result, fmt.Errorf("%s: %w", method, err)
	}
	result.Value = result.Indexed()
	return result, nil
}

// create has a task made and returns what names it, as a member of params. It must be
// token for token what the server has made of it.
func (t *taskClient) create(ctx context.Context, w work) (id string, err error) {
	params := fmt.Sprintf(`{"name":%q,"arguments":{"kind":%q,"text":%q},"_meta":{"progressToken":"of %s"}}`, workTool, w.Kind, w.Text, w.Text)
	if t.cell.serverSide.era == mcp.Legacy {
		params = params[:len(params)-1] + `,"task":{"ttl":60000}}`
	}
	result, err := t.do(ctx, mcp.MethodCallTool, params)
	if err != nil {
		return "", err
	}
	state := result.Value
	if t.cell.serverSide.era == mcp.Legacy {
		state = result.Get("task")
	} else if err := differ("the type of the result", result.Type(), mcp.TaskCreated); err != nil {
		return "", err
	}
	raw, _ := state.Lookup("taskId")
	return `"taskId":` + string(raw), wantTask(&state, mcp.TaskWorking, workStates[0])
}

// wantTask asserts what the state of a task says.
func wantTask(state *jsonrpc.Value, status, message string) error {
	task, ok := mcp.ReadTask(state)
	vendor, _ := state.Lookup("vendor")
	if !ok || !strings.HasPrefix(task.ID, "tâsk ") {
		return fmt.Errorf("a task is %s", state.Raw())
	}
	return errors.Join(
		differ("its status", task.Status+" "+task.Message, status+" "+message),
		differ("its unknown member", string(vendor), "1.0"),
	)
}

// look asserts how a task is.
func (t *taskClient) look(ctx context.Context, id, status, message string) (mcp.Result, error) {
	result, err := t.do(ctx, mcp.MethodGetTask, "{"+id+"}")
	if err == nil {
		err = wantTask(&result.Value, status, message)
	}
	return result, err
}

// end returns the text in which a task has resulted.
func (t *taskClient) end(ctx context.Context, id string) (string, error) {
	if t.cell.serverSide.era == mcp.Legacy {
		result, err := t.do(ctx, mcp.MethodTaskResult, "{"+id+"}")
		if err != nil {
			return "", err
		}
		related := mcp.RelatedTask(&result.Value)
		return textOfRaw(&result.Value, differ("the result's task", `"taskId":`+string(jsonrpc.AppendString(nil, related)), id))
	}
	state, err := t.look(ctx, id, mcp.TaskCompleted, workStates[len(workStates)-1])
	result := state.Get("result")
	return textOfRaw(&result, err)
}

func textOfRaw(v *jsonrpc.Value, err error) (string, error) {
	if err != nil {
		return "", err
	}
	var result mcp.CallToolResult
	err = mcp.JSON(v.Raw()).Decode(&result)
	return textOf(&result, err)
}

// checkWork is the check of work of one kind that the client need not know is a task.
func checkWork(kind string) func(context.Context, *cell) error {
	return func(ctx context.Context, c *cell) error {
		got, err := c.call(ctx, workTool, work{kind, kind})
		if err != nil {
			return err
		}
		want := kind + " is done"
		if kind == workAsking {
			want = "re: " + kind + " by " + model
		}
		return differ("the result", got, want)
	}
}

func checkTask(ctx context.Context, c *cell) error {
	// Whoever does not ask for a task, or has not declared them, gets the result.
	err := checkWork(workAtOnce)(ctx, c)
	if !c.hasOwnTasks() {
		return errors.Join(err, c.checkForeignTasks(ctx))
	}
	t := &taskClient{c, mcp.NoCaller{}}
	id, made := t.create(ctx, work{workAtOnce, "it"})
	if made != nil {
		return errors.Join(err, made)
	}
	if c.serverSide.era == mcp.Legacy {
		_, looked := t.look(ctx, id, mcp.TaskWorking, workStates[0])
		list, listed := t.do(ctx, mcp.MethodListTasks, "{}")
		if raw, _ := list.Lookup("tasks"); listed == nil && !strings.Contains(string(raw), id) {
			listed = fmt.Errorf("the list is %s", raw)
		}
		err = errors.Join(err, looked, listed)
	}
	got, ended := t.end(ctx, id)
	_, none := t.do(ctx, mcp.MethodGetTask, `{"taskId":"none"}`)
	return errors.Join(err, ended, differ("the result", got, "it is done"), wantCode("a task that there is not", none, jsonrpc.CodeInvalidParams))
}

// checkForeignTasks: a client has nothing to do with tasks of the other era's kind, and is
// not told of them. Without a wire it has whatever its server has.
func (c *cell) checkForeignTasks(ctx context.Context) error {
	if c.clientSide.era == c.serverSide.era || c.clientSide.direct {
		return nil
	}
	discover, err := c.Server(ctx)
	if err != nil {
		return err
	}
	told, err := mcp.NewJSON(discover.Capabilities)
	if text := string(told); err != nil || strings.Contains(text, `"tasks":`) || strings.Contains(text, mcp.ExtensionTasks) {
		return errors.Join(err, fmt.Errorf("the client is told of %s", told))
	}
	t := &taskClient{c, mcp.NoCaller{}}
	var errs []error
	for _, method := range []string{mcp.MethodGetTask, mcp.MethodCancelTask, mcp.MethodTaskResult, mcp.MethodListTasks, mcp.MethodUpdateTask} {
		_, err := t.do(ctx, method, `{"taskId":"x"}`)
		errs = append(errs, wantCode(method, err, jsonrpc.CodeMethodNotFound))
	}
	return errors.Join(errs...)
}

// checkNoTask: what asks for a task means nothing to a server that has none.
func checkNoTask(ctx context.Context, c *cell) error {
	t := &taskClient{c, mcp.NoCaller{}}
	result, err := t.do(ctx, mcp.MethodCallTool, fmt.Sprintf(`{"name":%q,"arguments":{"kind":%q,"text":"it"},"task":{"ttl":60000}}`, workTool, workAtOnce))
	got, err := textOfRaw(&result.Value, err)
	_, looked := t.do(ctx, mcp.MethodGetTask, `{"taskId":"x"}`)
	return errors.Join(err, differ("the result", got, "it is done"), wantCode("a look at a task", looked, jsonrpc.CodeMethodNotFound))
}

// workProgress is the progress of work.
const workProgress = "1 of -1: begun, 2 of -1: step 1, 3 of -1: step 2"

func checkTaskProgress(ctx context.Context, c *cell) error {
	var told collected
	if !c.hasOwnTasks() {
		got, err := c.callWith(ctx, workTool, work{workSteps, "it"}, &client.CallOptions{Progress: told.progress})
		if err != nil {
			return err
		}
		return errors.Join(differ("the result", got, "it is done"), differ("the progress", told.String(), workProgress))
	}
	w := &witness{came: make(map[string]string)}
	t := &taskClient{c, w}
	id, err := t.create(ctx, work{workSteps, "it"})
	if err != nil {
		return err
	}
	got, err := t.end(ctx, id)
	var want strings.Builder
	for i, state := range workStates {
		fmt.Fprintf(&want, `{"progressToken":"of it","progress":%d,"message":%q}`, i+1, state)
	}
	return errors.Join(err, differ("the result", got, "it is done"), differ("the progress", w.said(mcp.NotificationProgress), want.String()))
}

// checkTaskStates is instead of checkTaskProgress: a client looks for itself, and who has
// no tasks is told as of any call.
func checkTaskStates(ctx context.Context, c *cell) error {
	if !c.hasOwnTasks() {
		return checkTaskProgress(ctx, c)
	}
	t := &taskClient{c, mcp.NoCaller{}}
	id, err := t.create(ctx, work{workSteps, "it"})
	if err != nil {
		return err
	}
	for _, state := range workStates[1:] {
		if _, err := t.look(ctx, id, mcp.TaskWorking, state); err != nil {
			return err
		}
	}
	got, err := t.end(ctx, id)
	return errors.Join(err, differ("the result", got, "it is done"))
}

func checkTaskAsks(ctx context.Context, c *cell) error {
	if !c.hasOwnTasks() {
		return checkWork(workAsking)(ctx, c)
	}
	w := &witness{came: make(map[string]string)}
	t := &taskClient{c, w}
	id, err := t.create(ctx, work{workAsking, "what?"})
	if err != nil {
		return err
	}
	if c.serverSide.era == mcp.Modern {
		if err := t.answer(ctx, id); err != nil {
			return err
		}
	}
	got, err := t.end(ctx, id)
	asked := w.said(mcp.MethodCreateMessage)
	if c.serverSide.era == mcp.Legacy && (!strings.Contains(asked, `"text":"what?"`) || !strings.Contains(asked, id)) {
		err = errors.Join(err, fmt.Errorf("the client was asked %s", asked))
	}
	return errors.Join(err, differ("what the server was told", got, "é by m")) // see asideAnswer
}

// answer answers what a task of the extension asks, which it does at each look.
func (t *taskClient) answer(ctx context.Context, id string) error {
	for _, message := range workStates[1:] {
		state, err := t.look(ctx, id, mcp.InputRequired, message)
		if requests, _ := state.Lookup("inputRequests"); err == nil && !strings.Contains(string(requests), `"text":"what?"`) {
			err = fmt.Errorf("the task asks %s", requests)
		}
		if err != nil {
			return err
		}
	}
	_, err := t.do(ctx, mcp.MethodUpdateTask, "{"+id+`,"inputResponses":{"q":`+asideAnswer+`}}`)
	return err
}

func checkTaskCancelled(ctx context.Context, c *cell) error {
	if !c.hasOwnTasks() {
		return checkWorkCancelled(ctx, c)
	}
	t := &taskClient{c, mcp.NoCaller{}}
	id, err := t.create(ctx, work{workHeld, "work"})
	if err != nil {
		return err
	}
	cancelled, err := t.do(ctx, mcp.MethodCancelTask, "{"+id+"}")
	if err != nil {
		return err
	}
	if c.serverSide.era == mcp.Legacy {
		err = wantTask(&cancelled.Value, mcp.TaskCancelled, "")
	}
	message := map[mcp.Era]string{mcp.Legacy: workStates[0], mcp.Modern: workStates[1]}[c.serverSide.era]
	_, looked := t.look(ctx, id, mcp.TaskCancelled, message)
	_, released := c.call(ctx, "await", keyed{"released work"})
	return errors.Join(err, looked, released)
}

// checkWorkCancelled cancels a call that may have become a task.
func checkWorkCancelled(ctx context.Context, c *cell) error {
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.call(cancelled, workTool, work{workHeld, "work"})
		ended <- err
	}()
	_, err := c.call(ctx, "await", keyed{"held work"})
	cancel()
	ending := <-ended
	if err != nil {
		return err
	}
	if failure, ok := errors.AsType[*mcp.CallError](ending); !ok || failure.Kind != mcp.Cancelled {
		return fmt.Errorf("the call ended with %v", ending)
	}
	if _, err = c.call(ctx, "await", keyed{"released work"}); err != nil {
		return fmt.Errorf("the server has not seen it: %w", err)
	}
	return nil
}
