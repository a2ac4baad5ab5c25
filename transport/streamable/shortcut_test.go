//go:build unix

package streamable_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// replyHeader is the limit of the tests for the header of a reply.
const replyHeader = 4 << 10

// newRest returns a net/http transport, and Proxy's count of the requests that came to it.
func newRest(t *testing.T) (*http.Transport, *atomic.Int64) {
	rest := streamable.NewTransport(patience)
	rest.MaxResponseHeaderBytes = replyHeader
	asked := new(atomic.Int64)
	rest.Proxy = func(*http.Request) (*url.URL, error) {
		asked.Add(1)
		return nil, nil
	}
	t.Cleanup(rest.CloseIdleConnections)
	return rest, asked
}

// shortcut returns what the tests are about, and its count of requests that net/http
// has made.
func shortcut(t *testing.T, address string) (http.RoundTripper, *atomic.Int64) {
	rest, asked := newRest(t)
	s := streamable.Shorten(rest, address)
	t.Cleanup((&http.Client{Transport: s}).CloseIdleConnections)
	asked.Store(0) // once for the origin
	return s, asked
}

func newRequest(t *testing.T, method, address, body string) *http.Request {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, reader)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// A fetched is what came of one request.
type fetched struct {
	Failed   bool // there was no reply
	Status   string
	Header   http.Header
	Trailer  http.Header
	Length   int64
	Body     string
	Broken   bool // the body was
	Unpacked bool
}

func roundTrip(via http.RoundTripper, req *http.Request) (fetched, error) {
	resp, err := via.RoundTrip(req)
	if err != nil {
		return fetched{Failed: true}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fetched{
		Status: resp.Proto + " " + resp.Status, Header: resp.Header, Trailer: resp.Trailer, Length: resp.ContentLength,
		Body: string(body), Broken: err != nil, Unpacked: resp.Uncompressed,
	}, err
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// replies are replies as they may come, each to one request. Kept says that another
// request goes over the same connection.
var replies = []struct {
	name, text string
	kept       bool
}{
	{"with a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: 1\r\nX: 2\r\n\r\nhello", true},
	{"in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", true},
	{"with a trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n5\r\nhello\r\n0\r\nT: 1\r\n\r\n", true},
	{"empty", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", true},
	{"204", "HTTP/1.1 204 No Content\r\n\r\n", true},
	{"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", true},
	{"until its end", "HTTP/1.1 200 OK\r\n\r\nhello", false},
	{"Connection: close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", false},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", false},
	{"HTTP/1.0, kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", true},
	{"no reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", true},
	{"after hints", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
	{"packed", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " + fmt.Sprint(len(zipped("hello"))) + "\r\n\r\n" + zipped("hello"), true},
	{"not packed as said", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", true},
	{"packed otherwise", "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\nhello", true},
	{"packed and empty", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", true},
	{"a redirect", "HTTP/1.1 307 Temporary Redirect\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", true},
	{"cut off in the status", "HTTP/1.1 20", false},
	{"cut off in the header", "HTTP/1.1 200 OK\r\nContent-Le", false},
	{"cut off in the body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", false},
	{"cut off in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", false},
	{"cut off before the last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false},
	{"cut off after a hint", "HTTP/1.1 100 Continue\r\n\r\n", false},
	{"nothing", "", false},
	{"no HTTP", "220 mail ESMTP\r\n", false},
	{"a bad status", "HTTP/1.1 2x0 OK\r\n\r\n", false},
	{"a bad version", "HTTP/7.x 200 OK\r\n\r\n", false},
	{"a bad header", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", false},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", false},
	{"a bad length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", false},
	{"a bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n0\r\n\r\n", false},
	{"length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", true},
	{"an unknown encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\nuryyb", false},
	{"a header as long as may be", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: " + strings.Repeat("x", replyHeader/2) + "\r\n\r\n", true},
	{"a header that is too long", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", replyHeader) + "\r\n\r\n", false},
	{"hints that are too long", strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: 1\r\n\r\n", replyHeader/20) + "HTTP/1.1 200 OK\r\n\r\n", false},
	{"a body longer than a header", "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + strings.Repeat("x", 70000), true},
	{"a long trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: " + strings.Repeat("x", 9000) + "\r\n\r\n", false},
}

// TestShortcutAgreesWithNetHTTP: whatever a server sends, it is the same by either way.
func TestShortcutAgreesWithNetHTTP(t *testing.T) {
	for _, tt := range replies {
		t.Run(tt.name, func(t *testing.T) {
			address, accepted := wireServer(t, func(conn net.Conn, _ *http.Request, _ *jsonrpc.Message) bool {
				_, err := io.WriteString(conn, tt.text)
				return tt.kept && err == nil
			})
			rest, _ := newRest(t)
			want, _ := roundTrip(rest, newRequest(t, "POST", address, "{}"))
			s, asked := shortcut(t, address)
			accepted.Store(0)
			for range 3 {
				got, err := roundTrip(s, newRequest(t, "POST", address, "{}"))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%v\n%s", err, diff)
				}
			}
			if got := accepted.Load(); tt.kept && got != 1 || !tt.kept && got != 3 {
				t.Errorf("%d connections for 3 requests", got)
			}
			if asked.Load() > 0 {
				t.Error("net/http has made the requests")
			}
		})
	}
}

// TestShortcutAgreesAboutAnything is the same about replies that are put together at
// random, and cut off.
func TestShortcutAgreesAboutAnything(t *testing.T) {
	var text atomic.Pointer[string]
	address, _ := wireServer(t, func(conn net.Conn, _ *http.Request, _ *jsonrpc.Message) bool {
		_, _ = io.WriteString(conn, *text.Load())
		return false
	})
	rest, _ := newRest(t)
	s := streamable.Shorten(rest, address)
	piece := func(t *rapid.T, of ...string) string { return rapid.SampledFrom(of).Draw(t, "piece") }
	t.Cleanup((&http.Client{Transport: s}).CloseIdleConnections)
	rapid.Check(t, func(r *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(0, 2).Draw(r, "hints") {
			b.WriteString(piece(r, "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 x\r\nA: b\r\n\r\n", "HTTP/1.1 199 x\r\nContent-Length: 2\r\n\r\n"))
		}
		b.WriteString(piece(r, "HTTP/1.1 ", "HTTP/1.0 ", "HTTP/2.0 ", "http/1.1 ", "HTTP/1.1  "))
		b.WriteString(piece(r, "200 OK", "202", "204 No", "304 No", "404 Not Found", "500 x", "999 ", "20 x", "2000 x"))
		b.WriteString(piece(r, "\r\n", "\n"))
		for range rapid.IntRange(0, 4).Draw(r, "headers") {
			b.WriteString(piece(
				r, "Content-Length: 5", "Content-Length: 0", "Content-Length: 99", "Content-Length: +5", "Transfer-Encoding: chunked",
				"Transfer-Encoding: Chunked", "Connection: close", "Connection: keep-alive", "Connection: upgrade", "Content-Encoding: gzip",
				"Trailer: T", "Trailer: Content-Length", "Content-Type: text/event-stream", " folded", "x y: z", "é: ü", "A:\x00",
			))
			b.WriteString(piece(r, "\r\n", "\n", "\r\n", "\r"))
		}
		b.WriteString(piece(r, "\r\n", "\n", ""))
		b.WriteString(piece(r, "hello", "5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\nT: 1\r\n\r\n", "5\nhello\n0\n\n", zipped("hello"), "", "hello, and more"))
		whole := b.String()
		whole = whole[:len(whole)-min(len(whole), max(0, rapid.IntRange(-20, 40).Draw(r, "missing")))]
		text.Store(&whole)
		// The server closes each connection, and not at once.
		(&http.Client{Transport: s}).CloseIdleConnections() // rest's too
		want, wantErr := roundTrip(rest, newRequest(t, "POST", address, "{}"))
		got, gotErr := roundTrip(s, newRequest(t, "POST", address, "{}"))
		if diff := cmp.Diff(want, got); diff != "" {
			r.Errorf("%q: %v, not %v\n%s", whole, gotErr, wantErr, diff)
		}
	})
}

// TestShortcutSendsWhatNetHTTPSends, to the byte.
func TestShortcutSendsWhatNetHTTPSends(t *testing.T) {
	sent := make(chan string, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	defer func() { <-served }()
	defer listener.Close()
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var b bytes.Buffer
			if req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &b))); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
			}
			sent <- b.String()
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			_ = conn.Close()
		}
	}()
	address := "http://" + listener.Addr().String() + "/mcp?a=b%20c&d=;#f"
	for _, tt := range []struct {
		name, method, body string
		header             http.Header
	}{
		{"POST", "POST", `{"a":"ü"}`, header("Content-Type", "application/json", "Accept", "a, b", "Mcp-Method", "tools/call")},
		{"POST of much", "POST", strings.Repeat("x", streamable.MaxShortBody), nil},
		{"POST of nothing", "POST", "", nil},
		{"GET", "GET", "", header("Accept", "text/event-stream", "Last-Event-Id", "7")},
		{"GET with a body", "GET", "x", nil},
		{"DELETE", "DELETE", "", header("Mcp-Session-Id", "s")},
		{"an agent", "POST", "{}", header("User-Agent", " me ", "Authorization", "Bearer x")},
		{"no agent", "POST", "{}", header("User-Agent", "")},
		{"several values", "POST", "{}", http.Header{"A": {"1", " 2\t", ""}, "lower": {"x"}, "B": nil}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rest, _ := newRest(t)
			s, asked := shortcut(t, address)
			var texts []string
			for _, via := range []http.RoundTripper{rest, s} {
				req := newRequest(t, tt.method, address, tt.body)
				if tt.header != nil {
					req.Header = tt.header.Clone()
				}
				if got, err := roundTrip(via, req); err != nil || got.Status != "HTTP/1.1 204 No Content" {
					t.Fatalf("%v, %v", got, err)
				}
				texts = append(texts, await(t, sent))
			}
			if texts[0] != texts[1] || asked.Load() > 0 {
				t.Errorf("%.1000q, not %.1000q", texts[1], texts[0])
			}
		})
	}
}

// An opaque reader is not known to be in memory.
type opaque struct{ io.Reader }

// TestShortcutLeavesTheRestToNetHTTP: what is not simple is made as before, or refused
// as before.
func TestShortcutLeavesTheRestToNetHTTP(t *testing.T) {
	address, _ := wireServer(t, func(conn net.Conn, _ *http.Request, _ *jsonrpc.Message) bool {
		return wholeOnWire(conn, "200 OK", "", "{}")
	})
	for _, tt := range []struct {
		name   string
		change func(req *http.Request)
		fails  bool
	}{
		{"a large body", func(req *http.Request) {
			*req = *newRequest(t, "POST", address, strings.Repeat("x", streamable.MaxShortBody+1))
		}, false},
		{"a body that is a stream", func(req *http.Request) { req.Body = io.NopCloser(opaque{req.Body}) }, false},
		{"a body that cannot be sent again", func(req *http.Request) { req.GetBody = nil }, false},
		{"a body of unknown length", func(req *http.Request) { req.ContentLength = -1 }, false},
		{"Expect", func(req *http.Request) { req.Header.Set("Expect", "100-continue") }, false},
		{"Accept-Encoding", func(req *http.Request) { req.Header.Set("Accept-Encoding", "br") }, false},
		{"another method", func(req *http.Request) { req.Method = "PUT" }, false},
		{"a connection for one request", func(req *http.Request) { req.Close = true }, false},
		{"another name for the host", func(req *http.Request) { req.Host = "other" }, false},
		{"a trace", func(req *http.Request) {
			*req = *req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{}))
		}, false},
		{"a header that is two", func(req *http.Request) { req.Header["A"] = []string{"b\r\nC: d"} }, true},
		{"a header's name that is two", func(req *http.Request) { req.Header["A: b\r\nC"] = []string{"d"} }, true},
		{"another scheme", func(req *http.Request) { req.URL.Scheme = "gopher" }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, asked := shortcut(t, address)
			req := newRequest(t, "POST", address, "{}")
			tt.change(req)
			got, err := roundTrip(s, req)
			if got.Failed != tt.fails || !tt.fails && (got.Body != "{}" || asked.Load() == 0) {
				t.Errorf("%+v, %v; net/http was asked %d times", got, err, asked.Load())
			}
		})
	}
}

// TestShortcutIsForPlainOrigins: by way of a proxy, and to what is no plain origin, all
// is left to net/http.
func TestShortcutIsForPlainOrigins(t *testing.T) {
	proxy := func(address string, err error) func(*http.Request) (*url.URL, error) {
		return func(*http.Request) (*url.URL, error) {
			u, _ := url.Parse(address)
			return u, err
		}
	}
	direct := func(*http.Request) (*url.URL, error) { return nil, nil }
	for _, tt := range []struct {
		address string
		proxy   func(*http.Request) (*url.URL, error)
		short   bool
	}{
		{"http://example.com/mcp", direct, true},
		{"http://example.com:8080/mcp", nil, true},
		{"http://[::1]:80/", direct, true},
		{"https://example.com/mcp", direct, false},
		{"http://bücher.example/", direct, false},
		{"http://[fe80::1%25eth0]/", direct, false},
		{"http://example.com/mcp", proxy("http://proxy.example", nil), false},
		{"http://example.com/mcp", proxy("", errors.New("a proxy that is no URL")), false},
	} {
		rest := streamable.NewTransport(patience)
		rest.Proxy = tt.proxy
		if s := streamable.Shorten(rest, tt.address); (s != http.RoundTripper(rest)) != tt.short {
			t.Errorf("%s: %T", tt.address, s)
		}
	}
}

// TestShortcutHeedsAContextThatHasEnded before it does anything.
func TestShortcutHeedsAContextThatHasEnded(t *testing.T) {
	address, accepted := wireServer(t, func(net.Conn, *http.Request, *jsonrpc.Message) bool { return false })
	s, _ := shortcut(t, address)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	_, err := s.RoundTrip(newRequest(t, "POST", address, "{}").WithContext(ctx))
	if !errors.Is(err, why) || accepted.Load() != 0 {
		t.Errorf("%v, after %d connections", err, accepted.Load())
	}
}
