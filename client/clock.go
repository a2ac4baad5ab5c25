package client

import (
	"context"
	"fmt"
	"sync"
	"time"
)

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

// unlimited stands for no limit.
const unlimited = time.Duration(1 << 62)

// limits returns the bounds of a call: its own, else those of the client; what is
// negative is none. A call that may go on without progress for long may do so.
func (o *Options) limits(call *CallOptions) (idle, whole time.Duration) {
	idle, whole = o.Timeout, o.MaxTimeout
	if call != nil && call.Timeout != 0 {
		idle = call.Timeout
		whole = max(whole, idle)
	}
	if call != nil && call.MaxTimeout != 0 {
		whole = call.MaxTimeout
	}
	if idle < 0 {
		idle = unlimited
	}
	if whole < 0 {
		whole = unlimited
	}
	return idle, whole
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(c.left(), c.expired)
	return ctx, c
}

// left returns how long the call may go on from since. c.mu is held.
func (c *clock) left() time.Duration { return max(min(c.idle-c.idling, c.whole-c.running), 0) }

// remaining returns how long the call may go on if nothing comes.
func (c *clock) remaining() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count()
	return c.left()
}

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
	if c.stopped > 0 {
		return
	}
	now := time.Now()
	c.idling += now.Sub(c.since)
	c.running += now.Sub(c.since)
	c.since = now
}

// progress begins the time without progress anew.
func (c *clock) progress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count()
	c.idling = 0
	// The timer finds out when it expires.
}

// stop stops the clock until resume was called as often.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count()
	c.stopped++
	c.timer.Stop()
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
	c.stop()
	c.end(nil)
}
