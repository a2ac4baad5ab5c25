package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

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

// A watched is a resource to which listeners have subscribed. A thousand of them
// for each of a hundred resources are usual, hence lists, which are smaller than
// maps.
type watched struct {
	uri            string      // shared by all that have subscribed to it
	plain, slashed []*listener // to the URI without and with a slash at its end, in the order of their numbers
}

func (h *hub) init(max int, coalesce time.Duration) {
	h.max, h.coalesce = max, coalesce
	h.listeners = make(map[*listener]struct{})
	h.watchers = make(map[string]*watched)
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
	h.last++
	l.number = h.last
	for i, uri := range l.filter.ResourceSubscriptions {
		l.filter.ResourceSubscriptions[i] = h.watch(uri, l)
	}
	return nil
}

// watch notes a subscription and returns the URI as others have it too. h.mu is
// held.
func (h *hub) watch(uri string, l *listener) string {
	key, slashed := strings.CutSuffix(uri, "/")
	w := h.watchers[key]
	if w == nil {
		w = &watched{uri: uri}
		h.watchers[key] = w
	}
	list := &w.plain
	if slashed {
		list = &w.slashed
	}
	// It is the last one if it has subscribed to the resource twice.
	if n := len(*list); n == 0 || (*list)[n-1] != l {
		*list = append(*list, l)
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
		key := strings.TrimSuffix(uri, "/")
		w := h.watchers[key]
		if w == nil {
			continue // it had subscribed twice
		}
		w.plain, w.slashed = without(w.plain, l), without(w.slashed, l)
		if len(w.plain)+len(w.slashed) == 0 {
			delete(h.watchers, key)
		}
	}
}

// without returns a list of listeners without one of them.
func without(list []*listener, l *listener) []*listener {
	i, found := slices.BinarySearchFunc(list, l.number, func(other *listener, number uint64) int {
		return cmp.Compare(other.number, number)
	})
	if !found {
		return list
	}
	return slices.Delete(list, i, i+1)
}

// listsChanged notes that lists have changed.
func (h *hub) listsChanged(lists mcp.Changes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if wanted := lists & l.filter.Changes(); wanted != 0 {
			l.lists |= wanted
			h.wake(l)
		}
	}
}

// changed notes that a resource has changed, for who watches it or what it is a
// part of, as mcp.Filter.Wants has it.
func (h *hub) changed(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) == 0 {
		return
	}
	c := &change{uri: uri}
	if w := h.watchers[uri]; w != nil {
		h.note(w.plain, c)
	}
	for i := range len(uri) {
		if strings.IndexByte("/?#", uri[i]) < 0 {
			continue
		}
		if w := h.watchers[uri[:i]]; w != nil {
			h.note(w.plain, c)
			h.note(w.slashed, c)
		}
	}
}

// A change is that of one resource. All who are told of it share what they are
// told.
type change struct {
	uri          string
	notification *mcp.Notification // nil as long as nobody is to be told
}

func (c *change) told() *mcp.Notification {
	if c.notification == nil {
		params := append(jsonrpc.AppendString([]byte(`{"uri":`), c.uri), '}')
		c.notification = &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted(params)}
	}
	return c.notification
}

// maxUntold is how many changed resources a listener keeps beside as many as it
// has subscribed to: parts of these can be any number.
const maxUntold = 1000

// note notes a change for listeners. When the parts of resources that have
// changed are too many for one, what it has subscribed to is said to have changed
// itself. h.mu is held.
func (h *hub) note(list []*listener, c *change) {
	for _, l := range list {
		if _, noted := l.has[c.uri]; noted {
			continue
		}
		if len(l.changed) < maxUntold+len(l.filter.ResourceSubscriptions) {
			l.keep(c)
		} else {
			l.changed, l.has = nil, nil
			for _, whole := range l.filter.ResourceSubscriptions {
				l.keep(&change{uri: whole})
			}
		}
		h.wake(l)
	}
}

// keep keeps a change. The hub's mu is held.
func (l *listener) keep(c *change) {
	if l.has == nil {
		l.has = make(map[string]struct{})
	}
	l.has[c.uri] = struct{}{}
	l.changed = append(l.changed, c.told())
}

// wake has a listener told soon. h.mu is held.
func (h *hub) wake(l *listener) {
	if l.telling || l.ended {
		return
	}
	l.telling = true
	l.tellers.Add(1)
	if l.timer == nil {
		l.timer = time.AfterFunc(h.coalesce, l.tell)
		return
	}
	l.timer.Reset(h.coalesce)
}

// take returns what a listener is to be told now, the lists first.
func (h *hub) take(l *listener) []*mcp.Notification {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := append(l.lists.AppendNotifications(nil), l.changed...)
	l.lists, l.changed, l.has = 0, nil, nil
	return list
}

// told notes that a listener has been told, and has it told again if there is
// more.
func (h *hub) told(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.telling = false
	if l.lists != 0 || l.changed != nil {
		h.wake(l)
	}
}

// end has a listener told no more.
func (h *hub) end(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.ended = true
	if l.timer != nil && l.timer.Stop() {
		l.tellers.Done()
	}
}
