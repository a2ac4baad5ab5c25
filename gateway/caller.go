package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A relay is a Caller that hands on to another one all that Callers may do.
type relay struct{ mcp.Caller }

// NotifyAll implements [mcp.Batcher].
func (r relay) NotifyAll(ctx context.Context, list []*mcp.Notification) error {
	return mcp.NotifyAll(ctx, r.Caller, list)
}

// Release implements [mcp.Releaser].
func (r relay) Release(ctx context.Context, retry time.Duration) error {
	return mcp.Release(ctx, r.Caller, retry)
}

// Lend hands on what a dialing edge lends (transport.Borrower).
func (r relay) Lend(free func()) {
	if b, ok := r.Caller.(interface{ Lend(free func()) }); ok {
		b.Lend(free)
	}
}

// A pausing is the Caller of a call that does not count while its user is asked: users
// may take minutes, and how many may be asked is limited where they are.
type pausing struct {
	relay
	calls *shared
	who   mcp.Principal

	mu     sync.Mutex
	asking int // questions that are open, guarded by mu
}

// Ask implements [mcp.Caller].
func (p *pausing) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	p.ask(1)
	defer p.ask(-1)
	return p.relay.Ask(ctx, req)
}

// ask counts questions that are open, and the call while there are none.
func (p *pausing) ask(more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.asking
	p.asking += more
	switch {
	case before == 0:
		p.calls.leave(p.who)
	case p.asking == 0:
		p.calls.comeBack(p.who)
	}
}

// A trial is the Caller of a request that may be made at another backend if this one
// fails: not any more once the client has been asked something, or told of progress,
// which would begin anew.
type trial struct {
	relay
	begun atomic.Bool
	keep  func() // it may take longer now
}

func (t *trial) begin() {
	if t.begun.CompareAndSwap(false, true) {
		t.keep()
	}
}

// Ask implements [mcp.Caller].
func (t *trial) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	t.begin()
	return t.relay.Ask(ctx, req)
}

// Notify implements [mcp.Caller].
func (t *trial) Notify(ctx context.Context, n *mcp.Notification) error {
	if n.Method == mcp.NotificationProgress {
		t.begin()
	}
	return t.relay.Notify(ctx, n)
}

// NotifyAll implements [mcp.Batcher].
func (t *trial) NotifyAll(ctx context.Context, list []*mcp.Notification) error {
	for _, n := range list {
		if n.Method == mcp.NotificationProgress {
			t.begin()
		}
	}
	return t.relay.NotifyAll(ctx, list)
}
