package client_test

import (
	"io"
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

// TestRefusedResultIsNoRefusalOfTheCall_P2: a call that was made as a task is being
// executed, whatever the server says to the request for its result.
func TestRefusedResultIsNoRefusalOfTheCall_P2(t *testing.T) {
	const capable = `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},` +
		`"capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}},"cancel":{}}}}}`
	for _, tt := range []struct {
		name, kind, body string
		status           int
	}{
		{"429", "text/plain", "no", http.StatusTooManyRequests},
		{"503", "text/plain", "no", http.StatusServiceUnavailable},
		{"503 with an error", "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"full"}}`, http.StatusServiceUnavailable},
		{"-32022", "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}}`, http.StatusOK},
		{"-32020", "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32020,"message":"h"}}`, http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var executed atomic.Int64
			s := newSite(t, &site{other: func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) bool {
				switch mcp.MethodName(m.Method) {
				case mcp.MethodInitialize:
					w.Header().Set("Mcp-Session-Id", "s")
					reply(w, m, capable)
				case mcp.MethodListTools:
					reply(w, m, `{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"work","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}}`)
				case mcp.MethodCallTool:
					if _, asTask := m.Body.Lookup("task"); !asTask {
						t.Errorf("called with %s", m.Body.Raw())
					}
					executed.Add(1)
					reply(w, m, `{"jsonrpc":"2.0","id":ID,"result":{"task":{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":60000}}}`)
				case mcp.MethodTaskResult:
					w.Header().Set("Content-Type", tt.kind)
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, strings.ReplaceAll(tt.body, "ID", string(m.ID.Raw())))
				default:
					return false
				}
				return true
			}})
			c := connect(t, client.URL(s.url), &client.Options{Era: mcp.Legacy, Healing: healsFast().Healing})
			_, err := c.CallTool(t.Context(), "work", nil, nil)
			if err == nil || executed.Load() != 1 {
				t.Errorf("executed %d times, %v", executed.Load(), err)
			}
		})
	}
}
