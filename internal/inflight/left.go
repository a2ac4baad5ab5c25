package inflight

import (
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A leftCall is one that ended here without a response. The peer may work on it for
// a while, and ask or tell something that belongs to its client.
type leftCall struct {
	client string
	until  time.Time
}

// Bounds of what is remembered of such calls.
const (
	leftFor = 10 * time.Second
	maxLeft = 1024 // further ones take the place of any
)

// end takes a call out of those in flight.
func (c *Calls) end(call *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.calls[call.ID]; !there {
		return
	}
	delete(c.calls, call.ID)
	if call.own || call.Request.Method == mcp.MethodListen {
		return
	}
	settled := call.settled()
	if settled && c.remembers {
		c.remember(call)
	}
	if settled || c.err != nil {
		return
	}
	c.expire(time.Now())
	for id := range c.left {
		if len(c.left) < maxLeft {
			break
		}
		delete(c.left, id)
	}
	if c.left == nil {
		c.left = make(map[int64]leftCall)
	}
	c.left[call.ID] = leftCall{call.client(), time.Now().Add(leftFor)}
}

// settled reports whether the peer has nothing to do with the call any more: it has
// answered, be it by what is no answer, or never had it.
func (c *Call) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished && (c.err == nil || mcp.OutcomeOf(c.err) != mcp.MaybeExecuted)
}

// Left reports whether the call has ended without a response.
func (c *Call) Left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left || c.finished && c.err != nil
}

// over tells that the peer has answered a call that had ended here.
func (c *Calls) over(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.left, id)
}

// Telling says that the peer is about to be told that the call was left. Told must be
// called when it has been, or cannot be.
func (c *Call) Telling() (told func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.telling = true
	return func() {
		c.mu.Lock()
		c.telling = false
		c.mu.Unlock()
		c.settle()
	}
}

// Then has f called when the call has ended, and the peer has been told if it was
// left. That may be at once.
func (c *Call) Then(f func()) {
	c.mu.Lock()
	c.then = append(c.then, f)
	c.mu.Unlock()
	c.settle()
}

// settle does what is to be done after the end, if that has come: all at once, since the
// peer may be slow to take each answer.
func (c *Call) settle() {
	c.mu.Lock()
	if !c.ended || c.telling {
		c.mu.Unlock()
		return
	}
	then := c.then
	c.then = nil
	c.mu.Unlock()
	if len(then) == 0 {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	for _, f := range then {
		running.Go(f)
	}
}

// expire forgets calls that were left long ago. c.mu is held.
func (c *Calls) expire(now time.Time) {
	for id, l := range c.left {
		if !now.Before(l.until) {
			delete(c.left, id)
		}
	}
}

// LeftByOthers reports whether calls of another client than the given one ended
// without a response a short while ago. A peer that may go on with such calls can
// mean these.
func (c *Calls) LeftByOthers(client string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.left) == 0 {
		return false
	}
	c.expire(time.Now())
	for _, l := range c.left {
		if l.client != client {
			return true
		}
	}
	return false
}
