package inflight

import "time"

// An answered is when a call of a client was answered last.
type answered struct {
	client string
	at     time.Time
	last   int64 // id of the newest call at that time
}

// RememberAnswered has it remembered from now on when calls were answered, for
// [Calls.AnsweredOther].
func (c *Calls) RememberAnswered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remembers = true
}

// remember notes that a call has ended that was answered. c.mu is held.
func (c *Calls) remember(call *Call) {
	if client := call.client(); client != c.answered.client {
		c.answered, c.answeredBefore = answered{client: client}, c.answered
	}
	c.answered.at, c.answered.last = time.Now(), c.last
}

// AnsweredOther reports whether a call of another client than that of call was answered
// less than a while ago: beside, if call was in flight at that time, or before, if it has
// begun since. What the peer says outside calls can be overtaken by that answer, and mean
// the other client.
func (c *Calls) AnsweredOther(call *Call, beside, before time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	other := c.answered
	if other.client == call.client() {
		other = c.answeredBefore
	}
	if other.at.IsZero() {
		return false
	}
	if call.ID <= other.last {
		return time.Since(other.at) < beside
	}
	return time.Since(other.at) < before
}
