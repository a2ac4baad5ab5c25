package streamable_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A seen is one HTTP request that a peer got.
type seen struct {
	verb   string // HTTP method
	method string // of the message; empty if there is none
	header http.Header
	body   string
	url    string
}

// A peer is a scripted HTTP server that keeps what it gets.
type peer struct {
	url   string
	conns atomic.Int64 // network connections that it has had

	mu  sync.Mutex
	got []seen
}

// An answerer answers one request. M is empty if the body holds no message.
type answerer func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message)

func newPeer(t *testing.T, answer answerer) *peer {
	t.Helper()
	p := &peer{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var m jsonrpc.Message
		_ = jsonrpc.Scan(body, &m)
		p.mu.Lock()
		p.got = append(p.got, seen{r.Method, string(m.Method), r.Header.Clone(), string(body), r.URL.String()})
		p.mu.Unlock()
		answer(w, r, &m)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.conns.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	p.url = server.URL + "/mcp"
	return p
}

// seen returns the requests of one kind: an HTTP method, or a message's.
func (p *peer) seen(kind string) []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []seen
	for _, s := range p.got {
		if kind == "" || s.verb == kind || s.method == kind {
			found = append(found, s)
		}
	}
	return found
}

// order returns what was asked for, in its order.
func (p *peer) order() []string {
	var order []string
	for _, s := range p.seen("") {
		if s.method != "" {
			order = append(order, s.method)
		} else {
			order = append(order, s.verb)
		}
	}
	return order
}

// await waits until there have been n requests of a kind.
func (p *peer) await(t *testing.T, kind string, n int) []seen {
	t.Helper()
	eventually(t, func() bool { return len(p.seen(kind)) >= n })
	return p.seen(kind)
}

// eventually waits until something is so that nobody tells of.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); {
		if time.Now().After(deadline) {
			t.Fatal("it never came about")
		}
		<-time.After(time.Millisecond)
	}
}

func writeJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func writeResult(w http.ResponseWriter, m *jsonrpc.Message, result string) {
	writeJSON(w, 200, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":`+result+`}`)
}

func writeError(w http.ResponseWriter, status int, m *jsonrpc.Message, code int, message string) {
	writeJSON(w, status, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, message))
}

// writeStream begins an event stream.
func writeStream(w http.ResponseWriter, texts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	_ = http.NewResponseController(w).Flush()
	writeMore(w, texts...)
}

// writeMore goes on with an event stream. Each text is flushed.
func writeMore(w http.ResponseWriter, texts ...string) {
	for _, text := range texts {
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
	}
}

func event(body string) string { return "data: " + body + "\n\n" }

func resultEvent(m *jsonrpc.Message, result string) string {
	return event(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + result + `}`)
}

// legacyPeer answers the handshake as a server of a revision does, in a session
// if that has a name, and has rest answer everything else. Rest may be nil.
func legacyPeer(revision, session string, rest answerer) answerer {
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch method := string(m.Method); {
		case method == "server/discover":
			writeJSON(w, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no session"}}`)
		case method == "initialize":
			if session != "" {
				w.Header().Set("Mcp-Session-Id", session)
			}
			writeResult(w, m, `{"protocolVersion":"`+revision+`","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"peer","version":"1"}}`)
		case method == "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
		case rest != nil && (r.Method == "POST" || r.Method == "GET"):
			rest(w, r, m)
		case r.Method == "DELETE":
			w.WriteHeader(http.StatusNoContent)
		case r.Method == "GET":
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			writeResult(w, m, `{}`)
		}
	}
}

// onPost has answer answer POSTs; GET is refused.
func onPost(answer answerer) answerer {
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if r.Method == "GET" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answer(w, r, m)
	}
}

// modernPeer answers server/discover, and has rest answer everything else.
func modernPeer(rest answerer) answerer {
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "server/discover" {
			writeResult(w, m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
			return
		}
		rest(w, r, m)
	}
}

// dial connects to a peer and closes the connection at the end.
func dial(t *testing.T, url string, opts *streamable.DialOptions) *streamable.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := streamable.Dial(ctx, url, opts)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() { closeSoon(t, c) })
	return c
}

// closeSoon closes a connection, twice, and asserts that it does not take long.
func closeSoon(t *testing.T, c *streamable.Conn) {
	t.Helper()
	began := time.Now()
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	if took := time.Since(began); took > patience {
		t.Errorf("closing took %v", took)
	}
}

func knownEra(era mcp.Era) *streamable.DialOptions {
	return &streamable.DialOptions{DialOptions: transport.DialOptions{Era: era, Logger: logger}}
}

// call calls a tool through a connection.
func call(t *testing.T, h mcp.Handler, caller mcp.Caller) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return callWithin(ctx, h, caller)
}

func callWithin(ctx context.Context, h mcp.Handler, caller mcp.Caller) (string, error) {
	result, err := h.Handle(ctx, toolRequest("t", `{"a":1}`), caller)
	return string(result.Raw()), err
}

func toolRequest(name, arguments string) *mcp.Request {
	return &mcp.Request{
		Method: mcp.MethodCallTool,
		Params: jsonrpc.Trusted([]byte(`{"name":"` + name + `","arguments":` + arguments + `}`)),
	}
}

// wireServer answers HTTP requests on raw connections, byte by byte as it likes.
// Answer gets the connection after it has read a request; the connection goes
// on while answer says so.
func wireServer(t *testing.T, answer func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool) (url string, accepted *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted = new(atomic.Int64)
	var serving sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			serving.Go(func() {
				defer conn.Close()
				for reader := bufio.NewReader(conn); ; {
					r, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					body, err := io.ReadAll(r.Body)
					if err != nil {
						return
					}
					var m jsonrpc.Message
					_ = jsonrpc.Scan(body, &m)
					if !answer(conn, r, &m) {
						return
					}
				}
			})
		}
	})
	return "http://" + listener.Addr().String() + "/mcp", accepted
}

// onWire writes a reply by hand.
func onWire(conn io.Writer, head string, pieces ...string) bool {
	for _, piece := range slices.Insert(pieces, 0, strings.ReplaceAll(head, "\n", "\r\n")+"\r\n") {
		if _, err := io.WriteString(conn, piece); err != nil {
			return false
		}
	}
	return true
}

// wholeOnWire writes a JSON reply by hand.
func wholeOnWire(conn io.Writer, status, headers, body string) bool {
	return onWire(conn, fmt.Sprintf("HTTP/1.1 %s\nContent-Type: application/json\nContent-Length: %d\n%s", status, len(body), headers), body)
}
