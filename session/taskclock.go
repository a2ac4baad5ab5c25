package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// DefaultMaxTaskWait is how long a call waits for the task that it has become, the
// time in which its client is being asked not counted.
const DefaultMaxTaskWait = time.Hour

// A taskClock ends the wait for a task after a limit. It stands still while a question
// is open.
type taskClock struct {
	method string
	limit  time.Duration
	ctx    context.Context // of the wait
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer // guarded by mu, like what follows
	left  time.Duration
	since time.Time // when it last began to run
	open  int       // questions
}

// errOverdue is why a wait ends whose time is over. It is no CallError: dialing
// edges take those for the end of their connection, and would not tell the server.
var errOverdue = errors.New("the wait for a task is over")

// startTaskClock returns a clock whose context ends with ctx, or when the clock says
// so. It must be stopped.
func startTaskClock(ctx context.Context, method string, limit time.Duration) *taskClock {
	c := &taskClock{method: method, limit: limit, left: limit, since: time.Now()}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(c.left, func() { c.cancel(errOverdue) })
	return c
}

// stop ends the context and the clock. It returns how the wait failed, given err.
func (c *taskClock) stop(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	cause := context.Cause(c.ctx)
	c.cancel(nil)
	switch {
	case errors.Is(cause, errOverdue):
		return &mcp.CallError{
			Method: c.method, Kind: mcp.LimitExceeded, Limit: "MaxTaskWait", Outcome: mcp.MaybeExecuted,
			Public: fmt.Sprintf("the server's task has not ended within %v", c.limit),
		}
	case cause != nil:
		return cause
	}
	return err
}

// pause counts a question more that is open.
func (c *taskClock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open++; c.open == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

// resume counts one less.
func (c *taskClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

// stands reports whether a question is open.
func (c *taskClock) stands() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > 0
}

// A clockedCaller is a caller whose questions stop the clock.
type clockedCaller struct {
	mcp.Caller
	clock *taskClock
}

// Ask implements [mcp.Caller].
func (c *clockedCaller) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	c.clock.pause()
	defer c.clock.resume()
	return c.Caller.Ask(ctx, req)
}
