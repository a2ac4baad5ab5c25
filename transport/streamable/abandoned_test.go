package streamable_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// hijacked closes the connection of a request after some text.
func hijacked(text string) answerer {
	return func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text))
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		_ = conn.Close()
	}
}

// TestServerIsToldOfACallThatNobodyWaitsFor_B136: whatever ends a call of a session whose
// server may go on with it. What it has answered, or never had, it is not told of.
func TestServerIsToldOfACallThatNobodyWaitsFor_B136(t *testing.T) {
	replies := func(status int, kind, body string) answerer {
		return func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.ReplaceAll(body, "$", m.ID.String())))
		}
	}
	streams := func(texts ...string) answerer {
		return func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			writeStream(w)
			for _, text := range texts {
				writeMore(w, strings.ReplaceAll(text, "$", m.ID.String()))
			}
		}
	}
	const quick = "id: 1\nretry: 1\ndata:\n\n" // to be opened again soon
	for _, tt := range []struct {
		name   string
		answer answerer
		resume answerer // of GET with Last-Event-ID; nil refuses it
		told   bool
	}{
		{"no reply", hijacked(""), nil, true},
		{"a reply that is cut off", hijacked("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"), nil, true},
		{"a stream that breaks", hijacked("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n:\n\n"), nil, true},
		{"a stream that ends", streams(":\n\n"), nil, true},
		{"a stream that ends, and cannot be opened again", streams(quick), nil, true},
		{"a stream that ends again and again", streams(quick), streams(":\n\n"), true},
		{"a stream in which the response cannot be told", streams(event(`{"jsonrpc":"2.0","id":`)), nil, true},
		{"202", replies(202, "", ""), nil, true},
		{"500", replies(500, "text/plain", "oh"), nil, true},
		{"500 with a reply that is too long", replies(500, "application/json", strings.Repeat(" ", 2<<10)), nil, true},
		{"202 with what is no response", replies(202, "application/json", `{"jsonrpc":"2.0","id":"other","result":{}}`), nil, true},
		{"504", replies(504, "text/html", "<html>"), nil, true},
		{"a session that is lost before the stream is opened again", streams(quick), replies(404, "", ""), false},
		{"404", replies(404, "", ""), nil, false},
		{"400", replies(400, "text/plain", "no"), nil, false},
		{"401", replies(401, "", ""), nil, false},
		{"503", replies(503, "text/plain", "later"), nil, false},
		{"200 and nothing", replies(200, "application/json", ""), nil, false},
		{"a response that is not valid", replies(200, "application/json", `{"jsonrpc":"2.0","id":$,"result":{},"result":{}}`), nil, false},
		{"a response that is not valid, in a stream", streams(event(`{"jsonrpc":"2.0","id":$,"result":{},"result":{}}`)), nil, false},
		{"a result that is no object", replies(200, "application/json", `{"jsonrpc":"2.0","id":$,"result":1}`), nil, false},
		{"a reply that is too long", replies(200, "application/json", strings.Repeat(" ", 2<<10)), nil, false},
		{"an error", replies(200, "application/json", `{"jsonrpc":"2.0","id":$,"error":{"code":-32603,"message":"no"}}`), nil, false},
		{"a result", replies(200, "application/json", `{"jsonrpc":"2.0","id":$,"result":{}}`), nil, false},
	} {
		for _, session := range []string{"s", ""} {
			if session == "" && (tt.name == "404" || strings.Contains(tt.name, "session")) {
				continue // there is none to be lost
			}
			t.Run(fmt.Sprintf("%s, session %q", tt.name, session), func(t *testing.T) {
				t.Parallel()
				id := ""
				p := newPeer(t, legacyPeer("2025-11-25", session, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					switch {
					case r.Header.Get("Last-Event-ID") != "" && tt.resume != nil:
						tt.resume(w, r, m)
					case r.Method == http.MethodGet:
						w.WriteHeader(http.StatusMethodNotAllowed)
					case string(m.Method) == "tools/call":
						id = m.ID.String()
						tt.answer(w, r, m)
					default:
						w.WriteHeader(http.StatusAccepted)
					}
				}))
				opts := knownEra(mcp.Legacy)
				opts.MaxBody = 1 << 10
				c := dial(t, p.url, opts)
				_, err := call(t, c, mcp.NoCaller{})
				if told := mcp.OutcomeOf(err) == mcp.MaybeExecuted && err != nil; told != tt.told && tt.resume == nil {
					t.Errorf("the call: %v", err)
				}
				closeSoon(t, c)
				told := p.seen("notifications/cancelled")
				if tt.told && (len(told) != 1 || !strings.Contains(told[0].body, `"requestId":`+id) || told[0].header.Get("Mcp-Session-Id") != session) || !tt.told && len(told) > 0 {
					t.Errorf("told %v after %q; the call: %v", told, p.order(), err)
				}
			})
		}
	}
}

// TestTellingHoldsUpNoCall_B136: one whose stream has broken ends although its server
// takes no notification, and so does the connection.
func TestTellingHoldsUpNoCall_B136(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBubbled(t, func(ctx context.Context, m *jsonrpc.Message) string {
			switch string(m.Method) {
			case "initialize":
				return `{"jsonrpc":"2.0","id":` + m.ID.String() + `,` + slowLegacy + `}`
			case "tools/call":
				return ":\n\n"
			case "notifications/cancelled":
				<-ctx.Done()
			}
			return ""
		})
		s.stream = nil
		opts := knownEra(mcp.Legacy)
		opts.Transport = s
		c, err := streamable.Dial(t.Context(), "http://h/mcp", opts)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = callWithin(t.Context(), c, mcp.NoCaller{})
		checkFailure(t, "the call", err, mcp.ConnectionLost, 0)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		closeSoon(t, c)
	})
}

// TestOldServerIsToldOfACallThatNobodyWaitsFor_B136: over HTTP with SSE a call fails with
// its POST, and the stream goes on.
func TestOldServerIsToldOfACallThatNobodyWaitsFor_B136(t *testing.T) {
	for _, tt := range []struct {
		name string
		post answerer
		told bool
	}{
		{"no reply", hijacked(""), true},
		{"500", func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(500) }, true},
		{"400", func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(400) }, false},
		{"404", func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(404) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newOldServer(t, endpointIs("/m"), atCalls(func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
				if string(m.Method) == "tools/call" {
					tt.post(w, nil, m)
					return
				}
				s.take(w, m)
			}))
			var c transport.Edge = dialSSE(t, s.url, nil)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := callWithin(ctx, c, mcp.NoCaller{}); (mcp.OutcomeOf(err) == mcp.MaybeExecuted) != tt.told {
				t.Errorf("the call: %v", err)
			}
			if tt.told {
				s.await(t, "notifications/cancelled", 1)
			}
			closeEdge(t, c)
			if told := s.seen("notifications/cancelled"); !tt.told && len(told) > 0 {
				t.Errorf("told %v", told)
			}
		})
	}
}

// TestCallThatMakesATaskIsNotCancelled_B136: "For task-augmented requests, the
// tasks/cancel request MUST be used instead of the notifications/cancelled notification"
// (2025-11-25, utilities/cancellation), however the call ends.
func TestCallThatMakesATaskIsNotCancelled_B136(t *testing.T) {
	for _, breaks := range []bool{true, false} {
		for params, told := range map[string]bool{`{"name":"t","task":{}}`: false, `{"name":"t"}`: true} {
			synctest.Test(t, func(t *testing.T) {
				var cancelled atomic.Int64
				s := newBubbled(t, func(ctx context.Context, m *jsonrpc.Message) string {
					switch string(m.Method) {
					case "initialize":
						return `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}}}`
					case "tools/call":
						if !breaks {
							<-ctx.Done()
						}
						return ":\n\n"
					case "notifications/cancelled":
						cancelled.Add(1)
					}
					return ""
				})
				s.stream = nil
				opts := knownEra(mcp.Legacy)
				opts.Transport = s
				c, err := streamable.Dial(t.Context(), "http://h/mcp", opts)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				req := &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(params)), Meta: mcp.Metadata{Revision: mcp.Revision20251125}}
				if _, err := c.Handle(ctx, req, mcp.NoCaller{}); mcp.OutcomeOf(err) != mcp.MaybeExecuted || err == nil {
					t.Errorf("the call: %v", err)
				}
				closeSoon(t, c)
				if n := cancelled.Load(); (n > 0) != told {
					t.Errorf("breaks %v, %s: told %d times", breaks, params, n)
				}
			})
		}
	}
}

// TestResultOfATaskThatIsLostIsAskedForAgain_B136: and the server is not told that nobody
// waits for it, which it may take for the end of the task.
func TestResultOfATaskThatIsLostIsAskedForAgain_B136(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, cancelled atomic.Int64
		s := newBubbled(t, func(_ context.Context, m *jsonrpc.Message) string {
			answer := func(result string) string {
				return `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + result + `}`
			}
			switch string(m.Method) {
			case "initialize":
				return answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}}`)
			case "tools/list":
				return answer(`{"tools":[{"name":"t","execution":{"taskSupport":"required"}}]}`)
			case "tools/call":
				return answer(`{"task":{"taskId":"1","status":"working"}}`)
			case "tasks/result":
				if asked.Add(1) == 1 {
					return ":\n\n"
				}
				return answer(`{"content":[]}`)
			case "notifications/cancelled":
				cancelled.Add(1)
			}
			return ""
		})
		s.stream = nil
		opts := knownEra(mcp.Legacy)
		opts.Transport = s
		c, err := streamable.Dial(t.Context(), "http://h/mcp", opts)
		if err != nil {
			t.Fatal(err)
		}
		req := toolRequest("t", `{}`)
		req.Meta.Revision = mcp.NewestModern
		if got, err := c.Handle(t.Context(), req, mcp.NoCaller{}); err != nil || asked.Load() != 2 {
			t.Errorf("%s, %v after it was asked for %d times", got.Raw(), err, asked.Load())
		}
		closeSoon(t, c)
		if n := cancelled.Load(); n > 0 {
			t.Errorf("told %d times", n)
		}
	})
}
