package park

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

var _ mcp.Caller = (*call)(nil)

// Notify implements [mcp.Caller]: what comes while nobody is attached is held.
func (c *call) Notify(ctx context.Context, n *mcp.Notification) error {
	c.mu.Lock()
	x := c.at
	if x == nil || !c.live {
		if !c.gone {
			c.lot.dropped.Add(c.held.add(n))
		}
		c.mu.Unlock()
		return nil
	}
	x.sending.Add(1)
	c.mu.Unlock()
	defer x.sending.Done()
	return x.notify(ctx, n)
}

// notify sends a notification of the call to the client under the token of this
// exchange, of which the handler knows only the first one's.
func (x *exchange) notify(ctx context.Context, n *mcp.Notification) error {
	if !x.retry || n.Method != mcp.NotificationProgress {
		return x.caller.Notify(ctx, n)
	}
	token := x.req.Meta.ProgressToken
	if token.IsZero() {
		return nil
	}
	return x.caller.Notify(ctx, &mcp.Notification{Method: n.Method, Params: mcp.WithProgressToken(&n.Params, token)})
}

// Limits of what is held for one parked call. At either the oldest progress is
// dropped and counted, or the oldest message if there is none.
const (
	MaxHeldMessages = 256
	MaxHeldBytes    = 1 << 20
)

// heldMessages are notifications that wait for a retry.
type heldMessages struct {
	messages []mcp.Notification
	bytes    int
}

func (h *heldMessages) some() bool { return len(h.messages) > 0 }

// add keeps a copy of n and returns how many others were dropped for it.
func (h *heldMessages) add(n *mcp.Notification) (dropped int64) {
	size := sizeOf(n)
	for len(h.messages) >= MaxHeldMessages || h.some() && h.bytes+size > MaxHeldBytes {
		victim := max(0, slices.IndexFunc(h.messages, func(m mcp.Notification) bool { return m.Method == mcp.NotificationProgress }))
		h.bytes -= sizeOf(&h.messages[victim])
		h.messages = slices.Delete(h.messages, victim, victim+1)
		dropped++
	}
	kept := mcp.Notification{Method: strings.Clone(n.Method)}
	if raw := n.Params.Raw(); len(raw) > 0 {
		kept.Params = jsonrpc.Trusted(bytes.Clone(raw))
	}
	h.messages = append(h.messages, kept)
	h.bytes += size
	return dropped
}

// sizeOf returns what a message counts: servers may make up methods of any length.
func sizeOf(n *mcp.Notification) int { return len(n.Method) + len(n.Params.Raw()) }

func (h *heldMessages) take() []mcp.Notification {
	messages := h.messages
	*h = heldMessages{}
	return messages
}
