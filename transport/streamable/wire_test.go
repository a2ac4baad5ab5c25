package streamable_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// What clients of the two eras write, by hand.

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// modernRequest returns the body of a modern request. Params are the members
// besides _meta.
func modernRequest(id, method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + modernMeta + `}}`
}

func legacyRequest(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func toolCall(tool, arguments string) string {
	return `"name":"` + tool + `","arguments":` + arguments
}

// header returns a header from names and values.
func header(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// modernHeader returns the headers that belong to a modern body.
func modernHeader(t *testing.T, body string, pairs ...string) http.Header {
	t.Helper()
	var m jsonrpc.Message
	if err := jsonrpc.Scan([]byte(body), &m); err != nil {
		t.Fatalf("the test's own message: %v", err)
	}
	h := header("Content-Type", "application/json", "Accept", "application/json, text/event-stream",
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", string(m.Method))
	if param, ok := mcp.NameParam(string(m.Method)); ok {
		name, _ := m.Body.LookupString(param)
		h.Set("Mcp-Name", mcp.EncodeHeader(name))
	}
	for i := 0; i < len(pairs); i += 2 {
		h[http.CanonicalHeaderKey(pairs[i])] = []string{pairs[i+1]}
	}
	return h
}

// A reply is what a server answered.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) String() string { return fmt.Sprintf("HTTP %d %q", r.status, r.body) }

// code returns the code of the error that a reply holds, 0 if none.
func (r reply) code(t *testing.T) int {
	t.Helper()
	v, err := jsonrpc.ParseValue([]byte(r.body))
	if err != nil {
		t.Fatalf("%s is no JSON: %v", r, err)
	}
	e := v.Get("error")
	if e.IsZero() {
		return 0
	}
	return jsonrpc.ReadError(&e).Code
}

// newServer serves a handler by net/http's own server.
func newServer(t *testing.T, h http.Handler) (url string) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// A browser makes HTTP requests to one server.
type browser struct {
	url  string
	http http.Client
}

func newBrowser(t *testing.T, url string) *browser {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{url: url, http: http.Client{Transport: transport, Timeout: patience}}
}

// open makes a request and returns its reply with the body to be read.
func (b *browser) open(t *testing.T, method, body string, h http.Header) *http.Response {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	return b.send(t, method, reader, h)
}

func (b *browser) send(t *testing.T, method string, body io.Reader, h http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.url, body)
	if err != nil {
		t.Fatal(err)
	}
	if req.Header = h; h == nil {
		req.Header = http.Header{}
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := b.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (b *browser) do(t *testing.T, method, body string, h http.Header) reply {
	t.Helper()
	resp := b.open(t, method, body, h)
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the reply: %v", err)
	}
	return reply{resp.StatusCode, resp.Header, string(data)}
}

func (b *browser) at(path string) *browser {
	base, _, _ := strings.Cut(strings.TrimPrefix(b.url, "http://"), "/")
	return &browser{url: "http://" + base + path, http: b.http}
}

// modern posts a modern request.
func (b *browser) modern(t *testing.T, body string, pairs ...string) reply {
	t.Helper()
	return b.do(t, http.MethodPost, body, modernHeader(t, body, pairs...))
}

// initialize begins a legacy session and returns its id.
func (b *browser) initialize(t *testing.T, revision string) string {
	t.Helper()
	r := b.do(t, http.MethodPost, initializeRequest(revision), legacyHeader(""))
	if r.status != http.StatusOK || r.code(t) != 0 {
		t.Fatalf("initialize is answered with %s", r)
	}
	id := r.header.Get("Mcp-Session-Id")
	n := b.do(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, legacyHeader(id))
	if n.status != http.StatusAccepted {
		t.Fatalf("notifications/initialized is answered with %s", n)
	}
	return id
}

func initializeRequest(revision string) string {
	return legacyRequest("0", "initialize", `{"protocolVersion":"`+revision+`","capabilities":`+capabilities+`,"clientInfo":{"name":"tester","version":"1"}}`)
}

func legacyHeader(session string, pairs ...string) http.Header {
	h := header("Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
	for i := 0; i < len(pairs); i += 2 {
		h[http.CanonicalHeaderKey(pairs[i])] = []string{pairs[i+1]}
	}
	return h
}

// legacy posts a message of a session.
func (b *browser) legacy(t *testing.T, session, body string) reply {
	t.Helper()
	return b.do(t, http.MethodPost, body, legacyHeader(session))
}

// An eventReader takes the events of a reply, as text.
type eventReader struct {
	lines *bufio.Scanner
	body  io.Closer
}

func readEvents(resp *http.Response) *eventReader {
	return &eventReader{bufio.NewScanner(resp.Body), resp.Body}
}

// next returns the next event or comment, with its lines joined by "|", and
// false at the end of the stream.
func (r *eventReader) next() (string, bool) {
	var lines []string
	for r.lines.Scan() {
		if r.lines.Text() == "" {
			return strings.Join(lines, "|"), true
		}
		lines = append(lines, r.lines.Text())
	}
	return "", false
}

// want takes the next event, whose id does not count.
func (r *eventReader) want(t *testing.T, want string) {
	t.Helper()
	got, ok := r.next()
	if bare := idField.ReplaceAllString(got, "|"); !ok || got != want && bare != want {
		t.Fatalf("the next event is %q, %v, want %q", got, ok, want)
	}
}

var idField = regexp.MustCompile(`\|id: [^|]*\|`)

var priming = regexp.MustCompile(`^event: message\|id: ([\x21-\x7e]+)\|retry: (\d+)\|data: $`)

// opened takes the event with which a stream of 2025-11-25 begins, and returns its
// id.
func (r *eventReader) opened(t *testing.T) (id string) {
	t.Helper()
	got, ok := r.next()
	match := priming.FindStringSubmatch(got)
	if !ok || match == nil {
		t.Fatalf("B068: the stream begins with %q, %v", got, ok)
	}
	return match[1]
}

// await returns the next event that holds text.
func (r *eventReader) await(t *testing.T, text string) string {
	t.Helper()
	for {
		got, ok := r.next()
		if !ok {
			t.Fatalf("the stream ended before an event with %q", text)
		}
		if strings.Contains(got, text) {
			return got
		}
	}
}

func (r *eventReader) wantEnd(t *testing.T) {
	t.Helper()
	for {
		got, ok := r.next()
		if !ok {
			break
		}
		if got != ":" {
			t.Fatalf("after the end came %q", got)
		}
	}
	if err := r.lines.Err(); err != nil {
		t.Errorf("the stream did not end as it should: %v", err)
	}
}

// dialRaw opens a TCP connection to the server at url.
func dialRaw(t *testing.T, url string) net.Conn {
	t.Helper()
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func mustWrite(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatalf("writing to the server: %v", err)
	}
}

// readReply reads a whole reply from a raw connection.
func readReply(t *testing.T, conn io.Reader) reply {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("reading the reply: %v", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the reply's body: %v", err)
	}
	return reply{resp.StatusCode, resp.Header, string(data)}
}

// strict returns options whose log fails the test at what net/http complains
// about: a reply that was written twice, or too long, or a panic.
func strict(t *testing.T) streamable.HandlerOptions {
	return streamable.HandlerOptions{Logger: slog.New(&strictLog{t: t, Handler: slog.DiscardHandler})}
}

type strictLog struct {
	slog.Handler

	t *testing.T
}

func (l *strictLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *strictLog) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "http: ") {
		l.t.Errorf("net/http complains: %s", r.Message)
	}
	return nil
}

// A journal is a log that tests look into.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
