package demo

import (
	"sync"
	"time"
)

// clockPeriod is how long the clock stands still between two changes.
const clockPeriod = 3 * time.Second

// now is what the clock shows.
func now() string { return time.Now().Truncate(clockPeriod).UTC().Format(time.RFC3339) }

// A clock ticks while somebody listens.
type clock struct {
	tick func() // set at construction

	mu        sync.Mutex
	listeners int         // guarded by mu
	timer     *time.Timer // to the next tick, guarded by mu
}

// watch starts the clock for the first who listens.
func (c *clock) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners++; c.listeners == 1 {
		c.timer = time.AfterFunc(clockPeriod, c.run)
	}
}

// unwatch stops it after the last.
func (c *clock) unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners--; c.listeners == 0 {
		c.timer.Stop()
	}
}

func (c *clock) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners > 0 {
		c.tick()
		c.timer.Reset(clockPeriod)
	}
}
