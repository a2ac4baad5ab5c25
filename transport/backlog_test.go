package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A busyPeer is a client of a server that serves one call at a time, and is at it.
type busyPeer struct {
	*peer
	*served

	server *server
	meta   string // of its requests
	pad    string // that makes them larger
}

func newBusyPeer(t *testing.T, backlog *transport.Backlog, revision mcp.Revision, size int) *busyPeer {
	t.Helper()
	b := &busyPeer{server: newServer(), pad: strings.Repeat("x", size)}
	b.peer, b.served = serve(t, b.server, transport.ServeOptions{MaxInFlight: 1, Backlog: backlog})
	if revision.Era() == mcp.Legacy {
		b.handshakeWith(revision)
	} else {
		b.meta = "," + modernMetaJSON
	}
	b.say(b.call("0"))
	receive(t, "the first call", b.server.slow)
	return b
}

func (b *busyPeer) call(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"slow","pad":%q%s}}`, id, b.pad, b.meta)
}

// waits makes a call that must be let in, and returns when it has been.
func (b *busyPeer) waits(t *testing.T, id string) {
	t.Helper()
	b.say(b.call(id), b.call(id))
	if got := b.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32600,`) {
		t.Errorf("call %s: %s", id, got)
	}
}

// refused makes a call that must not be let in because of a limit.
func (b *busyPeer) refused(t *testing.T, id, limit string) {
	t.Helper()
	b.say(b.call(id))
	b.wantRefusal(t, id, limit)
}

func (b *busyPeer) wantRefusal(t *testing.T, id, limit string) {
	t.Helper()
	if got := b.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32603,`) ||
		!strings.Contains(got, `"mcpsplice":{"kind":"limit exceeded","outcome":"not sent","limit":"`+limit+`"}`) {
		t.Errorf("call %s: %s", id, got)
	}
}

// TestBacklogIsShared_TK1: what waits on one connection leaves less room on the others,
// until it waits no more.
func TestBacklogIsShared_TK1(t *testing.T) {
	for _, tt := range []struct {
		limit         string
		max, maxBytes int
	}{
		{"MaxQueuedTotal", 2, 1 << 20},
		{"MaxQueuedBytes", 100, 3500},
	} {
		t.Run(tt.limit, func(t *testing.T) {
			backlog := transport.NewBacklog(tt.max, tt.maxBytes)
			one, other := newBusyPeer(t, backlog, mcp.Revision20260728, 1000), newBusyPeer(t, backlog, mcp.Revision20260728, 1000)
			one.waits(t, "1")
			other.waits(t, "2")
			one.refused(t, "3", tt.limit)
			other.refused(t, "4", tt.limit)
			close(one.server.release)
			if a, b := one.message(), one.message(); a.Failed || b.Failed {
				t.Errorf("answered %s and %s", a.Body.Raw(), b.Body.Raw())
			}
			other.waits(t, "5")
			other.refused(t, "6", tt.limit)
			close(other.server.release)
			_ = other.conn.Close()
			receive(t, "the end of the connection", other.done)
			third := newBusyPeer(t, backlog, mcp.Revision20260728, 1000)
			third.waits(t, "7")
			third.waits(t, "8")
			third.refused(t, "9", tt.limit)
		})
	}
}

// TestOneClientLeavesBacklogToOthers_TK1: it is refused before they are.
func TestOneClientLeavesBacklogToOthers_TK1(t *testing.T) {
	for _, tt := range []struct {
		limit         string
		max, maxBytes int
		saying        string
	}{
		{"MaxQueuedTotal", 8, 1 << 20, "6 messages of all clients wait, 6 of them of this one; the limit is 8, and one may have 3 times what is left"},
		{"MaxQueuedBytes", 100, 8 * 1250, "; the limit is 10000, and one may have 3 times what is left"},
	} {
		t.Run(tt.limit, func(t *testing.T) {
			backlog := transport.NewBacklog(tt.max, tt.maxBytes)
			greedy, late := newBusyPeer(t, backlog, mcp.Revision20260728, 1000), newBusyPeer(t, backlog, mcp.Revision20260728, 1000)
			n := 1
			for ; n < 10; n++ {
				greedy.say(greedy.call(fmt.Sprint(n)), greedy.call(fmt.Sprint(n)))
				if got := greedy.line(); strings.Contains(got, "limit exceeded") {
					if !strings.Contains(got, tt.saying) || !strings.Contains(got, `"limit":"`+tt.limit+`"`) {
						t.Errorf("call %d is refused with %s", n, got)
					}
					break
				}
			}
			if n-1 < 5 || n-1 > 6 {
				t.Errorf("%d calls of one client wait", n-1)
			}
			late.waits(t, "1")
		})
	}
}

// TestLargeMessageMayWaitAlone: or it could never be served.
func TestLargeMessageMayWaitAlone(t *testing.T) {
	b := newBusyPeer(t, transport.NewBacklog(100, 500), mcp.Revision20260728, 1000)
	b.waits(t, "1")
	b.refused(t, "2", "MaxQueuedBytes")
}

// TestPartsOfABatchCount_TK1: with their bytes, though they share the batch's memory.
func TestPartsOfABatchCount_TK1(t *testing.T) {
	b := newBusyPeer(t, transport.NewBacklog(100, 1500), mcp.Revision20250326, 1000)
	b.say("[" + b.call("1") + "," + b.call("2") + "]")
	b.wantRefusal(t, "2", "MaxQueuedBytes")
	close(b.server.release)
	for range 2 {
		if m := b.message(); m.Failed {
			t.Errorf("answered %s", m.Body.Raw())
		}
	}
}
