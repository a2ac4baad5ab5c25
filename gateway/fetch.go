package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A flight asks one backend for one list, or what it can do, for one view. It goes on
// when nobody waits for it any more, up to Options.LateLimit. Whoever comes while one
// is under way waits for the next one, which begins when it has landed: an answer may be
// older than the question, otherwise.
type flight struct {
	meta mcp.Metadata
	done chan struct{} // closed when it has landed

	// Set before done is closed.
	list  *list
	can   *capabilities
	err   error
	until time.Time // when the list may not be used again any more; zero for at once

	// Guarded by Gateway.mu.
	began   time.Time // zero while it waits for another one
	changes int       // of the list, when it began
	late    bool      // somebody has not waited for it
	shown   *list     // what was shown instead, nil for nothing
}

// fetch begins a flight, or joins the one that is to begin next.
func (g *Gateway) fetch(v *view, b *backend, k kind, meta *mcp.Metadata) *flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.ctx.Err() != nil { // nothing is to be remembered of it
		f := &flight{done: make(chan struct{}), err: closed(methods[k])}
		close(f.done)
		return f
	}
	e := v.entry(b)
	switch {
	case e.flights[k] == nil:
		f := &flight{meta: lasting(meta), done: make(chan struct{})}
		g.launch(f, v, b, k)
		return f
	case e.next[k] == nil:
		e.next[k] = &flight{meta: lasting(meta), done: make(chan struct{})}
	}
	return e.next[k]
}

// newest is fetch, or joins the flight that is under way, for who knows nothing.
func (g *Gateway) newest(v *view, b *backend, k kind, meta *mcp.Metadata) *flight {
	g.mu.Lock()
	var f *flight
	if e := v.entries[b]; e != nil {
		f = e.flights[k]
	}
	known := g.known(v, b, k)
	g.mu.Unlock()
	if f != nil && known == nil {
		return f
	}
	return g.fetch(v, b, k, meta)
}

// launch begins a flight. g.mu is held.
func (g *Gateway) launch(f *flight, v *view, b *backend, k kind) {
	if g.closed || b.ctx.Err() != nil {
		f.err = closed(methods[k])
	} else if full := b.listings.enter(f.meta.Principal); full != nil {
		many := fmt.Sprintf("lists of backend %q are asked for, or wait for that", b.name)
		f.err = full.over(methods[k], "MaxWaitingListings", many)
	}
	if f.err != nil {
		close(f.done)
		g.missed(f, v, b, k)
		return
	}
	e := v.entry(b)
	e.flights[k] = f
	f.began = time.Now()
	if k != discovery {
		f.changes = e.changes[k]
	}
	g.running.Go(func() { g.fly(f, v, b, k) })
}

// fly is the goroutine of a flight.
func (g *Gateway) fly(f *flight, v *view, b *backend, k kind) {
	ctx, cancel := context.WithTimeout(b.ctx, g.opts.LateLimit)
	defer cancel()
	select {
	case b.asking <- struct{}{}:
		f.can, f.list, f.err = g.obtain(ctx, v, b, k, &f.meta)
		<-b.asking
	case <-ctx.Done():
		f.err = givenUp(ctx, methods[k])
	}
	g.land(f, v, b, k).log(g.opts.Logger)
}

// land ends a flight, and begins the next one.
func (g *Gateway) land(f *flight, v *view, b *backend, k kind) (t *trouble) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.err != nil {
		t = b.missed(k, f.err)
		g.doubt(b)
	} else {
		b.answered(k)
	}
	b.listings.leave(f.meta.Principal)
	if e := v.entries[b]; e != nil {
		if f.list != nil && f.list.life > 0 && e.changes[k] == f.changes {
			f.until = f.began.Add(f.list.life)
		}
		g.keep(v, b, k, f)
		next := e.next[k]
		e.flights[k], e.next[k] = nil, nil
		if next != nil {
			g.launch(next, v, b, k)
		}
	}
	close(f.done)
	g.missed(f, v, b, k)
	if f.late && f.list != nil && !f.list.equals(f.shown) {
		g.announceLate(v, b, k)
	}
	return t
}

// capabilitiesLife is for how long a list trusts what its backend has said that it can
// do.
const capabilitiesLife = time.Minute

// obtain asks a backend for a list, and for what it can do if that is not known.
func (g *Gateway) obtain(ctx context.Context, v *view, b *backend, k kind, meta *mcp.Metadata) (*capabilities, *list, error) {
	if k == discovery {
		can, err := b.discover(ctx, meta)
		return can, nil, err
	}
	g.mu.RLock()
	can, at := g.knownCapabilities(v, b)
	g.mu.RUnlock()
	var told *capabilities // if newer than what is known
	if can == nil || time.Since(at) > capabilitiesLife {
		var err error
		if can, err = b.discover(ctx, meta); err != nil {
			return nil, nil, err
		}
		told, at = can, time.Now()
	}
	if !can.has[k] {
		return told, &list{life: max(can.life-time.Since(at), 0), public: can.public}, nil
	}
	l, err := b.list(ctx, k, meta)
	return told, l, err
}

// A wait is somebody's waiting for a flight.
type wait struct {
	flight  *flight
	at      time.Time // when it began
	view    *view
	backend *backend
	kind    kind
}

// await waits for a flight, no longer than its backend's budget, and returns what is to
// be shown: nil if nothing is known. Whole says that it is what the backend has now.
func (g *Gateway) await(ctx context.Context, w *wait) (l *list, whole bool) {
	budget := g.budget(w)
	timer := time.NewTimer(budget - time.Since(w.at))
	defer timer.Stop()
	select {
	case <-w.flight.done:
	case <-ctx.Done():
		return nil, false
	case <-timer.C:
		g.leave(w, budget).log(g.opts.Logger)
	}
	if w.flight.hasLanded() && w.flight.err == nil {
		return w.flight.list, true
	}
	if w.kind == discovery {
		return nil, false
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.known(w.view, w.backend, w.kind), false
}

func (f *flight) hasLanded() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// budget returns how long a backend is waited for.
func (g *Gateway) budget(w *wait) time.Duration {
	g.mu.RLock()
	defer g.mu.RUnlock()
	known := false
	if w.kind == discovery {
		can, _ := g.knownCapabilities(w.view, w.backend)
		known = can != nil
	} else {
		known = g.known(w.view, w.backend, w.kind) != nil
	}
	if known || w.backend.isLate(w.kind) {
		return g.opts.KeptBudget
	}
	return g.opts.ListBudget
}

// leave notes that somebody has waited in vain for a flight, and what is shown instead,
// unless it has landed just now.
func (g *Gateway) leave(w *wait, waited time.Duration) *trouble {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.flight.hasLanded() {
		return nil
	}
	if w.kind != discovery {
		w.flight.late, w.flight.shown = true, g.known(w.view, w.backend, w.kind)
	}
	return w.backend.wasLate(w.kind, waited)
}

// givenUp is the failure of a request whose client has gone.
func givenUp(ctx context.Context, method string) error {
	kind := mcp.Cancelled
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		kind = mcp.TimedOut
	}
	return &mcp.CallError{Method: method, Kind: kind, Outcome: mcp.NotSent, Err: context.Cause(ctx)}
}

// isEmptyList reports whether an error says that a backend has no such list.
func isEmptyList(err error) bool { return hasCode(err, jsonrpc.CodeMethodNotFound) }
