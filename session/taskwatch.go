package session

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A taskWatch hears of a task from the server, if that offers it (extension tasks,
// Task Status Notifications). It is the Caller of the listen call for that.
type taskWatch struct {
	started bool
	id      string
	granted atomic.Bool     // what changes is told
	news    chan mcp.Result // the newest state; the zero Result to look at the task
}

// start begins to listen, once.
func (w *taskWatch) start(ctx context.Context, t *taskWait) {
	if w.started {
		return
	}
	w.started, w.id = true, t.task.ID
	req := t.request(mcp.MethodListen, mcp.Filter{TaskIDs: []string{w.id}}.Params())
	t.running.Go(func() {
		// Whatever ends it, polling goes on.
		_, err := t.d.c.session.handler.Handle(ctx, req, w)
		t.d.c.session.opts.Logger.Debug("a task is not told of", "method", mcp.MethodListen, "err", err)
		if w.granted.Swap(false) {
			w.tell(mcp.Result{})
		}
	})
}

// tell replaces what has not been taken yet.
func (w *taskWatch) tell(state mcp.Result) {
	for {
		select {
		case w.news <- state:
			return
		default:
		}
		select {
		case <-w.news:
		default:
		}
	}
}

// Notify implements [mcp.Caller].
func (w *taskWatch) Notify(_ context.Context, n *mcp.Notification) error {
	switch n.Method {
	case mcp.NotificationAcknowledged:
		filter, err := mcp.ReadFilter(&n.Params)
		if err == nil && slices.Contains(filter.TaskIDs, w.id) {
			w.granted.Store(true)
			// It may have changed since it was looked at.
			w.tell(mcp.Result{})
		}
	case mcp.NotificationTask:
		if mcp.TaskID(&n.Params) == w.id {
			v := jsonrpc.Trusted(bytes.Clone(n.Params.Raw()))
			w.tell(mcp.Result{Value: v.Indexed()})
		}
	}
	return nil
}

// Ask implements [mcp.Caller]: a modern server asks by the task's state.
func (w *taskWatch) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}

// taskHeartbeat is how often a client hears of a task of which there is no news, so
// that it does not give up.
const taskHeartbeat = 10 * time.Second

// taskProgress tells a client by progress notifications how a task is.
type taskProgress struct {
	count   float64
	status  string // as last told
	message string
	last    time.Time
}

// tell sends a notification if there is news, or has been none for long.
func (p *taskProgress) tell(ctx context.Context, t *taskWait) {
	c := t.d.c
	if c.req.Meta.ProgressToken.IsZero() || t.task.Over() ||
		p.status == t.task.Status && p.message == t.task.Message && time.Since(p.last) < taskHeartbeat {
		return
	}
	p.status, p.message, p.last = t.task.Status, t.task.Message, time.Now()
	// It goes on from what the server has told itself.
	p.count = math.Floor(max(p.count, c.progressed())) + 1
	// A client that has gone ends the wait by other means.
	_ = c.Notify(ctx, newProgress(c.req.Meta.ProgressToken, p.count, p.message))
}

// rest returns how long the client may be told nothing from now on.
func (p *taskProgress) rest() time.Duration { return time.Until(p.last.Add(taskHeartbeat)) }

// newProgress returns a progress notification, with a message unless that is empty.
func newProgress(token jsonrpc.ID, count float64, message string) *mcp.Notification {
	edits := []jsonrpc.Edit{
		{Name: mcp.MetaProgressToken, Value: token.Raw()},
		{Name: "progress", Value: strconv.AppendFloat(nil, count, 'f', -1, 64)},
	}
	if message != "" {
		edits = append(edits, jsonrpc.Edit{Name: "message", Value: jsonrpc.AppendString(nil, message)})
	}
	return &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Edited(&jsonrpc.Value{}, edits...)}
}
