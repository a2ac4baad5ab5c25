package gateway

import (
	"math/rand/v2"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// lateEvery is how often a client is told at most that one list has come late. One that
// is different each time would have it ask, and be told, for ever.
const lateEvery = 30 * time.Second

// announceLate tells those who listen with a view of a list that has come late, at once
// or when it may be told of again. g.mu is held, by a goroutine of the gateway's.
func (g *Gateway) announceLate(v *view, b *backend, k kind) {
	e := v.entries[b]
	if e == nil || e.telling[k] {
		return
	}
	wait := lateEvery - time.Since(e.told[k])
	if wait <= 0 {
		e.told[k] = time.Now()
		g.announce(v, changedBy[k])
		return
	}
	e.telling[k] = true
	g.running.Go(func() {
		select {
		case <-time.After(wait):
		case <-b.ctx.Done(): // which everybody is told
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		e.telling[k], e.told[k] = false, time.Now()
		g.announce(v, changedBy[k])
	})
}

// Waits before a list that could not be had is asked for again, while a client listens
// for its changes: it has been shown less than there is.
const (
	minMissing = 30 * time.Second
	maxMissing = 5 * time.Minute
)

// missed takes up whether a flight has brought its list. g.mu is held.
func (g *Gateway) missed(f *flight, v *view, b *backend, k kind) {
	e := v.entries[b]
	switch {
	case k == discovery || e == nil:
	case f.err == nil:
		e.misses[k] = 0
	default:
		e.misses[k]++
		g.askAgain(v, b, k, &f.meta)
	}
}

// askAgain asks for a list that could not be had, in a while, if it is awaited then. What
// comes is announced. g.mu is held.
func (g *Gateway) askAgain(v *view, b *backend, k kind, meta *mcp.Metadata) {
	e := v.entries[b]
	if g.closed || b.ctx.Err() != nil || e.misses[k] == 0 || e.asking[k] || !g.isAwaited(v, k) {
		return
	}
	e.asking[k] = true
	wait := min(minMissing<<min(e.misses[k]-1, 10), maxMissing)
	g.running.Go(func() {
		select {
		case <-time.After(wait + rand.N(wait/2)):
		case <-b.ctx.Done():
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		e.asking[k] = false
		if e.misses[k] > 0 && e.flights[k] == nil && g.isAwaited(v, k) {
			g.launch(&flight{meta: *meta, done: make(chan struct{}), late: true, shown: g.known(v, b, k)}, v, b, k)
		}
	})
}

// isAwaited reports whether somebody listens with a view for changes of a list. g.mu is
// held.
func (g *Gateway) isAwaited(v *view, k kind) bool {
	if g.views[v.key] != v {
		return false
	}
	for l := range g.listeners {
		if l.audience == v.audience && l.filter.Changes()&changedBy[k] != 0 {
			return true
		}
	}
	return false
}
