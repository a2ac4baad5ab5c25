package streamable_test

import (
	"fmt"
	"net/http"
	"strings"
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
