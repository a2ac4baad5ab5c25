package inflight

import (
	"sync"
	"sync/atomic"
)

// Uses counts the calls of a connection that is to end after them: one call may take
// several requests. The zero value is not ready, see [NewUses]. It is safe for concurrent
// use.
type Uses struct {
	n     atomic.Int64  // calls, and noMore once none may begin
	once  sync.Once     // for ended
	ended chan struct{} // closed when none may begin and all have ended
}

// noMore is more than there can be calls.
const noMore = 1 << 62

// NewUses returns a count of none.
func NewUses() *Uses { return &Uses{ended: make(chan struct{})} }

// Begin reports whether a call may begin. If so, Leave must be called at its end.
func (u *Uses) Begin() bool {
	if u.n.Add(1) < noMore {
		return true
	}
	u.Leave()
	return false
}

// Leave tells that a call has ended.
func (u *Uses) Leave() {
	if u.n.Add(-1) == noMore {
		u.once.Do(func() { close(u.ended) })
	}
}

// End lets no call begin any more. The channel is closed when all have ended.
func (u *Uses) End() <-chan struct{} {
	for n := u.n.Load(); n < noMore; n = u.n.Load() {
		if !u.n.CompareAndSwap(n, n+noMore) {
			continue
		}
		if n == 0 {
			u.once.Do(func() { close(u.ended) })
		}
	}
	return u.ended
}
