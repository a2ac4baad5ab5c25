package streamable_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// guarded returns a browser at a server with options, and its port and paths.
func guarded(t *testing.T, opts streamable.HandlerOptions) (b *browser, port string, paths []string) {
	t.Helper()
	s, err := streamable.Listen("127.0.0.1:0", echo, &streamable.ServerOptions{HandlerOptions: opts})
	if err != nil {
		t.Fatal(err)
	}
	serveUntilEnd(t, s)
	_, rest, _ := strings.Cut(s.URL(), "127.0.0.1:")
	port, _, _ = strings.Cut(rest, "/")
	return newBrowser(t, s.URL()), port, s.Paths()
}

func TestGuardTable(t *testing.T) {
	b, port, _ := guarded(t, streamable.HandlerOptions{
		AllowedHosts: []string{"Named.Example"}, AllowedOrigins: []string{"https://Page.example/", "http://localhost:6274"},
	})
	for _, tt := range []struct {
		name, host, origin, site string
		ok                       bool
	}{
		{name: "B131 no Origin", host: "127.0.0.1:" + port, ok: true},
		{name: "B131 a foreign host", host: "evil.example:" + port},
		{name: "B131 a foreign host without a port", host: "evil.example"},
		{name: "a host that begins like ours", host: "127.0.0.1.evil.example:" + port},
		{name: "a host that ends like ours", host: "evil-localhost:" + port},
		{name: "B131 localhost", host: "localhost:" + port, ok: true},
		{name: "B131 upper case", host: "LOCALHOST:" + port, ok: true},
		{name: "B131 IPv6", host: "[::1]:8000", ok: true},
		{name: "T-B1 another port", host: "127.0.0.1:1", ok: true},
		{name: "another address of the loopback net", host: "127.1.2.3:" + port, ok: true},
		{name: "a configured host", host: "named.example:80", ok: true},
		{name: "B131 a foreign origin", host: "localhost:" + port, origin: "http://evil.example"},
		{name: "T-B1 a foreign origin over TLS", origin: "https://evil.example"},
		{name: "B131 D2.12 both foreign", host: "evil.example:" + port, origin: "http://evil.example:" + port},
		{name: "B131 null", origin: "null"},
		{name: "B131 an origin that begins like ours", origin: "http://localhost.evil.example"},
		{name: "B131 another port of ours", origin: "http://localhost:9999"},
		{name: "no port", origin: "http://localhost"},
		{name: "its own page", origin: "http://127.0.0.1:" + port, ok: true},
		{name: "D2.13 S2.49 its own page by another name", origin: "http://localhost:" + port, ok: true},
		{name: "its own page over IPv6", origin: "http://[::1]:" + port, ok: true},
		{name: "a configured page", origin: "https://page.example", ok: true},
		{name: "a configured page of another port", origin: "https://page.example:444"},
		{name: "a configured page of another scheme", origin: "http://page.example"},
		{name: "a page of a browser's extension", origin: "chrome-extension://localhost:" + port},
		{name: "a file", origin: "file://"},
		{name: "an empty origin", origin: " "},
		{name: "T-B2 cross-site without Origin", site: "cross-site"},
		{name: "same-site without Origin", site: "same-site"},
		{name: "same-origin without Origin", site: "same-origin", ok: true},
		{name: "typed into the address bar", site: "none", ok: true},
		{name: "cross-site from a configured page", origin: "http://localhost:6274", site: "cross-site", ok: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := modernRequest("1", "tools/list", "")
			h := modernHeader(t, body)
			for name, value := range map[string]string{"Host": tt.host, "Origin": tt.origin, "Sec-Fetch-Site": tt.site} {
				if value != "" {
					h.Set(name, value)
				}
			}
			r := b.do(t, "POST", body, h)
			if tt.ok != (r.status == http.StatusOK) || !tt.ok && r.status != http.StatusForbidden {
				t.Errorf("%s", r)
			}
			if origins := r.header.Values("Access-Control-Allow-Origin"); tt.ok && tt.origin != "" {
				// T-B3: exactly itself.
				if !slices.Equal(origins, []string{tt.origin}) || !slices.Contains(r.header.Values("Vary"), "Origin") {
					t.Errorf("Access-Control-Allow-Origin is %q, Vary %q", origins, r.header.Values("Vary"))
				}
			} else if origins != nil {
				t.Errorf("Access-Control-Allow-Origin is %q", origins)
			}
		})
	}
}

// TestGuardStandsBeforeEveryRoute takes the routes from the server: a new one is
// part of it.
func TestGuardStandsBeforeEveryRoute(t *testing.T) {
	b, _, paths := guarded(t, streamable.HandlerOptions{})
	if len(paths) < 7 {
		t.Fatalf("there are the routes %q", paths)
	}
	for _, path := range append(paths, "/", "/anything") {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT"} {
			for _, h := range []http.Header{
				header("Host", "evil.example"), header("Origin", "https://evil.example"), header("Origin", "null"),
				header("Origin", "http://127.0.0.1:1"), header("Sec-Fetch-Site", "cross-site"),
				{"Origin": {b.url[:len(b.url)-len("/mcp")], "https://evil.example"}},
			} {
				// T-B1, T-B3, B131
				r := b.at(path).do(t, method, "", h)
				if r.status != http.StatusForbidden || r.header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s %s with %v: %s", method, path, h, r)
				}
				if method != "HEAD" && !strings.Contains(r.body, `"code":-32600`) {
					t.Errorf("%s %s with %v: the body is %s", method, path, h, r.body)
				}
			}
		}
	}
}

// TestHeadersAreCounted: on every route, and exactly.
func TestHeadersAreCounted_TK1_SEC23(t *testing.T) {
	b, _, paths := guarded(t, streamable.HandlerOptions{})
	for _, path := range append(paths, "/", "/anything") {
		r := b.at(path).do(t, "GET", "", http.Header{"X-Many": make([]string, streamable.MaxHeaders+1)})
		if r.status != http.StatusRequestHeaderFieldsTooLarge || !strings.Contains(r.body, "limit MaxHeaders of 200") {
			t.Errorf("%s: %s", path, r)
		}
	}
	body := modernRequest("1", "tools/list", "")
	for more, want := range []int{http.StatusOK, http.StatusRequestHeaderFieldsTooLarge} {
		h := streamable.NewHandler(echo, nil)
		r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(body))
		r.Header = modernHeader(t, body)
		r.Header["X-Many"] = make([]string, streamable.MaxHeaders+more-len(r.Header))
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("the limit and %d more: HTTP %d %s", more, w.Code, w.Body)
		}
		h.Close()
	}
}

func TestGuardOnTheWire(t *testing.T) {
	b, port, _ := guarded(t, streamable.HandlerOptions{})
	for _, tt := range []struct {
		name, head string
		status     int
	}{
		{"B131 two Host headers", "GET /mcp/health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n", 400},
		{"no Host", "GET /mcp/health HTTP/1.0\r\n", 403},
		{"an empty Host", "GET /mcp/health HTTP/1.1\r\nHost:\r\n", 403},
		{"a whole address as the target", "GET http://evil.example/mcp/health HTTP/1.1\r\nHost: 127.0.0.1\r\n", 403},
		{"our whole address as the target", "GET http://localhost:" + port + "/mcp/health HTTP/1.1\r\nHost: evil.example\r\n", 200},
		{"OPTIONS of the server", "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n", 403},
		{"OPTIONS of the server by its own name", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n", 404},
		{"two Origin headers", "GET /mcp/health HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:" + port + "\r\nOrigin: null\r\n", 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := dialRaw(t, b.url)
			mustWrite(t, conn, tt.head+"Connection: close\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			data, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tt.status {
				t.Errorf("HTTP %d %s, want %d", resp.StatusCode, data, tt.status)
			}
		})
	}
}

func TestGuardByLocalAddress(t *testing.T) {
	body := modernRequest("1", "tools/list", "")
	for _, tt := range []struct {
		name, local, host string // and the origin, if there is one
		allowed           []string
		status            int
	}{
		{"nobody knows the address", "", "evil.example", nil, 403},
		{"nobody knows the address, by a loopback name", "", "localhost", nil, 200},
		{"loopback", "127.0.0.1:80", "evil.example", nil, 403},
		{"IPv4 within IPv6", "[::ffff:127.0.0.1]:80", "evil.example", nil, 403},
		{"beyond loopback", "192.0.2.1:80", "any.example", nil, 200},
		{"beyond loopback with names", "192.0.2.1:80", "any.example", []string{"named.example"}, 403},
		{"beyond loopback by its name", "192.0.2.1:80", "named.example:80", []string{"named.example:443"}, 200},
		{"B131 a page of the name that it has led here", "192.0.2.1:80", "evil.example http://evil.example", nil, 403},
		{"B131 such a page, with a port", "192.0.2.1:80", "evil.example:80 http://evil.example:80", nil, 403},
		{"its own page", "192.0.2.1:80", "192.0.2.1 http://192.0.2.1", nil, 200},
		{"its own page over IPv6", "[2001:db8::1]:80", "[2001:db8::1]:8000 http://[2001:db8::1]:8000", nil, 200},
		{"its own page by a configured name", "192.0.2.1:80", "named.example:80 https://Named.example:80", []string{"named.example"}, 200},
		{"its own page through a forwarded port", "192.0.2.1:80", "localhost:8000 http://localhost:8000", nil, 200},
		{"another page", "192.0.2.1:80", "192.0.2.1 http://evil.example", nil, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := streamable.NewHandler(echo, &streamable.HandlerOptions{AllowedHosts: tt.allowed})
			defer h.Close()
			host, origin, _ := strings.Cut(tt.host, " ")
			r := httptest.NewRequest("POST", "http://"+host+"/mcp", strings.NewReader(body))
			if r.Header = modernHeader(t, body); origin != "" {
				r.Header.Set("Origin", origin)
			}
			if tt.local != "" {
				local := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(tt.local))
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != tt.status {
				t.Errorf("HTTP %d %s, want %d", w.Code, w.Body, tt.status)
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	const page = "http://localhost:6274"
	b, _, _ := guarded(t, streamable.HandlerOptions{AllowedOrigins: []string{page}})
	for path, methods := range map[string]string{
		"/mcp": "GET, POST, DELETE, OPTIONS", "/mcp/": "GET, POST, DELETE, OPTIONS", "/mcp/events": "GET, OPTIONS", "/mcp/health": "GET, HEAD, OPTIONS",
		"/sse": "GET, OPTIONS", "/sse/": "GET, OPTIONS", "/message": "POST, OPTIONS",
	} {
		r := b.at(path).do(t, "OPTIONS", "", header("Origin", page, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "content-type, mcp-param-region, x-other,MCP-PARAM-x"))
		// S2.72, D2.14
		if r.status != http.StatusNoContent || r.body != "" || r.header.Get("Allow") != methods ||
			r.header.Get("Access-Control-Allow-Methods") != methods || r.header.Get("Access-Control-Allow-Origin") != page ||
			r.header.Get("Vary") != "Origin" || r.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %s with %v", path, r, r.header)
		}
		allowed := strings.Split(r.header.Get("Access-Control-Allow-Headers"), ", ")
		for _, name := range []string{"Content-Type", "Authorization", "Accept", "Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-Id",
			"Mcp-Method", "Mcp-Name", "Mcp-Param-Region", "Mcp-Param-X"} {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s: pages may not send %s", path, name)
			}
		}
		if slices.Contains(allowed, "X-Other") {
			t.Errorf("%s: pages may send what nobody needs", path)
		}
		if r = b.at(path).do(t, "OPTIONS", "", nil); r.status != http.StatusNoContent || r.header.Get("Allow") != methods ||
			r.header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("%s: OPTIONS without Origin is answered with %s and %v", path, r, r.header)
		}
	}
	r := b.modern(t, modernRequest("1", "tools/list", ""), "Origin", page)
	for _, name := range []string{"Mcp-Session-Id", "MCP-Protocol-Version", "WWW-Authenticate"} {
		if !strings.Contains(r.header.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("D2.14: pages may not read %s", name)
		}
	}
}
