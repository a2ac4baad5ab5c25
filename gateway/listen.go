package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A listener is one listen call of a client. It listens at the backends that have
// something of its filter, and tells the client of what changes in the gateway itself.
// What it has not told yet is bounded by its filter.
type listener struct {
	// Set at construction.
	gateway *Gateway
	ctx     context.Context // of this one call
	cancel  context.CancelCauseFunc
	caller  mcp.Caller
	view    *view // as it was when the call began
	meta    mcp.Metadata
	filter  mcp.Filter
	wake    chan struct{} // something is to be told, or backends have come or gone
	acked   chan struct{} // closed when the client has been sent the acknowledgement
	running sync.WaitGroup

	audience string // of the view

	branches map[*backend]*branch // owned by the listen call

	mu      sync.Mutex
	changes mcp.Changes         // to be told; guarded by mu, like what follows
	updates map[string]struct{} // URIs
}

// listen answers subscriptions/listen. It acknowledges what the filter wants of lists,
// for the gateway changes itself, and the resources whose backends took them or are
// likely to. A backend's listen call that ends is made again as long as the client's
// lasts.
func (g *Gateway) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	who := req.Meta.Principal
	if full := g.listens.enter(who); full != nil {
		return mcp.Result{}, full.over(req.Method, "MaxListens", "listen calls are open")
	}
	defer g.listens.leave(who)
	if !g.start() {
		return mcp.Result{}, closed(req.Method)
	}
	defer g.running.Done()
	filter.TaskIDs = nil
	l := &listener{
		gateway: g, caller: caller, view: g.viewOf(&req.Meta), meta: lasting(&req.Meta), filter: filter,
		wake: make(chan struct{}, 1), acked: make(chan struct{}),
		branches: make(map[*backend]*branch), updates: make(map[string]struct{}),
	}
	l.audience = l.view.audience
	l.meta.LogLevel = req.Meta.LogLevel
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	defer l.running.Wait()
	defer l.cancel(nil)
	stop := context.AfterFunc(g.ctx, func() { l.cancel(mcp.ErrClosed) })
	defer stop()
	g.enlist(l)
	defer g.delist(l)
	return mcp.RawResult([]byte("{}")), l.run()
}

func (g *Gateway) enlist(l *listener) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listeners[l] = struct{}{}
	for b := range l.view.entries {
		for k := range lists {
			g.askAgain(l.view, b, k, &l.meta)
		}
	}
}

func (g *Gateway) delist(l *listener) {
	g.mu.Lock()
	delete(g.listeners, l)
	g.mu.Unlock()
}

// run is the listen call.
func (l *listener) run() error {
	if uris := l.filter.ResourceSubscriptions; len(uris) > 0 {
		l.gateway.learn(l.ctx, l.now(), &l.meta, anyBackend, resources, templates)
	}
	l.branch()
	granted := l.grant()
	if err := l.caller.Notify(l.ctx, granted.Acknowledge()); err != nil {
		return err
	}
	close(l.acked)
	for {
		select {
		case <-l.wake:
			l.branch()
			if err := mcp.NotifyAll(l.ctx, l.caller, l.take()); err != nil {
				return err
			}
		case <-l.ctx.Done():
			if err := context.Cause(l.ctx); isUntold(err) {
				return err
			}
			return nil
		}
	}
}

// now returns the listener's view: another one if that has been forgotten.
func (l *listener) now() *view { return l.gateway.current(l.view) }

// branch begins to listen at backends that have come, and stops at those that have gone.
// At one that has got a resource from another it listens anew.
func (l *listener) branch() {
	backends := l.gateway.all()
	v := l.now()
	owners := make([]*backend, len(l.filter.ResourceSubscriptions))
	for i, uri := range l.filter.ResourceSubscriptions {
		owners[i] = l.gateway.ownerOf(v, uri)
	}
	for _, b := range backends {
		filter, sure := l.share(v, b, owners)
		old := l.branches[b]
		if old != nil && old.covers(&filter, sure) || filter.Empty() && !filter.Session {
			continue
		}
		if old != nil {
			old.cancel()
		}
		l.branches[b] = l.newBranch(b, filter, sure, old != nil)
	}
	for b := range l.branches {
		if !slices.Contains(backends, b) {
			delete(l.branches, b) // its context has ended
		}
	}
}

// hasMore reports whether there are URIs that were not there before. Both are in the
// order of one filter.
func hasMore(uris, before []string) bool {
	for _, uri := range uris {
		i := slices.Index(before, uri)
		if i < 0 {
			return true
		}
		before = before[i+1:]
	}
	return false
}

// share returns what of the filter is a backend's: resources that it lists or may have,
// if no other one lists them. Owners are who lists those of the filter, and sure are those
// that it lists.
func (l *listener) share(v *view, b *backend, owners []*backend) (f mcp.Filter, sure []string) {
	f = l.filter
	f.ResourceSubscriptions = nil
	for i, uri := range l.filter.ResourceSubscriptions {
		if owners[i] == b {
			sure = append(sure, uri)
		}
		if owners[i] == b || owners[i] == nil && l.gateway.mayWatch(v, b) {
			f.ResourceSubscriptions = append(f.ResourceSubscriptions, uri)
		}
	}
	return f, sure
}

// mayWatch reports whether a backend may tell of changes of resources.
func (g *Gateway) mayWatch(v *view, b *backend) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	can, _ := g.knownCapabilities(v, b)
	return can == nil || can.subscribe
}

// grant waits for the backends to acknowledge and returns what of the filter is served.
// Those that do not in time are waited for no longer; of their resources those are
// granted that no other backend lists.
func (l *listener) grant() mcp.Filter {
	patience := l.gateway.opts.KeptBudget
	if len(l.filter.ResourceSubscriptions) > 0 {
		patience = l.gateway.opts.ListBudget
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	watched, v := make(map[string]bool), l.now()
	expired := false
	for b, br := range l.branches {
		if !expired {
			select {
			case <-br.settled:
			case <-timer.C:
				expired = true
			case <-l.ctx.Done():
				expired = true
			}
		}
		taken, pending := br.granted()
		for _, uri := range taken {
			watched[uri] = true
		}
		if !pending {
			continue
		}
		for _, uri := range br.filter.ResourceSubscriptions {
			watched[uri] = watched[uri] || l.gateway.ownerOf(v, uri) == b
		}
	}
	f := l.filter
	f.ResourceSubscriptions = nil
	for _, uri := range l.filter.ResourceSubscriptions {
		if watched[uri] {
			f.ResourceSubscriptions = append(f.ResourceSubscriptions, uri)
		}
	}
	return f
}

// tell has the client told of changes that it wants to hear of. It does not wait.
func (l *listener) tell(c mcp.Changes, uris ...string) {
	l.mu.Lock()
	l.changes |= c & l.filter.Changes()
	for _, uri := range uris {
		l.updates[uri] = struct{}{}
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns what is to be told.
func (l *listener) take() []*mcp.Notification {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.changes.AppendNotifications(nil)
	for _, uri := range l.filter.ResourceSubscriptions {
		if _, changed := l.updates[uri]; changed {
			params := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "uri", Value: jsonrpc.AppendString(nil, uri)})
			list = append(list, &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: params})
		}
	}
	l.changes = 0
	clear(l.updates)
	return list
}

// announce tells those who listen with a view that lists have changed, and has them look
// at their branches. g.mu is held.
func (g *Gateway) announce(v *view, c mcp.Changes) {
	for l := range g.listeners {
		if l.audience == v.audience {
			l.tell(c)
		}
	}
}

// announceAll tells all that lists have changed, and backends. g.mu is held.
func (g *Gateway) announceAll(c mcp.Changes) {
	for l := range g.listeners {
		l.tell(c)
	}
}
