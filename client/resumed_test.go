package client_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestRefusedResumptionIsNoRefusalOfTheCall_P2: what the server says to the GET that
// is to resume a broken stream says nothing of the call, which it had taken.
func TestRefusedResumptionIsNoRefusalOfTheCall_P2(t *testing.T) {
	for _, tt := range []struct {
		name, retry string
		status      int
	}{
		{"503 with a time", "1", http.StatusServiceUnavailable},
		{"429", "", http.StatusTooManyRequests},
		{"404", "", http.StatusNotFound},
		{"400", "", http.StatusBadRequest},
		{"405", "", http.StatusMethodNotAllowed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var executed atomic.Int64
			s := newSite(t, &site{
				get: func(w http.ResponseWriter, r *http.Request, _ int64) {
					if r.Header.Get("Last-Event-Id") == "" {
						w.Header().Del("Content-Type")
						w.WriteHeader(http.StatusMethodNotAllowed)
						return
					}
					w.Header().Set("Content-Type", "text/plain")
					if tt.retry != "" {
						w.Header().Set("Retry-After", tt.retry)
					}
					http.Error(w, "no", tt.status)
				},
				other: func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) bool {
					if mcp.MethodName(m.Method) != mcp.MethodCallTool {
						return false
					}
					executed.Add(1)
					w.Header().Set("Content-Type", "text/event-stream")
					stream(w, "retry: 1\nid: 1\ndata:\n\n")
					panic(http.ErrAbortHandler)
				},
			})
			c := connect(t, client.URL(s.url), &client.Options{Era: mcp.Legacy, Healing: healsFast().Healing})
			err := call(t, c)
			if _, sent := outcome(err); sent != mcp.MaybeExecuted || executed.Load() != 1 {
				t.Errorf("executed %d times, %v", executed.Load(), err)
			}
			if !strings.Contains(err.Error(), "resuming the stream") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
