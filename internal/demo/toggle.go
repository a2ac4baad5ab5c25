package demo

import (
	"context"
	"slices"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A kind is a kind of feature, of which toggle adds one and takes it away.
type kind int

const (
	kindTool kind = iota
	kindResource
	kindPrompt
	kinds
)

// String returns the kind's name.
func (k kind) String() string { return [...]string{"tool", "resource", "prompt"}[k] }

// listChanged is the notification that says that a list of the kind changed.
func (k kind) listChanged() *mcp.Notification {
	return &mcp.Notification{Method: [...]string{
		mcp.NotificationToolsListChanged,
		mcp.NotificationResourcesListChanged,
		mcp.NotificationPromptsListChanged,
	}[k]}
}

// toggles counts how often each kind was toggled.
type toggles [kinds]int

// toggle adds the extra feature of a kind or takes it away, and reports whether
// it is there now.
func (s *Server) toggle(k kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.toggles[k]++
	close(s.changed)
	s.changed = make(chan struct{})
	return s.toggles[k]%2 == 1
}

// has reports whether the extra feature of a kind is there.
func (s *Server) has(k kind) bool {
	now, _ := s.state()
	return now[k]%2 == 1
}

// state returns the toggles so far, and a channel that is closed at the next.
func (s *Server) state() (toggles, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.toggles, s.changed
}

// listen answers subscriptions/listen: with what of the filter it will serve,
// then with the changes, until ctx ends.
func (s *Server) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	filter.ResourceSubscriptions = slices.DeleteFunc(filter.ResourceSubscriptions, func(uri string) bool {
		_, err := s.read(uri)
		return err != nil
	})
	seen, changed := s.state()
	if err := caller.Notify(ctx, filter.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	var clock <-chan time.Time
	if slices.Contains(filter.ResourceSubscriptions, clockURI) {
		ticker := time.NewTicker(clockPeriod)
		defer ticker.Stop()
		clock = ticker.C
	}
	for {
		var news []*mcp.Notification
		select {
		case <-ctx.Done():
			return mcp.Result{}, nil
		case <-clock:
			news = append(news, clockUpdated())
		case <-changed:
			before := seen
			seen, changed = s.state()
			for k := range kinds {
				if n := k.listChanged(); seen[k] != before[k] && filter.Wants(n) {
					news = append(news, n)
				}
			}
		}
		for _, n := range news {
			if err := caller.Notify(ctx, n); err != nil {
				return mcp.Result{}, err
			}
		}
	}
}
