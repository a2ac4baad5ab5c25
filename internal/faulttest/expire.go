package faulttest

import (
	"context"
	"sync"
	"testing"
)

// Expiring returns a context whose deadline is over when expire is called, however busy
// the machine is. Expire may be called more than once, and concurrently.
func Expiring(t *testing.T) (ctx context.Context, expire func()) {
	t.Helper()
	e := &expiring{Context: t.Context(), over: make(chan struct{})}
	return e, sync.OnceFunc(func() { close(e.over) })
}

type expiring struct {
	context.Context
	over chan struct{}
}

// Done implements [context.Context].
func (e *expiring) Done() <-chan struct{} { return e.over }

// Err implements [context.Context].
func (e *expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
