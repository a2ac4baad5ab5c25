package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func TestFormsOfTheEndpoint_B076(t *testing.T) {
	for _, tt := range []struct {
		name, path string // of the stream
		begin      string // self is the origin, host is its host
		want       string // of where is posted
	}{
		{"an absolute path", "/api/v1/sse?k=v", endpointIs("/messages?sid=1"), "/messages?sid=1"},
		{"a relative path", "/api/v1/sse?k=v", endpointIs("messages?sid=1"), "/api/v1/messages?sid=1"},
		{"a query", "/api/v1/sse?k=v", endpointIs("?sid=1"), "/api/v1/sse?sid=1"},
		{"a dot", "/api/v1/sse", endpointIs("./m"), "/api/v1/m"},
		{"two dots", "/api/v1/sse/", endpointIs("../m"), "/api/v1/m"},
		{"an authority", "/sse", endpointIs("//host/m"), "/m"},
		{"a URL", "/sse", endpointIs("self/m?a=b"), "/m?a=b"},
		{"a URL in capitals", "/sse", endpointIs("HTTP://host/m"), "/m"},
		{"spaces around it", "/sse", endpointIs("  /m  "), "/m"},
		{"CRLF", "/sse", "event: endpoint\r\ndata: /m\r\n\r\n", "/m"},
		{"percent-encoded", "/sse", endpointIs("/a%2Fb?x=%20%26"), "/a%2Fb?x=%20%26"},
		{"a fragment", "/sse", endpointIs("/m#there"), "/m"},
		{"after a redirect", "/old/sse", endpointIs("m"), "/new/m"},
		{"after comments and a heartbeat", "/sse", ": hello\n\nretry: 10\n\nevent: ping\ndata: 1\n\nid: 1\ndata:\n\n" + endpointIs("/m"), "/m"},
		{"B064 a byte order mark", "/sse", "\ufeff" + endpointIs("/m"), "/m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &oldServer{stream: make(chan string, 10)}
			s.peer = newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case r.Method == "POST":
					s.take(w, m)
				case r.URL.Path == "/old/sse":
					http.Redirect(w, r, "/new/sse", http.StatusFound)
				default:
					begin := strings.ReplaceAll(tt.begin, "self", s.origin())
					s.serveStream(w, r, strings.ReplaceAll(begin, "host", strings.TrimPrefix(s.origin(), "http://")))
				}
			})
			opts := &streamable.DialOptions{Header: http.Header{"X-Api-Key": {"k"}, "Accept": {"x"}, "Content-Type": {"x"}}}
			address := strings.Replace(s.origin(), "http://", "http://user:password@", 1) + tt.path
			c := dialSSE(t, address, opts)
			if info := c.Server(); info.Era != mcp.Legacy || info.Revision != "2024-11-05" {
				t.Errorf("connected to %v", info)
			}
			mustCall(t, c)
			posts := s.seen("POST")
			if len(posts) != 3 {
				t.Errorf("posted %q", s.order())
			}
			for _, p := range posts {
				_, password, _ := (&http.Request{Header: p.header}).BasicAuth()
				if p.url != tt.want || p.header.Get("X-Api-Key") != "k" || password != "password" || p.header.Get("Content-Type") != "application/json" {
					t.Errorf("posted to %s with %v, want %s", p.url, p.header, tt.want)
				}
			}
			if get := s.seen("GET")[0]; get.header.Get("Accept") != "text/event-stream" || get.header.Get("X-Api-Key") != "k" || get.header["Content-Type"] != nil {
				t.Errorf("GET has %v", get.header)
			}
		})
	}
}

// TestEndpointElsewhere_B077: neither messages nor headers leave the origin of
// the stream.
func TestEndpointElsewhere_B077(t *testing.T) {
	second := newPeer(t, justAnswer)
	for _, tt := range []struct{ endpoint, names string }{
		{second.url, strings.TrimSuffix(second.url, "/mcp")},
		{second.url + "?token=hidden-secret", strings.TrimSuffix(second.url, "/mcp")},
		{strings.Replace(second.url, "http://", "http://user:hidden-secret@", 1), strings.TrimSuffix(second.url, "/mcp")},
		{strings.TrimPrefix(second.url, "http:"), strings.TrimSuffix(second.url, "/mcp")},
		{"http://10.0.0.5:8080/msg", "http://10.0.0.5:8080"},
		{"http://169.254.169.254/latest/meta-data", "http://169.254.169.254"},
		{"https://evil.example/m", "https://evil.example"},
		{"//evil.example/m", "http://evil.example"},
		{"https://host/m", "https://127.0.0.1:"},
		{"http://localhost:port/m", "http://localhost:"},
		{"http://127.0.0.1/m", "http://127.0.0.1,"},
		{"http://[::ffff:127.0.0.1]:port/m", "http://[::ffff:127.0.0.1]:"},
		{"file:///etc/passwd", "file://,"},
		{"mailto:x@evil.example", "mailto://,"},
		{"javascript:alert(1)", "javascript://,"},
	} {
		t.Run(tt.endpoint, func(t *testing.T) {
			s := &oldServer{stream: make(chan string, 10)}
			s.peer = newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				host := strings.TrimPrefix(s.origin(), "http://")
				endpoint := strings.Replace(tt.endpoint, "host/", host+"/", 1)
				s.serveStream(w, r, endpointIs(strings.Replace(endpoint, "port", host[strings.LastIndex(host, ":")+1:], 1)))
			})
			err := notConnected(t, s.origin()+"/sse?key=hidden-secret", &streamable.DialOptions{
				Header: http.Header{"Authorization": {"Bearer hidden-secret"}},
			})
			if err == nil || !strings.Contains(err.Error(), tt.names) || !strings.Contains(err.Error(), s.origin()) || strings.Contains(err.Error(), "hidden-secret") {
				t.Errorf("B077: %v", err)
			}
			if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.BadReply {
				t.Errorf("B077: %v", err)
			}
			if len(second.seen("")) != 0 || len(s.seen("POST")) != 0 {
				t.Errorf("B077: posted %q and %q", s.order(), second.order())
			}
		})
	}
}

func TestStreamsThatAreNoneOfHTTPWithSSE(t *testing.T) {
	reply := func(status int, kind, body string) answerer {
		return func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Www-Authenticate", "Bearer")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, tt := range []struct {
		name   string
		get    answerer
		kind   mcp.FailureKind
		status int // that a StatusError has, or an AuthError
		text   string
	}{
		{"a stream that ends", reply(200, "text/event-stream", ":\n\n"), mcp.ConnectionLost, 0, "does not begin with the event endpoint"},
		{"a stream that ends in the event", reply(200, "text/event-stream", "event: endpoint\ndata: /m"), mcp.ConnectionLost, 0, "truncated"},
		{"a message before the endpoint", reply(200, "text/event-stream", event(`{"jsonrpc":"2.0","method":"notifications/x"}`)+endpointIs("/m")), mcp.BadReply, 0, "does not begin with the event endpoint"},
		{"no URI", reply(200, "text/event-stream", endpointIs("http://h:x/hidden-secret")), mcp.BadReply, 0, "the endpoint is no URI"},
		{"B157 a control character", reply(200, "text/event-stream", endpointIs("/m\x01hidden-secret")), mcp.BadReply, 0, "the endpoint is no URI"},
		{"an empty URI", reply(200, "text/event-stream", "event: endpoint\ndata:\n\n"), mcp.BadReply, 0, "the endpoint is no URI"},
		{"TK1 a long URI", reply(200, "text/event-stream", endpointIs("/"+strings.Repeat("x", 9000))), mcp.BadReply, 0, "over the limit of 8192"},
		{"TK1 a long event", reply(200, "text/event-stream", endpointIs("/"+strings.Repeat("x", 2<<20))), mcp.LimitExceeded, 0, "1048576"},
		{"HTML", reply(200, "text/html", "<html>hello</html>"), mcp.BadReply, 200, "hello"},
		{"404", reply(404, "text/plain", "nothing here"), mcp.BadReply, 404, "nothing here"},
		{"405", reply(405, "text/plain", ""), mcp.BadReply, 405, "HTTP 405"},
		{"401", reply(401, "text/plain", "no"), mcp.BadReply, 401, "HTTP 401 Unauthorized [WWW-Authenticate: Bearer]"},
		{"503", reply(503, "text/event-stream", "no"), mcp.BadReply, 503, "HTTP 503"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, tt.get)
			err := notConnected(t, p.url, &streamable.DialOptions{MaxBody: 1 << 20})
			e, ok := errors.AsType[*mcp.CallError](err)
			if !ok || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.text) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "hidden-secret") {
				t.Errorf("%.1000v", err)
			}
			status := 0
			if e, ok := errors.AsType[*streamable.StatusError](err); ok {
				status = e.Status
			} else if e, ok := errors.AsType[*streamable.AuthError](err); ok {
				status = e.Status
			}
			if status != tt.status || len(p.seen("POST")) != 0 {
				t.Errorf("status %d, %q", status, p.order())
			}
		})
	}
}

func TestDialingSSEIsBounded_B061(t *testing.T) {
	silent := func(conn net.Conn) bool {
		_, _ = conn.Read(make([]byte, 1)) // until the other side goes
		return false
	}
	const stream = "HTTP/1.1 200 OK\nContent-Type: text/event-stream\n"
	onGet := func(pieces ...string) func(net.Conn, *http.Request, *jsonrpc.Message) bool {
		return func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
			if r.Method == "GET" {
				onWire(conn, stream, pieces...)
			}
			return silent(conn)
		}
	}
	accepting := func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
		if r.Method == "GET" {
			onWire(conn, stream, endpointIs("/m"))
			return silent(conn)
		}
		return wholeOnWire(conn, "202 Accepted", "", "")
	}
	endless := func(conn net.Conn, _ *http.Request, _ *jsonrpc.Message) bool {
		for onWire(conn, stream); ; <-time.After(time.Millisecond) {
			if _, err := io.WriteString(conn, ": still here\n\n"); err != nil {
				return false
			}
		}
	}
	for name, answer := range map[string]func(net.Conn, *http.Request, *jsonrpc.Message) bool{
		"silence":                        func(conn net.Conn, _ *http.Request, _ *jsonrpc.Message) bool { return silent(conn) },
		"a stream and nothing in it":     onGet(),
		"half an endpoint":               onGet("event: endpoint\nda"),
		"comments without end":           endless,
		"an endpoint that does not read": onGet(endpointIs("/m")),
		"202 and never an answer":        accepting,
	} {
		for _, byContext := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, context %v", name, byContext), func(t *testing.T) {
				t.Parallel()
				url, _ := wireServer(t, answer)
				const limit = 200 * time.Millisecond
				began := time.Now()
				ctx, opts := t.Context(), &streamable.DialOptions{}
				if byContext {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, limit)
					defer cancel()
				} else {
					opts.HandshakeTimeout = limit
				}
				_, err := streamable.DialSSE(ctx, url, opts)
				if took := time.Since(began); took < limit || took > patience {
					t.Errorf("B061: it took %v", took)
				}
				e, ok := errors.AsType[*mcp.CallError](err)
				if !errors.Is(err, context.DeadlineExceeded) || ok && e.Kind != mcp.TimedOut {
					t.Errorf("B061: %v", err)
				}
			})
		}
	}
}

func TestDialSSEIsForLegacyServers(t *testing.T) {
	p := newPeer(t, justAnswer)
	if _, err := streamable.DialSSE(t.Context(), p.url, knownEra(mcp.Modern)); err == nil || len(p.seen("")) != 0 {
		t.Errorf("%v after %q", err, p.order())
	}
	for _, address := range []string{"", "ftp://h/sse", "http://h:x/?k=hidden-secret"} {
		if _, err := streamable.DialSSE(t.Context(), address, nil); err == nil || strings.Contains(err.Error(), "hidden-secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestSSERedirects: as those of Streamable HTTP, for both requests.
func TestSSERedirects_B088_B089(t *testing.T) {
	second := newPeer(t, justAnswer)
	for _, tt := range []struct {
		status   int
		location string
		get      string // what DialSSE says if GET is redirected so; empty if it works
		post     string
	}{
		{307, "/moved", "", ""},
		{308, "/moved", "", ""},
		{302, "/moved", "", "redirects a POST with status 302"},
		{307, second.url, "another origin, " + second.url, "another origin, " + second.url},
		{302, second.url, "another origin", "another origin"},
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(fmt.Sprintf("%s %d %s", method, tt.status, tt.location), func(t *testing.T) {
				s := &oldServer{stream: make(chan string, 10)}
				s.peer = newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					switch {
					case r.Method == method && r.URL.Path != "/moved":
						http.Redirect(w, r, tt.location, tt.status)
					case r.Method == "POST":
						s.take(w, m)
					default:
						s.serveStream(w, r, endpointIs("/m"))
					}
				})
				want := tt.get
				if method == "POST" {
					want = tt.post
				}
				c, err := streamable.DialSSE(t.Context(), s.origin()+"/sse", nil)
				if err == nil {
					mustCall(t, c)
					closeEdge(t, c)
				}
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || len(second.seen("")) != 0 {
					t.Errorf("%v; the second origin got %q", err, second.order())
				}
			})
		}
	}
}
