package transport

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A floor lets calls of one client at a time through. Whoever has it keeps it as
// long as a call of that client is in flight, so that a client which is asked
// something may call while it finds the answer; then it goes to who has waited
// longest. The zero floor is nobody's.
type floor struct {
	mu      sync.Mutex
	client  string // who has it; guarded by mu, like what follows
	calls   int    // of that client in flight
	waiting []*waiting
}

// A waiting call is one of a client that does not have the floor.
type waiting struct {
	client string
	let    chan struct{} // closed when the client has it
}

// enter returns nil if the client has the floor, and else what waits for it.
func (f *floor) enter(client string) *waiting {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == 0 || f.client == client {
		f.client = client
		f.calls++
		return nil
	}
	w := &waiting{client, make(chan struct{})}
	f.waiting = append(f.waiting, w)
	return w
}

// giveUp ends the waiting, and reports false if it has ended already.
func (f *floor) giveUp(w *waiting) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.waiting, w)
	if i < 0 {
		return false
	}
	f.waiting = slices.Delete(f.waiting, i, i+1)
	return true
}

// leave ends a call. With its client's last one the floor goes to the next client,
// and all calls of that.
func (f *floor) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls--; f.calls > 0 || len(f.waiting) == 0 {
		return
	}
	f.client = f.waiting[0].client
	f.waiting = slices.DeleteFunc(f.waiting, func(w *waiting) bool {
		if w.client != f.client {
			return false
		}
		f.calls++
		close(w.let)
		return true
	})
}

// holds returns how many calls the client that has the floor has in flight.
func (f *floor) holds() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// enter waits until a call may go to a connection, if calls are serialized. Leave
// is to be called when it has ended.
func (p *Pool) enter(ctx context.Context, c *pooled, req *mcp.Request) (leave func(), err error) {
	if p.opts.Isolation != Serialized || !takesTurn(c, req) {
		return func() {}, nil
	}
	w := c.floor.enter(req.Meta.ClientKey())
	if w == nil {
		return c.floor.leave, nil
	}
	timeout := time.NewTimer(p.opts.TurnWait)
	defer timeout.Stop()
	failure := &mcp.CallError{Method: req.Method, Outcome: mcp.NotSent}
	select {
	case <-w.let:
		return c.floor.leave, nil
	case <-ctx.Done():
		failure.Kind, failure.Err = kindOf(ctx, ctx.Err()), context.Cause(ctx)
	case <-c.edge.Done():
		failure.Kind, failure.Err = mcp.ConnectionLost, c.edge.Err()
	case <-timeout.C:
		failure.Kind, failure.Limit = mcp.LimitExceeded, "TurnWait"
		failure.Public = fmt.Sprintf("another client has had calls in flight for %v, now %d of them", p.opts.TurnWait, c.floor.holds())
	}
	if !c.floor.giveUp(w) {
		c.floor.leave() // it has got the floor meanwhile, and has no use for it
	}
	return nil, failure
}

// takesTurn reports whether a request waits for its client's turn: not if it has no
// end of its own, or does not reach a legacy server.
func takesTurn(c *pooled, req *mcp.Request) bool {
	return !req.Notification && req.Method != mcp.MethodListen && req.Method != mcp.MethodDiscover &&
		c.edge.Server().Era == mcp.Legacy
}
