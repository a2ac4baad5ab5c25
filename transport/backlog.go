package transport

import (
	"fmt"
	"sync"

	"github.com/mcpsplice/mcpsplice/internal/share"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A Backlog bounds the messages that wait their turn in several [Serve] together, as
// those of all clients of a listener. It is safe for concurrent use.
type Backlog struct {
	// Set at construction.
	max, maxBytes int

	mu       sync.Mutex
	messages int // guarded by mu, like bytes
	bytes    int
}

// NewBacklog returns a bound of max messages, which errors call MaxQueuedTotal, and of
// maxBytes bytes, MaxQueuedBytes. A single larger message is let in. A [Serve] for which
// one waits may have three times what it leaves of each: so a client that sends a lot
// leaves something to the others.
func NewBacklog(max, maxBytes int) *Backlog { return &Backlog{max: max, maxBytes: maxBytes} }

// add lets a message wait where some wait, which have some bytes. A nil Backlog has no
// bound.
func (b *Backlog) add(size, messages, bytes int) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.messages >= b.max:
		return tooMany("MaxQueuedTotal", fmt.Sprintf("%d messages of all clients wait, the limit is %d", b.messages, b.max))
	case b.messages > 0 && size > b.maxBytes-b.bytes:
		return tooMany("MaxQueuedBytes", fmt.Sprintf("messages of %d bytes of all clients wait, and one of %d; the limit is %d", b.bytes, size, b.maxBytes))
	case messages > 0 && !share.Allows(messages, 1, b.max-b.messages):
		return tooMany("MaxQueuedTotal", fmt.Sprintf("%d messages of all clients wait, %d of them of this one; the limit is %d, and one may have %d times what is left", b.messages, messages, b.max, share.Times))
	case messages > 0 && !share.Allows(bytes, size, b.maxBytes-b.bytes):
		return tooMany("MaxQueuedBytes", fmt.Sprintf("messages of %d bytes of all clients wait, %d of them of this one, and one of %d; the limit is %d, and one may have %d times what is left", b.bytes, bytes, size, b.maxBytes, share.Times))
	}
	b.messages++
	b.bytes += size
	return nil
}

// remove says that a message waits no longer.
func (b *Backlog) remove(size int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages--
	b.bytes -= size
}

// tooMany is why a message may not wait.
func tooMany(limit, public string) error {
	return &mcp.CallError{Kind: mcp.LimitExceeded, Limit: limit, Outcome: mcp.NotSent, Public: public}
}
