package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// serving returns a browser at a server of handler.
func serving(t *testing.T, handler mcp.Handler, opts *streamable.ServerOptions) *browser {
	t.Helper()
	return newBrowser(t, listen(t, handler, opts))
}

func strictServer(t *testing.T) *streamable.ServerOptions {
	return &streamable.ServerOptions{HandlerOptions: strict(t), Drain: time.Second}
}

func TestListenAddresses(t *testing.T) {
	for _, tt := range []struct {
		name, addr string
		opts       streamable.ServerOptions
		refused    bool
	}{
		{name: "S2.47 any free port", addr: "127.0.0.1:0"},
		{name: "D2.25 localhost", addr: "localhost:0"},
		{name: "T-B4 all IPv4 addresses", addr: "0.0.0.0:0", refused: true},
		{name: "T-B4 all IPv6 addresses", addr: "[::]:0", refused: true},
		{name: "T-B4 no host", addr: ":0", refused: true},
		{name: "T-B4 an address of a network", addr: "192.0.2.1:0", refused: true},
		{name: "T-B4 a host name", addr: "example.com:0", refused: true},
		{name: "S2.50 said in words", addr: "0.0.0.0:0", opts: streamable.ServerOptions{AllowRemote: true}},
		{name: "S2.50 with authentication", addr: "0.0.0.0:0", opts: streamable.ServerOptions{
			HandlerOptions: streamable.HandlerOptions{Principal: func(*http.Request) mcp.Principal { return mcp.Principal{} }},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := streamable.Listen(tt.addr, echo, &tt.opts)
			if tt.refused {
				if !errors.Is(err, streamable.ErrRemote) {
					t.Fatalf("B131: listening on %s gives %v", tt.addr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(s.URL(), ":0/mcp") || !strings.HasSuffix(s.URL(), "/mcp") {
				t.Errorf("the URL is %s", s.URL())
			}
			if err := s.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		})
	}
}

func TestListenReturnsBindErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	// S2.70, D2.24
	if _, err := streamable.Listen(taken.Addr().String(), echo, nil); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port in use gives %v", err)
	}
	for _, addr := range []string{"127.0.0.1", "127.0.0.1:http:x", "127.0.0.1:99999"} {
		if s, err := streamable.Listen(addr, echo, nil); err == nil {
			t.Errorf("%s is taken for an address", addr)
			_ = s.Close()
		}
	}
}

func TestDefaultAddress(t *testing.T) {
	// S2.48: loopback, and the port that the documents name.
	if streamable.DefaultAddr != "127.0.0.1:8421" || streamable.DefaultPath != "/mcp" {
		t.Errorf("the defaults are %s and %s", streamable.DefaultAddr, streamable.DefaultPath)
	}
	s, err := streamable.Listen("", echo, nil)
	if errors.Is(err, syscall.EADDRINUSE) {
		return // another program has it, which shows the default as well
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.URL() != "http://127.0.0.1:8421/mcp" {
		t.Errorf("the URL is %s", s.URL())
	}
}

func TestRoutes(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	list := modernRequest("1", "tools/list", "")
	modern := modernHeader(t, list)
	const notFound = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Not found. Use POST /mcp, GET /mcp/events, GET /mcp/health, or GET /sse"}}`
	for _, tt := range []struct {
		name, method, path string
		header             http.Header
		body               string
		status             int
		allow              string
		contains           string
	}{
		{"S2.51 the endpoint", "POST", "/mcp", modern, list, 200, "", `"tools"`},
		{"S2.51 with a slash", "POST", "/mcp/", modern, list, 200, "", `"tools"`},
		{"S2.51 with a query", "POST", "/mcp?x=1&y", modern, list, 200, "", `"tools"`},
		{"B088 with both", "POST", "/mcp/?x", modern, list, 200, "", `"tools"`},
		{"D2.18 GET without a session", "GET", "/mcp", header("Accept", "text/event-stream"), "", 405, "GET, POST, DELETE, OPTIONS", "-32600"},
		{"DELETE without a session", "DELETE", "/mcp", nil, "", 405, "GET, POST, DELETE, OPTIONS", "-32600"},
		{"HEAD of the endpoint", "HEAD", "/mcp", nil, "", 405, "GET, POST, DELETE, OPTIONS", ""},
		{"PUT", "PUT", "/mcp", modern, list, 405, "GET, POST, DELETE, OPTIONS", "-32600"},
		{"S2.53 health", "GET", "/mcp/health", nil, "", 200, "", `{"status":"ok","transport":"streamable-http"}`},
		{"S2.53 health with a query", "GET", "/mcp/health?now", nil, "", 200, "", `"ok"`},
		{"S2.53 HEAD of health", "HEAD", "/mcp/health", nil, "", 200, "", ""},
		{"S2.54 POST to health", "POST", "/mcp/health", modern, list, 405, "GET, HEAD, OPTIONS", `"id":null`},
		{"S2.54 POST to events", "POST", "/mcp/events", modern, list, 405, "GET, OPTIONS", `"id":null`},
		{"S2.54 a method that is part of another's name", "ET", "/mcp/events", nil, "", 405, "GET, OPTIONS", ""},
		{"POST to the stream of old clients", "POST", "/sse", modern, list, 405, "GET, OPTIONS", `"id":null`},
		{"HEAD of the stream of old clients", "HEAD", "/sse/", nil, "", 405, "GET, OPTIONS", ""},
		{"GET of where old clients post", "GET", "/message", nil, "", 405, "POST, OPTIONS", `"id":null`},
		{"DELETE of where old clients post", "DELETE", "/message", nil, "", 405, "POST, OPTIONS", `"id":null`},
		{"S2.54 another path", "GET", "/", nil, "", 404, "", notFound},
		{"S2.54 a longer path", "POST", "/mcp/x", modern, list, 404, "", notFound},
		{"S2.54 a shorter path", "POST", "/mc", modern, list, 404, "", notFound},
		{"D2.14 OPTIONS of another path", "OPTIONS", "/x", nil, "", 404, "", notFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := b.at(tt.path).do(t, tt.method, tt.body, tt.header)
			if r.status != tt.status || r.header.Get("Allow") != tt.allow || !strings.Contains(r.body, tt.contains) {
				t.Errorf("%s with Allow %q, want %d with %q and %q", r, r.header.Get("Allow"), tt.status, tt.allow, tt.contains)
			}
			if tt.method != "HEAD" && r.header.Get("Content-Type") != "application/json" {
				t.Errorf("the content type is %q", r.header.Get("Content-Type"))
			}
		})
	}
}

func TestRoutesUnderAnotherPath(t *testing.T) {
	for path, base := range map[string]string{"/": "", "api/": "/api", "/a/b": "/a/b"} {
		b := serving(t, echo, &streamable.ServerOptions{Path: path})
		if r := b.at(base+"/health").do(t, "GET", "", nil); r.status != http.StatusOK {
			t.Errorf("%s: health is answered with %s", path, r)
		}
		list := modernRequest("1", "tools/list", "")
		for _, suffix := range []string{"", "/"} {
			if r := b.at(base+suffix).modern(t, list); r.status != http.StatusOK {
				t.Errorf("%s: POST %s is answered with %s", path, base+suffix, r)
			}
		}
	}
}

// TestSSERoutes: the endpoints of old clients stand beside the endpoint, and
// where they do not, the reply to another path says so.
func TestSSERoutes(t *testing.T) {
	const short = "GET %[1]s/events, or GET %[1]s/health\""
	const long = "GET %[1]s/events, GET %[1]s/health, or GET %[2]s\""
	for _, tt := range []struct {
		name string
		opts streamable.ServerOptions
		path string // of the endpoint
		sse  string // of the stream, empty for none
		post string // where messages are to be posted
	}{
		{"by default", streamable.ServerOptions{}, "/mcp", "/sse", "/message"},
		{"for legacy clients only", streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Era: mcp.Legacy}}, "/mcp", "/sse", "/message"},
		{"below another path", streamable.ServerOptions{Path: "/a/b/"}, "/a/b", "/a/sse", "/a/message"},
		{"at the root", streamable.ServerOptions{Path: "/"}, "", "/sse", "/message"},
		{"B076 behind a proxy", streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{SSE: streamable.SSEOptions{Prefix: "x y"}}}, "/mcp", "/sse", "/x%20y/message"},
		{"for modern clients only", streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Era: mcp.Modern}}, "/mcp", "", ""},
		{"plain", streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Plain: true}}, "/mcp", "", ""},
		{"left out", streamable.ServerOptions{NoSSE: true}, "/mcp", "", ""},
		{"the endpoint has that path", streamable.ServerOptions{Path: "/sse"}, "/sse", "", ""},
		{"the endpoint has the other path", streamable.ServerOptions{Path: "/message"}, "/message", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := streamable.Listen("127.0.0.1:0", echo, &tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			serveUntilEnd(t, s)
			want := fmt.Sprintf(short, tt.path)
			if tt.sse != "" {
				want = fmt.Sprintf(long, tt.path, tt.sse)
			}
			b := newBrowser(t, s.URL())
			if r := b.at("/elsewhere").do(t, "GET", "", nil); r.status != 404 || !strings.Contains(r.body, want) {
				t.Errorf("another path: %s, want %q", r, want)
			}
			if tt.sse == "" {
				if s.SSEURL() != "" {
					t.Errorf("the stream is said to be at %s", s.SSEURL())
				}
				if r := b.at("/sse").do(t, "GET", "", nil); r.status != 404 && tt.path != "/sse" {
					t.Errorf("the stream: %s", r)
				}
				return
			}
			if !strings.HasSuffix(s.SSEURL(), tt.sse) {
				t.Errorf("the stream is said to be at %s", s.SSEURL())
			}
			stream := readEvents(newBrowser(t, s.SSEURL()).open(t, "GET", "", nil))
			if got := stream.await(t, "endpoint"); !strings.HasPrefix(got, "event: endpoint|data: "+tt.post+"?sessionId=") {
				t.Errorf("the first event is %q", got)
			}
		})
	}
}

func TestShutdownWaitsForCallsInFlight(t *testing.T) {
	f := newFixture()
	release := make(chan struct{})
	handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodCallTool {
			f.started <- "call"
			<-release
			return raw(`{"content":[]}`)
		}
		return f.Handle(ctx, req, caller)
	})
	s, err := streamable.Listen("127.0.0.1:0", handler, strictServer(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	b := newBrowser(t, s.URL())
	listening := modernRequest("5", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	events := readEvents(b.open(t, "POST", listening, modernHeader(t, listening)))
	events.await(t, "acknowledged")
	watching := readEvents(b.at("/mcp/events").open(t, "GET", "", nil))
	watching.await(t, "connected")
	answered := make(chan reply, 1)
	go func() { answered <- b.modern(t, modernRequest("1", "tools/call", toolCall("x", "{}"))) }()
	await(t, f.started)
	stop()
	// D2.26, S2.71: streams end, gracefully where there is a way.
	events.await(t, `"id":5,"result":{`)
	events.wantEnd(t)
	watching.wantEnd(t)
	select {
	case err := <-ended:
		t.Fatalf("the server did not wait for its call: %v", err)
	default:
	}
	close(release)
	if r := await(t, answered); r.status != http.StatusOK {
		t.Errorf("the call in flight is answered with %s", r)
	}
	if err := await(t, ended); err != nil {
		t.Errorf("serving: %v", err)
	}
}

func TestShutdownIsBounded(t *testing.T) {
	f := newFixture()
	s, err := streamable.Listen("127.0.0.1:0", f, &streamable.ServerOptions{Drain: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	conn := dialRaw(t, s.URL())
	body := modernRequest("1", "tools/call", toolCall("slow", "{}"))
	mustWrite(t, conn, rawPost(t, body))
	await(t, f.started)
	idle := dialRaw(t, s.URL()) // and one that never says anything
	began := time.Now()
	stop()
	if err := await(t, ended); err != nil {
		t.Errorf("serving: %v", err)
	}
	// D2.26: the drain time and what handlers get to end in.
	if took := time.Since(began); took > patience {
		t.Errorf("shutting down took %v", took)
	}
	if got := await(t, f.cancelled); got != "slow" {
		t.Errorf("%s was cancelled", got)
	}
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the idle connection: %v", err)
	}
}

// rawPost returns a modern POST as it stands on the wire.
func rawPost(t *testing.T, body string, pairs ...string) string {
	t.Helper()
	h := modernHeader(t, body, pairs...)
	if h.Get("Host") == "" {
		h.Set("Host", "127.0.0.1")
	}
	if h.Get("Content-Length") == "" && h.Get("Transfer-Encoding") == "" {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	var b strings.Builder
	b.WriteString("POST /mcp HTTP/1.1\r\n")
	if err := h.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\r\n" + body
}

func TestCloseEndsServe(t *testing.T) {
	s, err := streamable.Listen("127.0.0.1:0", echo, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context()) }()
	b := newBrowser(t, s.URL())
	b.modern(t, modernRequest("1", "tools/list", ""))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	if err := await(t, ended); err != nil {
		t.Errorf("serving: %v", err)
	}
	if err := s.Broadcast("late", nil); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("B058: a broadcast after the end gives %v", err)
	}
}

func TestServeAfterCloseEndsAtOnce(t *testing.T) {
	s, err := streamable.Listen("127.0.0.1:0", echo, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context()); err != nil {
		t.Errorf("serving on a closed server: %v", err)
	}
}

// TestHeadersAreBounded_TK1: on every route, before anything else is looked at.
func TestHeadersAreBounded_TK1_SEC23(t *testing.T) {
	s, err := streamable.Listen("127.0.0.1:0", echo, strictServer(t))
	if err != nil {
		t.Fatal(err)
	}
	serveUntilEnd(t, s)
	b := newBrowser(t, s.URL())
	for _, path := range append(s.Paths(), "/anything") {
		for name, h := range map[string]http.Header{
			"one":  header("X-Long", strings.Repeat("x", 80<<10)),
			"many": {"X-Many": slices.Repeat([]string{strings.Repeat("x", 100)}, 800)},
		} {
			// net/http lets 4 KiB more pass than it is told.
			if r := b.at(path).do(t, "GET", "", h); r.status != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: %s long: %s", path, name, r)
			}
		}
	}
	list := modernRequest("1", "tools/list", "")
	if r := b.modern(t, list, "X-Long", strings.Repeat("x", 50<<10)); r.status != 200 {
		t.Errorf("below the limit: %s", r)
	}
}

// TestBodiesAreBoundedOnEveryRoute_TK1: each route that takes a POST refuses a
// body that is too large.
func TestBodiesAreBoundedOnEveryRoute_TK1(t *testing.T) {
	opts := strictServer(t)
	opts.MaxBody = 1000
	s, err := streamable.Listen("127.0.0.1:0", echo, opts)
	if err != nil {
		t.Fatal(err)
	}
	serveUntilEnd(t, s)
	b := newBrowser(t, s.URL())
	c := openSSE(t, b.at("/sse"))
	taking := 0
	for _, path := range s.Paths() {
		if path == "/message" {
			path += "?sessionId=" + c.id
		}
		for _, size := range []int{1000, 1001} {
			body := legacyRequest("1", "ping", "{}")
			body += strings.Repeat(" ", size-len(body))
			r := b.at(path).do(t, "POST", body, header("Content-Type", "application/json"))
			if r.status == http.StatusMethodNotAllowed {
				continue
			}
			taking++
			if (r.status == http.StatusRequestEntityTooLarge) != (size > 1000) {
				t.Errorf("%s: %d bytes: %s", path, size, r)
			}
		}
	}
	if taking != 6 {
		t.Errorf("%d bodies were taken, of /mcp, /mcp/ and /message", taking)
	}
}

// TestPanicsFailTheirRequestOnly_TK2, in both eras.
func TestPanicsFailTheirRequestOnly_TK2(t *testing.T) {
	b := serving(t, newFixture(), strictServer(t))
	id := b.initialize(t, "2025-11-25")
	for name, r := range map[string]reply{
		"modern": b.modern(t, modernRequest("1", "tools/call", toolCall("panic", "{}"))),
		"legacy": b.legacy(t, id, legacyRequest("1", "tools/call", `{"name":"panic"}`)),
	} {
		if r.status != 200 || r.code(t) != -32603 || strings.Contains(r.body, "a tool panics") {
			t.Errorf("%s: %s", name, r)
		}
	}
	if r := b.legacy(t, id, legacyRequest("2", "tools/list", "{}")); r.status != 200 || r.code(t) != 0 {
		t.Errorf("the session afterwards: %s", r)
	}
}

// TestNobodyIsLetInByWildcard_TB3: no reply on any route, good or bad, has a
// wildcard or credentials for pages.
func TestNobodyIsLetInByWildcard_TB3(t *testing.T) {
	const page = "http://localhost:6274"
	opts := strictServer(t)
	opts.AllowedOrigins = []string{page}
	s, err := streamable.Listen("127.0.0.1:0", echo, opts)
	if err != nil {
		t.Fatal(err)
	}
	serveUntilEnd(t, s)
	b := newBrowser(t, s.URL())
	for _, path := range append(s.Paths(), "/anything") {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
			for origin, want := range map[string]string{"": "", page: page, "http://evil.example": "", "*": "", "null": ""} {
				h := make(http.Header)
				if origin != "" {
					h.Set("Origin", origin)
				}
				resp := b.at(path).open(t, method, "", h)
				got := resp.Header
				_ = resp.Body.Close()
				if got.Get("Access-Control-Allow-Origin") != want || got.Get("Access-Control-Allow-Credentials") != "" || got.Get("Vary") != "Origin" {
					t.Errorf("%s %s from %q: %v", method, path, origin, got)
				}
			}
		}
	}
}
