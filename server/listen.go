package server

import (
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
	listeners map[*listener]struct{}            // guarded by mu
	whole     map[string]map[*listener]struct{} // by URI, guarded by mu
	parts     map[string]map[*listener]struct{} // by URI without a slash at its end, guarded by mu
}

// A listener is one listen call. What it has not been told yet is bounded by what
// it has subscribed to, however slow its client is.
type listener struct {
	filter mcp.Filter
	wake   chan struct{} // holds one element if there is something to tell

	// Guarded by the hub's mu.
	lists changes
	uris  []string            // in the order of their changes
	has   map[string]struct{} // uris
}

func (h *hub) init(max int, coalesce time.Duration) {
	h.max, h.coalesce = max, coalesce
	h.listeners = make(map[*listener]struct{})
	h.whole = make(map[string]map[*listener]struct{})
	h.parts = make(map[string]map[*listener]struct{})
}

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
	for _, uri := range l.filter.ResourceSubscriptions {
		watch(h.whole, uri, l)
		watch(h.parts, strings.TrimSuffix(uri, "/"), l)
	}
	return nil
}

func watch(watchers map[string]map[*listener]struct{}, key string, l *listener) {
	if watchers[key] == nil {
		watchers[key] = make(map[*listener]struct{})
	}
	watchers[key][l] = struct{}{}
}

func unwatch(watchers map[string]map[*listener]struct{}, key string, l *listener) {
	if delete(watchers[key], l); len(watchers[key]) == 0 {
		delete(watchers, key)
	}
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	for _, uri := range l.filter.ResourceSubscriptions {
		unwatch(h.whole, uri, l)
		unwatch(h.parts, strings.TrimSuffix(uri, "/"), l)
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
// part of, as mcp.Filter.Wants has it.
func (h *hub) changed(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.whole) == 0 {
		return
	}
	for l := range h.whole[uri] {
		l.note(uri)
	}
	for i := range len(uri) {
		if strings.IndexByte("/?#", uri[i]) < 0 {
			continue
		}
		for l := range h.parts[uri[:i]] {
			l.note(uri)
		}
	}
}

// maxUntold is how many changed resources a listener keeps beside as many as it
// has subscribed to: parts of these can be any number.
const maxUntold = 1000

// note notes a change. When the parts of resources that have changed are too
// many, what has been subscribed to is said to have changed itself.
func (l *listener) note(uri string) {
	if _, noted := l.has[uri]; noted {
		return
	}
	if len(l.uris) >= maxUntold+len(l.filter.ResourceSubscriptions) {
		clear(l.has)
		l.uris = slices.Clone(l.filter.ResourceSubscriptions)
		for _, whole := range l.uris {
			l.has[whole] = struct{}{}
		}
		l.signal()
		return
	}
	if l.has == nil {
		l.has = make(map[string]struct{})
	}
	l.has[uri] = struct{}{}
	l.uris = append(l.uris, uri)
	l.signal()
}

func (l *listener) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns what has changed since the last time.
func (h *hub) take(l *listener) (lists changes, uris []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lists, uris = l.lists, l.uris
	l.lists, l.uris = 0, nil
	clear(l.has)
	return lists, uris
}

// listen answers subscriptions/listen: it acknowledges what of the filter it
// serves, then tells of changes until ctx ends.
func (s *Server) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	l := &listener{filter: s.served(filter), wake: make(chan struct{}, 1)}
	if !l.filter.Empty() {
		if err := s.hub.add(l); err != nil {
			return mcp.Result{}, err
		}
		defer s.hub.remove(l)
	}
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
			if err := s.tell(ctx, l, caller); err != nil && ctx.Err() == nil {
				return mcp.Result{}, err
			}
		}
	}
}

// tell tells a listener what it has not been told.
func (s *Server) tell(ctx context.Context, l *listener, caller mcp.Caller) error {
	lists, uris := s.hub.take(l)
	for _, n := range listNotifications {
		if lists&n.list == 0 {
			continue
		}
		if err := caller.Notify(ctx, &mcp.Notification{Method: n.method}); err != nil {
			return err
		}
	}
	for _, uri := range uris {
		params := append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}')
		n := &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted(params)}
		if err := caller.Notify(ctx, n); err != nil {
			return err
		}
	}
	return nil
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
