package streamable_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestCallLeftAtALimitIsCancelled: a legacy server does not take a closed stream for
// the end of the call, and would go on with it.
func TestCallLeftAtALimitIsCancelled_B136(t *testing.T) {
	long := strings.Repeat("x", 2<<10)
	for name, tt := range map[string]struct {
		texts []string
		works bool // on the call, until the stream is closed
	}{
		"an event that is too long":  {[]string{event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"` + long + `"}}`)}, true},
		"a flood of what is nothing": {[]string{strings.Repeat(": "+long[:100]+"\n", 1000)}, true},
		"a stream that ends":         {nil, false},
	} {
		for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
			t.Run(fmt.Sprint(name, ", ", era), func(t *testing.T) {
				t.Parallel()
				answer := onPost(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					switch {
					case string(m.Method) == "tools/list":
						writeResult(w, m, `{"resultType":"complete","tools":[]}`)
					case string(m.Method) != "tools/call":
						w.WriteHeader(http.StatusAccepted)
					default:
						if writeStream(w, tt.texts...); tt.works {
							<-r.Context().Done() // it works on the call
						}
					}
				})
				script := modernPeer(answer)
				if era == mcp.Legacy {
					script = legacyPeer("2025-11-25", "s", answer)
				}
				p := newPeer(t, script)
				opts := knownEra(era)
				opts.MaxBody = 1 << 10
				c := dial(t, p.url, opts)
				_, err := call(t, c, mcp.NoCaller{})
				kind, want := mcp.ConnectionLost, 0
				if tt.works {
					kind = mcp.LimitExceeded
				}
				checkFailure(t, "the call", err, kind, 0)
				if era == mcp.Legacy {
					want = 1
					p.await(t, "notifications/cancelled", 1)
				}
				closeSoon(t, c)
				if sent := p.seen("notifications/cancelled"); len(sent) != want {
					t.Errorf("B136: %d cancellations", len(sent))
				}
			})
		}
	}
}

// endless writes an event that does not end until its reader has gone.
func endless(w http.ResponseWriter, r *http.Request) {
	flush := http.NewResponseController(w)
	text := strings.Repeat("x", 64<<10)
	for _, err := io.WriteString(w, "data: "); err == nil && r.Context().Err() == nil; err = flush.Flush() {
		if _, err = io.WriteString(w, text); err != nil {
			return
		}
	}
}

// TestEndlessEvent_R14: the stream on which an event over the limit goes on is given up.
// Of calls only those are lost whose answers would have come on it.
func TestEndlessEvent_R14(t *testing.T) {
	const maxBody = 64 << 10
	t.Run("HTTP with SSE", func(t *testing.T) {
		t.Parallel()
		connected := make(chan struct{})
		s := &oldServer{stream: make(chan string, 300)}
		s.peer = newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			switch {
			case r.Method == http.MethodGet:
				writeStream(w, endpointIs("/m"))
				writeMore(w, await(t, s.stream))
				await(t, connected)
				endless(w, r)
			case string(m.Method) == "tools/call":
				w.WriteHeader(http.StatusAccepted)
			default:
				s.take(w, m)
			}
		})
		opts := knownEra(mcp.Legacy)
		opts.MaxBody = maxBody
		c := dialSSE(t, s.url, opts)
		close(connected)
		await(t, c.Done())
		if text := c.Err().Error(); !strings.Contains(text, "MaxBody") || !strings.Contains(text, "the limit of 65536 bytes") {
			t.Errorf("the connection ended with %v", c.Err())
		}
		if _, err := call(t, c, mcp.NoCaller{}); mcp.OutcomeOf(err) != mcp.NotSent {
			t.Errorf("a call after the end: %v", err)
		}
	})
	t.Run("HTTP with SSE, one after the other", func(t *testing.T) {
		t.Parallel()
		s := newOldServer(t, endpointIs("/m"), nil)
		opts := knownEra(mcp.Legacy)
		opts.MaxBody, opts.MaxNoise = 1<<10, 3
		c := dialSSE(t, s.url, opts)
		s.stream <- strings.Repeat(event(strings.Repeat("x", 2<<10)), 4)
		await(t, c.Done())
		if text := c.Err().Error(); !strings.Contains(text, "MaxNoise is 3") {
			t.Errorf("the connection ended with %v", c.Err())
		}
	})
	t.Run("GET stream of a session", func(t *testing.T) {
		t.Parallel()
		var opened atomic.Int32
		p := newPeer(t, legacyPeer("2025-11-25", "s", splitGet(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if opened.Add(1) == 1 {
				writeStream(w, "retry: 100\nid: g-0\ndata:\n\n", event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
				endless(w, r)
				return
			}
			writeStream(w)
			<-r.Context().Done()
		}, justAnswer)))
		var log journal
		opts := knownEra(mcp.Legacy)
		opts.MaxBody, opts.Logger = maxBody, log.logger()
		c := dial(t, p.url, opts)
		gets := p.await(t, "GET", 2)
		if got := gets[1].header.Get("Last-Event-Id"); got != "g-0" {
			t.Errorf("GET goes on after %q", got)
		}
		mustCall(t, c)
		if text := log.String(); !strings.Contains(text, `level=WARN msg="the stream outside calls has ended" err="it is over the limit MaxBody`) {
			t.Errorf("the log is %s", text)
		}
		if c.Err() != nil {
			t.Errorf("the connection ended with its stream: %v", c.Err())
		}
	})
}
