// Package meeting is for the tool meet of the servers written in Go.
package meeting

import (
	"context"
	"sync"
)

// A Meeting holds a call until a second one comes.
type Meeting struct {
	mu    sync.Mutex
	first chan struct{} // guarded by mu; nil while nobody waits
}

// Wait returns when two calls are here at once.
func (m *Meeting) Wait(ctx context.Context) error {
	m.mu.Lock()
	if first := m.first; first != nil {
		m.first = nil
		close(first)
		m.mu.Unlock()
		return nil
	}
	here := make(chan struct{})
	m.first = here
	m.mu.Unlock()
	select {
	case <-here:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.first == here {
			m.first = nil
		}
		return ctx.Err()
	}
}
