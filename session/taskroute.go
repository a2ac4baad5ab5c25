package session

import (
	"context"
	"strconv"
	"strings"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// taskRequest serves what a client that knows tasks of 2025-11-25 says about one: it
// passes, if the task is the client's own.
func (c *Client) taskRequest(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.IsModernOnly() {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	if req.Method == mcp.MethodListTasks {
		result, err := c.send(ctx, req, caller)
		if err == nil {
			result = c.tasks.own(req, result)
		}
		return result, err
	}
	old, err := c.tasks.check(req)
	if err != nil && !c.capabilities.TaskTools {
		err = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found") // as the server would say
	}
	if err != nil {
		return mcp.Result{}, err
	}
	result, err := c.send(ctx, req, caller)
	if task, ok := mcp.ReadTask(&req.Params); old && ok && err == nil {
		c.tasks.found(&knownTask{id: task.ID, owner: req.Meta.ClientKey(), over: overAt(DefaultMaxTaskWait)})
	}
	return result, err
}

// isTaskRequest reports whether a request is about a task.
func isTaskRequest(method string) bool { return strings.HasPrefix(method, "tasks/") }

// callFor returns the call through which a question about a task of the server
// reaches its client: one that awaits the task, else the client's session, else
// whatever the client has in flight. It reports false if the task is not known.
func (c *Client) callFor(id string) (call *inflight.Call, known bool) {
	owner, call, known := c.tasks.find(id)
	if !known || call != nil {
		return call, known
	}
	call = c.waiterFor(owner, id)
	if call == nil {
		call = c.listenerOf(owner)
	}
	if call == nil {
		call = c.calls.Of(owner, func(call *inflight.Call) bool { return canCarry(call.Request) })
	}
	return call, true
}

// waiterFor returns the call by which a client waits for the result of a task of its own,
// nil if there is none.
func (c *Client) waiterFor(owner, id string) *inflight.Call {
	return c.calls.Of(owner, func(call *inflight.Call) bool {
		return call.Request.Method == mcp.MethodTaskResult && mcp.TaskID(&call.Request.Params) == id
	})
}

// newsCall returns the call by which the client of a task hears of it, nil for none: one
// that awaits the task, else the client's own wait for the result, which comes after it
// then, else the client's session. It reports false if the task is not known.
func (c *Client) newsCall(id string) (call *inflight.Call, known bool) {
	owner, call, known := c.tasks.find(id)
	if !known || call != nil {
		return call, known
	}
	if call = c.waiterFor(owner, id); call == nil {
		call = c.listenerOf(owner)
	}
	return call, true
}

// listenerOf returns the newest listen call to the session of one client, nil if it
// has none.
func (c *Client) listenerOf(owner string) *inflight.Call {
	c.mu.Lock()
	listeners, _ := c.calls.Listening(func(call *inflight.Call) bool {
		return call.Filter.Session && call.Request.Meta.ClientKey() == owner
	})
	c.mu.Unlock()
	var newest *inflight.Call
	for _, call := range listeners {
		if newest == nil || call.ID > newest.ID {
			newest = call
		}
	}
	return newest
}

// taskStatus gives news of a task to its client: as progress of the call if it knows
// no tasks. What is said of one that nobody has made is as any other notification.
func (c *Client) taskStatus(n *mcp.Notification, on *inflight.Call) {
	task, _ := mcp.ReadTask(&n.Params)
	call, known := c.newsCall(task.ID)
	switch {
	case !known:
		c.foreign(n, on)
	case call == nil:
	case !c.tasks.isOurs(task.ID):
		call.Notify(n)
	default:
		if count, token := c.tasks.count(task.ID); !token.IsZero() && !task.Over() {
			call.Notify(newProgress(token, count, task.Message))
		}
	}
}

// taskProgress gives progress of a call that has become a task to its client, under
// the token of that.
func (c *Client) taskProgress(n *mcp.Notification) {
	token := mcp.ProgressToken(&n.Params)
	id, ok := token.LooseInt() // as it is read as long as the call is in flight
	if !ok {
		return
	}
	if !c.tasks.awaitsNews(about{call: id}, len(n.Params.Raw()), func() { c.progressOf(id, n) }) {
		c.progressOf(id, n)
	}
}

// progressOf is taskProgress for what a call has made.
func (c *Client) progressOf(id int64, n *mcp.Notification) {
	raw, _ := n.Params.Lookup("progress")
	progress, _ := strconv.ParseFloat(string(raw), 64)
	task, token := c.tasks.progressOf(id, progress)
	if token.IsZero() {
		return
	}
	if call, _ := c.newsCall(task); call != nil {
		call.Notify(&mcp.Notification{Method: n.Method, Params: mcp.WithProgressToken(&n.Params, token)})
	}
}

// saidOfTask keeps which client works on a question as a task, if one does, and what a
// client says of such a task.
func (c *Client) saidOfTask(req *mcp.Request, result *mcp.Result, on *inflight.Call) {
	owner := on.Request.Meta.ClientKey()
	if isTaskRequest(req.Method) {
		c.tasks.theirs.answered(req, result, owner)
		return
	}
	if _, ok := req.Params.Lookup("task"); !ok {
		return
	}
	v := result.Get("task")
	task, ok := mcp.ReadTask(&v)
	if !ok {
		return
	}
	var present map[string]bool
	if c.tasks.theirs.isFull() {
		present = c.calls.Clients()
	}
	c.tasks.theirs.keep(task, owner, present)
}
