package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// changes are lists that have changed.
type changes uint8

const (
	toolsChanged changes = 1 << iota
	promptsChanged
	resourcesChanged
)

// listNotifications are sent in this order.
var listNotifications = []struct {
	list   changes
	method string
}{
	{toolsChanged, mcp.NotificationToolsListChanged},
	{promptsChanged, mcp.NotificationPromptsListChanged},
	{resourcesChanged, mcp.NotificationResourcesListChanged},
}

// listsChanged returns a function that tells clients that lists have changed.
func (s *Server) listsChanged(lists changes) func() {
	return func() { s.hub.listsChanged(lists) }
}

// Changed tells the clients that have subscribed to resources, or to what these
// are parts of, that they have changed. It does not wait for anybody. Changes of
// one resource that come faster than a client takes them are told it once.
//
// That lists have changed is told when features are added or removed.
func (s *Server) Changed(uris ...string) {
	for _, uri := range uris {
		s.hub.changed(uri)
	}
}

// A hub tells listen calls of changes.
type hub struct {
	// Set at construction.
	max      int           // listen calls at a time
	coalesce time.Duration // for which changes are collected

	mu        sync.Mutex
	listeners map[*listener]struct{} // guarded by mu
	watchers  map[string]*watched    // by URI without a slash at its end, guarded by mu
	last      uint64                 // number of a listener, guarded by mu
}

// A watched is a resource to which listeners have subscribed.
type watched struct {
	uri       string      // as the first of them has it
	listeners []*listener // in the order of their numbers
}

// A listener is one listen call. What it has not been told yet is bounded by what
// it has subscribed to, however slow its client is.
type listener struct {
	// Set before it is known to the hub.
	number uint64 // that nobody else has
	filter mcp.Filter
	wake   chan struct{} // holds one element if there is something to tell

	// Guarded by the hub's mu.
	lists   changes
	changed []*mcp.Notification // resources, in the order of their changes
	has     map[string]struct{} // their URIs
}

func (h *hub) init(max int, coalesce time.Duration) {
	h.max, h.coalesce = max, coalesce
	h.listeners = make(map[*listener]struct{})
	h.watchers = make(map[string]*watched)
}

// watchKey is what a subscription to a URI is found by.
func watchKey(uri string) string { return strings.TrimSuffix(uri, "/") }

func (h *hub) add(l *listener) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.listeners) >= h.max {
		return &mcp.CallError{
			Method: mcp.MethodListen, Kind: mcp.LimitExceeded, Limit: "MaxListens", Outcome: mcp.Answered,
			Public: fmt.Sprintf("%d subscriptions are open", h.max),
		}
	}
	h.listeners[l] = struct{}{}
	h.last++
	l.number = h.last
	for i, uri := range l.filter.ResourceSubscriptions {
		l.filter.ResourceSubscriptions[i] = h.watch(uri, l)
	}
	return nil
}

// watch notes a subscription. It returns the URI as others who have subscribed to
// it have it, so that many of them do not keep many copies. h.mu is held.
func (h *hub) watch(uri string, l *listener) string {
	key := watchKey(uri)
	w := h.watchers[key]
	if w == nil {
		w = &watched{uri: uri}
		h.watchers[watchKey(uri)] = w
	}
	// It is the last one if it has subscribed to the resource twice.
	if n := len(w.listeners); n == 0 || w.listeners[n-1] != l {
		w.listeners = append(w.listeners, l)
	}
	if w.uri == uri {
		return w.uri
	}
	return uri
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	for _, uri := range l.filter.ResourceSubscriptions {
		h.unwatch(watchKey(uri), l)
	}
}

// unwatch takes back a subscription. h.mu is held.
func (h *hub) unwatch(key string, l *listener) {
	w := h.watchers[key]
	if w == nil {
		return // it had subscribed twice
	}
	i, found := slices.BinarySearchFunc(w.listeners, l.number, func(other *listener, number uint64) int {
		return cmp.Compare(other.number, number)
	})
	if found {
		w.listeners = slices.Delete(w.listeners, i, i+1)
	}
	if len(w.listeners) == 0 {
		delete(h.watchers, key)
	}
}

// listsChanged notes that lists have changed.
func (h *hub) listsChanged(lists changes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if wanted := lists & wantedLists(&l.filter); wanted != 0 {
			l.lists |= wanted
			l.signal()
		}
	}
}

func wantedLists(f *mcp.Filter) (lists changes) {
	if f.ToolsListChanged {
		lists |= toolsChanged
	}
	if f.PromptsListChanged {
		lists |= promptsChanged
	}
	if f.ResourcesListChanged {
		lists |= resourcesChanged
	}
	return lists
}

// changed notes that a resource has changed, for who watches it or what it is a
// part of.
func (h *hub) changed(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) == 0 {
		return
	}
	var n *mcp.Notification
	note := func(key string) {
		w := h.watchers[key]
		if w == nil {
			return
		}
		if n == nil {
			n = resourceUpdated(uri)
		}
		for _, l := range w.listeners {
			l.note(uri, n)
		}
	}
	note(watchKey(uri))
	for i := len(uri) - 1; i > 0; i-- {
		if uri[i] == '/' && i < len(uri)-1 || uri[i] == '?' || uri[i] == '#' {
			note(strings.TrimSuffix(uri[:i], "/"))
		}
	}
}

// resourceUpdated returns the notification that a resource has changed.
func resourceUpdated(uri string) *mcp.Notification {
	params := append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}')
	return &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted(params)}
}

// maxUntold is how many changed resources a listener keeps beside as many as it
// has subscribed to: parts of these can be any number.
const maxUntold = 1000

// note notes a change. When the parts of resources that have changed are too
// many, what has been subscribed to is said to have changed itself.
func (l *listener) note(uri string, n *mcp.Notification) {
	if _, noted := l.has[uri]; noted {
		return
	}
	if l.has == nil {
		l.has = make(map[string]struct{})
	}
	if len(l.changed) >= maxUntold+len(l.filter.ResourceSubscriptions) {
		clear(l.has)
		l.changed = nil
		for _, whole := range l.filter.ResourceSubscriptions {
			l.has[whole] = struct{}{}
			l.changed = append(l.changed, resourceUpdated(whole))
		}
	} else {
		l.has[uri] = struct{}{}
		l.changed = append(l.changed, n)
	}
	l.signal()
}

func (l *listener) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns what has changed since the last time.
func (h *hub) take(l *listener) (lists changes, resources []*mcp.Notification) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lists, resources = l.lists, l.changed
	l.lists, l.changed, l.has = 0, nil, nil
	return lists, resources
}

// listen answers subscriptions/listen: it acknowledges what of the filter it
// serves, then tells of changes until ctx ends.
func (s *Server) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	l := &listener{filter: s.served(filter), wake: make(chan struct{}, 1)}
	if err := s.hub.add(l); err != nil {
		return mcp.Result{}, err
	}
	defer s.hub.remove(l)
	if err := caller.Notify(ctx, l.filter.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	for {
		select {
		case <-ctx.Done():
			return mcp.RawResult(append(s.begin(nil, req), '}')), nil
		case <-l.wake:
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.hub.coalesce):
			if err := s.tell(ctx, l, caller); err != nil {
				return mcp.Result{}, err
			}
		}
	}
}

// tell tells a listener what it has not been told.
func (s *Server) tell(ctx context.Context, l *listener, caller mcp.Caller) error {
	lists, list := s.hub.take(l)
	for i := len(listNotifications) - 1; i >= 0; i-- {
		if n := listNotifications[i]; lists&n.list != 0 {
			list = slices.Insert(list, 0, &mcp.Notification{Method: n.method})
		}
	}
	return mcp.NotifyAll(ctx, caller, list)
}

// served returns what of a filter the server serves: changes of lists that it
// declares, and resources that it has.
func (s *Server) served(f mcp.Filter) mcp.Filter {
	c := s.capabilities()
	f.ToolsListChanged = f.ToolsListChanged && c.Tools != nil && c.Tools.ListChanged
	f.PromptsListChanged = f.PromptsListChanged && c.Prompts != nil && c.Prompts.ListChanged
	f.ResourcesListChanged = f.ResourcesListChanged && c.Resources != nil && c.Resources.ListChanged
	f.ResourceSubscriptions = slices.DeleteFunc(slices.Clone(f.ResourceSubscriptions), func(uri string) bool {
		read, _ := s.findResource(uri)
		return read == nil || c.Resources == nil || !c.Resources.Subscribe
	})
	return f
}
