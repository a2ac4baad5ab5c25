package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Waits between attempts to listen again after a backend's listen call has ended.
const (
	minRelisten = 500 * time.Millisecond
	maxRelisten = 30 * time.Second
)

// A branch is the part of a client's listen call that is of one backend: a listen call
// there, made again when it ends.
type branch struct {
	// Set at construction.
	listener *listener
	backend  *backend
	filter   mcp.Filter
	sure     []string        // those of its resources that the backend lists
	again    bool            // it takes the place of another one
	ctx      context.Context // of this one branch
	cancel   context.CancelFunc

	strict  atomic.Bool // the backend has refused resources of the filter
	once    sync.Once
	settled chan struct{} // closed when the backend has acknowledged, or an attempt has failed

	mu      sync.Mutex
	taken   []string // resources that the backend has acknowledged; guarded by mu
	pending bool     // it has neither acknowledged nor refused; guarded by mu
}

// An untoldError says that the client could not be told something.
type untoldError struct{ err error }

func (e *untoldError) Error() string { return fmt.Sprintf("telling the client: %v", e.err) }
func (e *untoldError) Unwrap() error { return e.err }

func isUntold(err error) bool {
	_, ok := errors.AsType[*untoldError](err)
	return ok
}

// newBranch begins to listen at a backend.
func (l *listener) newBranch(b *backend, filter mcp.Filter, sure []string, again bool) *branch {
	br := &branch{
		listener: l, backend: b, filter: filter, sure: sure, again: again, settled: make(chan struct{}), pending: true,
	}
	br.ctx, br.cancel = context.WithCancel(l.ctx)
	l.running.Go(br.keep)
	return br
}

// keep listens until the client's call ends, the backend is removed, or it turns out
// not to serve such a call at all.
func (br *branch) keep() {
	defer br.settle()
	ctx := br.ctx
	defer br.cancel()
	stop := context.AfterFunc(br.backend.ctx, br.cancel)
	defer stop()
	filter, again := br.filter, br.again
	for wait := minRelisten; ctx.Err() == nil; {
		began := time.Now()
		t := &twig{branch: br, again: again}
		req := newRequest(mcp.MethodListen, filter.Params(), &br.listener.meta)
		_, err := br.backend.ask(ctx, req, t)
		refused := t.isRefused(err)
		if refused && hasCode(err, jsonrpc.CodeInvalidParams) && br.less(&filter) {
			continue
		}
		if refused {
			br.take(nil)
		}
		br.settle()
		if ctx.Err() != nil || refused {
			return
		}
		again = true
		br.listener.gateway.opts.Logger.Debug("listening again", "backend", br.backend.name, "method", mcp.MethodListen, "err", err)
		if time.Since(began) > maxRelisten {
			wait = minRelisten
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
		}
		wait = min(2*wait, maxRelisten)
	}
}

// less takes resources out of a filter that a strict backend has refused as a whole: first
// those that it does not list, then all. It reports whether there is something left to
// listen for.
func (br *branch) less(f *mcp.Filter) bool {
	br.strict.Store(true)
	switch n := len(f.ResourceSubscriptions); {
	case n == 0:
		return false
	case len(br.sure) < n:
		f.ResourceSubscriptions = br.sure
	default:
		f.ResourceSubscriptions = nil
	}
	return !f.Empty() || f.Session
}

// covers reports whether there is nothing new in a filter and in what of it the backend
// lists, which it may have refused before.
func (br *branch) covers(f *mcp.Filter, sure []string) bool {
	if br.strict.Load() && hasMore(sure, br.sure) {
		return false
	}
	return !hasMore(f.ResourceSubscriptions, br.filter.ResourceSubscriptions)
}

func (br *branch) settle() { br.once.Do(func() { close(br.settled) }) }

// take takes up what the backend has acknowledged, nil if it has refused.
func (br *branch) take(uris []string) {
	br.mu.Lock()
	br.taken, br.pending = uris, false
	br.mu.Unlock()
}

// granted returns the resources that the backend has acknowledged, and whether it is
// still to say.
func (br *branch) granted() (uris []string, pending bool) {
	br.mu.Lock()
	defer br.mu.Unlock()
	return br.taken, br.pending
}

// A twig is one listen call at a backend, and the Caller of it.
type twig struct {
	branch *branch
	again  bool // there was one before

	mu    sync.Mutex
	heard bool // it was acknowledged; guarded by mu
}

// isRefused reports whether the backend does not serve such a call: it answered with an
// error before it acknowledged.
func (t *twig) isRefused(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.heard && hasCode(err, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, jsonrpc.CodeMissingCapability)
}

// Notify implements [mcp.Caller].
func (t *twig) Notify(ctx context.Context, n *mcp.Notification) error {
	br := t.branch
	l := br.listener
	if n.Method == mcp.NotificationAcknowledged {
		t.acknowledged(n)
		return nil
	}
	if c := mcp.ChangesOf(n.Method); c != 0 {
		l.gateway.changed(br.backend, c)
	}
	if !br.filter.Wants(n) {
		return nil
	}
	select {
	case <-l.acked: // which comes first
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-br.ctx.Done():
	}
	if br.ctx.Err() != nil { // a backend may not heed that
		return context.Cause(br.ctx)
	}
	err := l.caller.Notify(ctx, n)
	if err != nil && ctx.Err() == nil { // else it is the branch that ends
		l.cancel(&untoldError{err})
	}
	return err
}

// acknowledged takes up what the backend confirms. What it has told nobody since it was
// last listened to, or since the client was told that it is, may have changed.
func (t *twig) acknowledged(n *mcp.Notification) {
	t.mu.Lock()
	first := !t.heard
	t.heard = true
	t.mu.Unlock()
	if !first {
		return
	}
	br := t.branch
	granted, err := mcp.ReadFilter(&n.Params)
	if err != nil {
		granted = mcp.Filter{}
	}
	taken := slices.DeleteFunc(granted.ResourceSubscriptions, func(uri string) bool {
		return !slices.Contains(br.filter.ResourceSubscriptions, uri)
	})
	br.take(taken)
	missed := t.again || br.listener.isAcked()
	br.settle()
	if missed {
		br.listener.gateway.changed(br.backend, allChanged)
		br.listener.tell(allChanged, taken...)
	}
}

func (l *listener) isAcked() bool {
	select {
	case <-l.acked:
		return true
	default:
		return false
	}
}

// Ask implements [mcp.Caller]: what a legacy server asks outside calls.
func (t *twig) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	br := t.branch
	if br.ctx.Err() != nil {
		return mcp.Result{}, context.Cause(br.ctx)
	}
	return br.listener.caller.Ask(ctx, req)
}
