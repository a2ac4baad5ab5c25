package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestWhenToFallBack_B134 has POSTs answered in many ways by a server whose GET
// opens a stream of HTTP with SSE.
func TestWhenToFallBack_B134_B112(t *testing.T) {
	reply := func(status int, kind, body string) answerer {
		return func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "$", m.ID.String()))
		}
	}
	rpc := func(status, code int) answerer {
		return reply(status, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":$,"error":{"code":%d,"message":"why not","data":{"supported":["2030-01-01"]}}}`, code))
	}
	initializeOnly := func(answer answerer) answerer {
		return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if string(m.Method) == "initialize" {
				answer(w, r, m)
				return
			}
			reply(404, "text/plain", "no")(w, r, m)
		}
	}
	stream := func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		writeStream(w, endpointIs("/m"))
		<-r.Context().Done()
	}
	for _, tt := range []struct {
		name string
		post answerer
		era  mcp.Era
		old  bool // what the server is taken for
	}{
		{name: "400", post: reply(400, "text/plain", "why not"), old: true},
		{name: "400 and nothing", post: reply(400, "", ""), old: true},
		{name: "400 and a JSON-RPC error", post: rpc(400, -32000), old: true},
		{name: "404", post: reply(404, "text/html", "<html>"), old: true},
		{name: "404 and a JSON-RPC error", post: rpc(404, -32601), old: true},
		{name: "405", post: reply(405, "application/json", `{"detail":"Method Not Allowed"}`), old: true},
		{name: "405, known to be legacy", post: reply(405, "", ""), era: mcp.Legacy, old: true},
		{name: "405, known to be modern", post: reply(405, "", ""), era: mcp.Modern},
		{name: "an endpoint event", post: stream, old: true},
		{name: "an endpoint event, known to be legacy", post: stream, era: mcp.Legacy, old: true},
		{name: "400 that a modern server says", post: rpc(400, -32022)},
		{name: "400 that a modern server says to initialize", post: initializeOnly(rpc(400, -32022))},
		{name: "401", post: reply(401, "", "")},
		{name: "401 to initialize", post: initializeOnly(reply(401, "", ""))},
		{name: "403", post: reply(403, "", "")},
		{name: "403 to initialize", post: initializeOnly(reply(403, "", ""))},
		{name: "406", post: reply(406, "", "")},
		{name: "415", post: reply(415, "", "")},
		{name: "408", post: reply(408, "", "")},
		{name: "429", post: reply(429, "", "")},
		{name: "429 to initialize", post: initializeOnly(reply(429, "", ""))},
		{name: "500", post: reply(500, "", "")},
		{name: "503 to initialize", post: initializeOnly(reply(503, "", ""))},
		{name: "200 and HTML", post: reply(200, "text/html", "<html>")},
		{name: "200 and a JSON-RPC error", post: rpc(200, -32000)},
		{name: "a redirect to elsewhere", post: func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}},
	} {
		for _, prefer := range []mcp.Era{mcp.Modern, mcp.Legacy} {
			t.Run(fmt.Sprintf("%s, %s client", tt.name, prefer), func(t *testing.T) {
				s := &oldServer{stream: make(chan string, 10)}
				s.peer = newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					switch {
					case r.Method == "GET":
						s.serveStream(w, r, endpointIs("/m"))
					case r.URL.Path == "/m":
						s.take(w, m)
					default:
						tt.post(w, r, m)
					}
				})
				opts := knownEra(tt.era)
				opts.Prefer = prefer
				e, err := streamable.DialAny(t.Context(), s.origin()+"/sse", opts)
				if err == nil {
					defer closeEdge(t, e)
					mustCall(t, e)
				}
				if (err == nil) != tt.old || (len(s.seen("GET")) > 0) != tt.old {
					t.Fatalf("%v after %q", err, s.order())
				}
				// With a fresh state: nothing of the first attempts.
				for _, p := range s.seen("POST") {
					if p.url == "/m" && (p.header.Get("Mcp-Protocol-Version") != "" || p.method == "initialize" && !strings.Contains(p.body, `"id":1`)) {
						t.Errorf("posted %s with %v", p.body, p.header)
					}
				}
			})
		}
	}
}

// TestAllFailuresAreTold: of each attempt, and what can be done about one.
func TestAllFailuresAreTold_B134(t *testing.T) {
	for _, status := range []int{401, 405, 200} {
		p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			switch {
			case r.Method == "GET":
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "third")
			case string(m.Method) == "initialize":
				http.Error(w, "second", http.StatusNotFound)
			default:
				http.Error(w, "first", http.StatusBadRequest)
			}
		})
		_, err := streamable.DialAny(t.Context(), p.url, nil)
		if err == nil || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "second") || !strings.Contains(err.Error(), fmt.Sprintf("HTTP %d", status)) {
			t.Errorf("B134: %v", err)
		}
		if e, ok := errors.AsType[*streamable.StatusError](err); !ok || e.Status != http.StatusNotFound {
			t.Errorf("B134: %v", err)
		}
		if _, ok := errors.AsType[*streamable.AuthError](err); ok != (status == 401) {
			t.Errorf("B134: %v", err)
		}
	}
}

// TestBindingThatIsKnown: nothing else is tried.
func TestBindingThatIsKnown_S128(t *testing.T) {
	old := newOldServer(t, endpointIs("/m"), nil)
	opts := &streamable.DialOptions{Binding: streamable.HTTPWithSSE}
	e, err := streamable.DialAny(t.Context(), old.url, opts)
	if err != nil {
		t.Fatal(err)
	}
	closeEdge(t, e)
	if first := old.seen("")[0]; first.verb != "GET" {
		t.Errorf("asked for %q", old.order())
	}
	p := newPeer(t, func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(405) })
	opts.Binding = streamable.StreamableHTTP
	if _, err := streamable.DialAny(t.Context(), p.url, opts); err == nil || len(p.seen("GET")) != 0 {
		t.Errorf("%v after %q", err, p.order())
	}
}

func TestDialAnyIsBounded_B061(t *testing.T) {
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		if r.Method == "GET" {
			writeStream(w)
			<-r.Context().Done()
			return
		}
		w.WriteHeader(405)
	})
	const limit = 200 * time.Millisecond
	began := time.Now()
	_, err := streamable.DialAny(t.Context(), p.url, &streamable.DialOptions{HandshakeTimeout: limit})
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > patience {
		t.Errorf("%v after %v", err, took)
	}
}
