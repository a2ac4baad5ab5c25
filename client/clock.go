package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
)

// A clock ends a call when it has gone on for too long without progress, or in
// all.
type clock struct {
	// Set at the start.
	all         *clocks
	idle, whole time.Duration // bounds
	end         context.CancelCauseFunc

	before, next *clock        // in the list of all; guarded by all.mu, like what follows
	stopped      int           // questions that are open
	since        time.Time     // when it began to run, unless it is stopped
	idling       time.Duration // until since, like running
	running      time.Duration
}

// clocks are those of one client. They share a timer: to start and stop one for each
// call costs more than all else that a clock does.
type clocks struct {
	mu    sync.Mutex
	first *clock      // of those whose calls are in flight; guarded by mu, like what follows
	timer *time.Timer // nil until one is needed
	at    time.Time   // when the timer expires: no later than any clock; zero if it does not
}

// unlimited stands for no limit.
const unlimited = inflight.NoLimit

// limits returns the bounds of a call: its own, else those of the client; what is
// negative is none. A call that may go on without progress for long may do so.
func (o *Options) limits(call *CallOptions) (idle, whole time.Duration) {
	idle, whole = limit(o.Timeout), limit(o.MaxTimeout)
	if call != nil && call.Timeout != 0 {
		idle = limit(call.Timeout)
		whole = max(whole, call.Timeout)
	}
	if call != nil && call.MaxTimeout != 0 {
		whole = limit(call.MaxTimeout)
	}
	return idle, whole
}

// limit returns the bound that an option stands for.
func limit(option time.Duration) time.Duration {
	if option < 0 {
		return unlimited
	}
	return option
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

// start starts the clock and returns a context that it ends.
func (c *clock) start(ctx context.Context, all *clocks, idle, whole time.Duration) context.Context {
	c.all, c.idle, c.whole = all, idle, whole
	ctx, c.end = context.WithCancelCause(ctx)
	all.mu.Lock()
	defer all.mu.Unlock()
	c.since = time.Now()
	if c.next = all.first; c.next != nil {
		c.next.before = c
	}
	all.first = c
	c.expect()
	return ctx
}

// expect has the timer expire no later than the clock. all.mu is held.
func (c *clock) expect() {
	left := c.left()
	if min(c.idle, c.whole) < unlimited {
		c.all.expireBy(c.since.Add(left), left)
	}
}

// expireBy has the timer expire at a time, which is after a while from now, or before.
// l.mu is held.
func (l *clocks) expireBy(at time.Time, after time.Duration) {
	if !l.at.IsZero() && !at.Before(l.at) {
		return
	}
	l.at = at
	if l.timer == nil {
		l.timer = time.AfterFunc(after, l.expired)
	} else {
		l.timer.Reset(after)
	}
}

// left returns how long the call may go on from since. all.mu is held.
func (c *clock) left() time.Duration { return max(min(c.idle-c.idling, c.whole-c.running), 0) }

// remaining returns how long the call may go on if nothing comes.
func (c *clock) remaining() time.Duration {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.count(time.Now())
	return c.left()
}

// most returns the longest wait of ours, up to one, that leaves the server as much of the
// time without progress.
func (c *clock) most(wait time.Duration) time.Duration { return min(wait, c.idle/2) }

// expired ends the calls whose time is up.
func (l *clocks) expired() {
	for _, c := range l.late() {
		if c.whole <= c.running {
			c.end(&TimeoutError{"MaxTimeout", c.whole})
		} else {
			c.end(&TimeoutError{"Timeout", c.idle})
		}
	}
}

// late returns the clocks that have run down, stopped for good, and sets the timer
// for the others.
func (l *clocks) late() []*clock {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Time{}
	now := time.Now()
	var late []*clock
	for c := l.first; c != nil; c = c.next {
		if c.stopped > 0 {
			continue
		}
		if c.count(now); c.left() > 0 {
			c.expect()
			continue
		}
		c.stopped++
		late = append(late, c)
	}
	return late
}

// count takes up the time since the clock was started. all.mu is held.
func (c *clock) count(now time.Time) {
	if c.stopped > 0 {
		return
	}
	c.idling += now.Sub(c.since)
	c.running += now.Sub(c.since)
	c.since = now
}

// progress begins the time without progress anew.
func (c *clock) progress() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.count(time.Now())
	c.idling = 0
	// The timer finds out when it expires.
}

// stop stops the clock until resume was called as often.
func (c *clock) stop() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.count(time.Now())
	c.stopped++
}

func (c *clock) resume() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.stopped--; c.stopped == 0 {
		c.since = time.Now()
		c.expect()
	}
}

// done ends the clock with its call.
func (c *clock) done() {
	c.all.remove(c)
	c.end(nil)
}

func (l *clocks) remove(c *clock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.next != nil {
		c.next.before = c.before
	}
	if c.before != nil {
		c.before.next = c.next
	} else {
		l.first = c.next
	}
}

// close stops the timer. No call is in flight any more.
func (l *clocks) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
		l.at = time.Time{}
	}
}
