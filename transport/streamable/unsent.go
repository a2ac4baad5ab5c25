package streamable

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcpsplice/mcpsplice/internal/share"
)

// An unsent counts what waits for all clients to read.
type unsent struct {
	max int // set at construction

	mu    sync.Mutex
	bytes int // guarded by mu
}

// add counts n bytes more for a client that has held, unless that is more than its
// share: the more others have, the less it can have. Force counts them anyway.
func (u *unsent) add(held, n int, force bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !force && !share.Allows(held, n, u.max-u.bytes) {
		return false
	}
	u.bytes += n
	return true
}

func (u *unsent) remove(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes -= n
}

// givenUp is the error of who waits no longer for a client to read what is held for it.
func (u *unsent) givenUp(ctx context.Context, held, limit int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return fmt.Errorf("%w: %d bytes wait for the client to read, the limit SSE.MaxUnsent is %d; for all clients wait %d, the limit SSE.MaxUnsentTotal is %d",
		context.Cause(ctx), held, limit, u.bytes, u.max)
}
