package gateway

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A listed is the list of one backend, as far as it is known.
type listed struct {
	backend *backend
	list    *list // nil for nothing
	whole   bool  // it is what the backend has now
	until   time.Time
}

// gather asks all backends for a list, at once, and returns what has come within their
// budgets, or else what is known from before.
func (g *Gateway) gather(ctx context.Context, v *view, k kind, meta *mcp.Metadata) ([]listed, error) {
	at := time.Now()
	backends := g.all()
	got := make([]listed, len(backends))
	flights := make([]*flight, len(backends))
	for i, b := range backends {
		got[i].backend = b
		if l, until := g.fresh(v, b, k); l != nil {
			got[i].list, got[i].whole, got[i].until = l, true, until
			continue
		}
		flights[i] = g.fetch(v, b, k, meta)
	}
	for i, f := range flights {
		if f == nil {
			continue
		}
		got[i].list, got[i].whole = g.await(ctx, &wait{flight: f, at: at, view: v, backend: got[i].backend, kind: k})
		if got[i].whole {
			got[i].until = f.until
		}
	}
	if ctx.Err() != nil {
		return nil, givenUp(ctx, methods[k])
	}
	return got, nil
}

// recall returns what is known of all backends, without asking.
func (g *Gateway) recall(v *view, k kind) []listed {
	g.mu.RLock()
	defer g.mu.RUnlock()
	got := make([]listed, len(g.backends))
	for i, b := range g.backends {
		got[i] = listed{backend: b, list: g.known(v, b, k)}
	}
	return got
}

// learn asks those backends for lists of which nothing is known, and waits for them.
// Only are the backends that matter.
func (g *Gateway) learn(ctx context.Context, v *view, meta *mcp.Metadata, only func(*backend) bool, of ...kind) {
	at := time.Now()
	var waits []wait
	for _, b := range g.all() {
		if !only(b) {
			continue
		}
		for _, k := range of {
			if g.isMissing(v, b, k) {
				waits = append(waits, wait{flight: g.newest(v, b, k, meta), at: at, view: v, backend: b, kind: k})
			}
		}
	}
	for i := range waits {
		g.await(ctx, &waits[i])
	}
}

// learnLate asks backends for a list that is not known, or may be another one by now, and
// waits for as long as it takes: up to Options.LateLimit, or until whoever asks has gone
// or wants no more. It yields the backends as they answer, or fail to, or as they have
// too many calls to wait for one more. Only are the backends that matter.
func (g *Gateway) learnLate(ctx context.Context, v *view, req *mcp.Request, k kind, only func(*backend) bool) iter.Seq2[*backend, error] {
	return func(yield func(*backend, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var waiting sync.WaitGroup
		defer waiting.Wait()
		defer cancel()
		backends := g.all()
		landed, n := make(chan *backend, len(backends)), 0
		for _, b := range backends {
			if l, _ := g.fresh(v, b, k); l != nil || !only(b) {
				continue
			}
			if err := b.enter(req.Method, req.Meta.Principal); err != nil {
				if !yield(b, err) {
					return
				}
				continue
			}
			f := g.newest(v, b, k, &req.Meta)
			n++
			waiting.Go(func() {
				defer b.calls.leave(req.Meta.Principal)
				select {
				case <-f.done:
					landed <- b
				case <-ctx.Done():
				}
			})
		}
		for ; n > 0; n-- {
			select {
			case b := <-landed:
				if !yield(b, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// isMissing reports whether nothing is known of a list.
func (g *Gateway) isMissing(v *view, b *backend, k kind) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.known(v, b, k) == nil
}
