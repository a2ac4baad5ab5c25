package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A guardedCaller is the Caller of one call with its clock: progress puts the
// timeout off, and an open question stops it.
type guardedCaller struct {
	caller mcp.Caller
	clock  *clock
	used   atomic.Bool // something has come for the call, which is not to be made again
}

// Notify implements [mcp.Caller].
func (g *guardedCaller) Notify(ctx context.Context, n *mcp.Notification) error {
	g.used.Store(true)
	if n.Method == mcp.NotificationProgress {
		g.clock.progress()
	}
	return g.caller.Notify(ctx, n)
}

// Ask implements [mcp.Caller].
func (g *guardedCaller) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	g.used.Store(true)
	g.clock.stop()
	defer g.clock.resume()
	return g.caller.Ask(ctx, req)
}

// Release implements [mcp.Releaser]; nobody waits on a line here.
func (g *guardedCaller) Release(ctx context.Context, retry time.Duration) error {
	return mcp.Release(ctx, g.caller, retry)
}

// A clock ends a call when it has gone on for too long without progress, or in
// all.
type clock struct {
	idle, whole time.Duration // bounds
	end         context.CancelCauseFunc

	mu      sync.Mutex
	stopped int         // questions that are open, guarded by mu, like what follows
	timer   *time.Timer // runs unless stopped
	since   time.Time   // when it was started
	idling  time.Duration
	running time.Duration // until since
}

// A TimeoutError says that a call went on for too long.
type TimeoutError struct {
	Limit string // Timeout or MaxTimeout
	After time.Duration
}

// Error names the limit.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("no answer within the limit %s of %v", e.Limit, e.After)
}

// Is reports that it is a [context.DeadlineExceeded].
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// startClock returns a context that the clock ends.
func startClock(ctx context.Context, idle, whole time.Duration) (context.Context, *clock) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{idle: idle, whole: whole, end: cancel, since: time.Now()}
	c.timer = time.AfterFunc(c.left(), c.expired)
	return ctx, c
}

// left returns how long the call may go on. c.mu is held, or the clock is new.
func (c *clock) left() time.Duration { return max(min(c.idle-c.idling, c.whole-c.running), 0) }

func (c *clock) expired() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped > 0 {
		return
	}
	c.count()
	if left := c.left(); left > 0 {
		c.timer.Reset(left)
		return
	}
	if c.whole <= c.running {
		c.end(&TimeoutError{"MaxTimeout", c.whole})
		return
	}
	c.end(&TimeoutError{"Timeout", c.idle})
}

// count takes up the time since the clock was started. c.mu is held.
func (c *clock) count() {
	now := time.Now()
	c.idling += now.Sub(c.since)
	c.running += now.Sub(c.since)
	c.since = now
}

// progress begins the time without progress anew.
func (c *clock) progress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped == 0 {
		c.count()
	}
	c.idling = 0
	// The timer finds out when it expires.
}

// stop stops the clock until resume was called as often.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped++; c.stopped == 1 {
		c.count()
		c.timer.Stop()
	}
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped--; c.stopped == 0 {
		c.since = time.Now()
		c.timer.Reset(c.left())
	}
}

// done ends the clock with its call.
func (c *clock) done() {
	c.mu.Lock()
	c.stopped++
	c.timer.Stop()
	c.mu.Unlock()
	c.end(nil)
}
