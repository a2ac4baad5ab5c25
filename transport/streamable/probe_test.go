package streamable_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"

	"github.com/google/go-cmp/cmp"
)

// TestEraOfAServer answers server/discover in many ways, and initialize as a
// legacy server does.
func TestEraOfAServer(t *testing.T) {
	reply := func(status int, kind, body string) answerer {
		return func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			if kind != "" {
				w.Header().Set("Content-Type", kind)
			}
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, strings.ReplaceAll(body, "$", m.ID.String()))
		}
	}
	rpc := func(status int, body string) answerer {
		return reply(status, "application/json", `{"jsonrpc":"2.0","id":$,`+body+`}`)
	}
	const html = "<html>not here</html>"
	for _, tt := range []struct {
		name     string
		discover answerer
		era      mcp.Era // NoEra if there is no verdict: initialize must not be sent
	}{
		{"B113 a result without resultType", rpc(200, `"result":{"capabilities":{"tools":{}},"supportedVersions":["2026-07-28"]}`), mcp.Modern},
		{"a result with resultType", rpc(200, `"result":{"resultType":"complete","capabilities":{},"supportedVersions":["2026-07-28","2025-11-25"]}`), mcp.Modern},
		{"a result in a stream", func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			writeStream(w, ":\n\n", resultEvent(m, `{"capabilities":{},"supportedVersions":["2026-07-28"]}`))
		}, mcp.Modern},
		{"B113 a result without versions", rpc(200, `"result":{"capabilities":{}}`), mcp.Legacy},
		{"B113 an unknown resultType", rpc(200, `"result":{"resultType":"vendor","capabilities":{},"supportedVersions":["2026-07-28"]}`), mcp.Legacy},
		{"legacy versions only", rpc(200, `"result":{"capabilities":{},"supportedVersions":["2025-11-25"]}`), mcp.Legacy},
		{"B110 an empty result", rpc(200, `"result":{}`), mcp.Legacy},
		{"B110 a result that is no object", rpc(200, `"result":"ok"`), mcp.Legacy},
		{"B110 -32601", rpc(200, `"error":{"code":-32601,"message":"Method not found"}`), mcp.Legacy},
		{"B110 -32601 with 404", rpc(404, `"error":{"code":-32601,"message":"Method not found"}`), mcp.Legacy},
		{"B110 -32602", rpc(200, `"error":{"code":-32602,"message":"Invalid"}`), mcp.Legacy},
		{"B110 -32000", rpc(400, `"error":{"code":-32000,"message":"Bad Request"}`), mcp.Legacy},
		{"B110 -32600 without an id", reply(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing ID"}}`), mcp.Legacy},
		{"B110 400 and nothing", reply(400, "", ""), mcp.Legacy},
		{"B110 400 and text", reply(400, "text/plain", "no session"), mcp.Legacy},
		{"B110 404 and HTML", reply(404, "text/html", html), mcp.Legacy},
		{"B110 405", reply(405, "", ""), mcp.Legacy},
		{"B110 406", reply(406, "text/plain", ""), mcp.Legacy},
		{"B110 415", reply(415, "text/plain", ""), mcp.Legacy},
		{"B110 200 and HTML", reply(200, "text/html", html), mcp.Legacy},
		{"B110 202 and nothing", reply(202, "", ""), mcp.Legacy},
		{"B110 200 and no JSON-RPC", reply(200, "application/json", `{"Output":null}`), mcp.Legacy},
		{"B110 200 for another id", reply(200, "application/json", `{"jsonrpc":"2.0","id":99,"result":{}}`), mcp.Legacy},
		{"B112 403", reply(403, "text/plain", "no"), mcp.Legacy},
		{"B112 401", reply(401, "", ""), mcp.NoEra},
		{"B112 401 with a challenge", func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}, mcp.NoEra},
		{"B112 401 with a JSON-RPC error", rpc(401, `"error":{"code":-32001,"message":"Unauthorized"}`), mcp.NoEra},
		{"B112 408", reply(408, "", ""), mcp.NoEra},
		{"B112 429", reply(429, "", ""), mcp.NoEra},
		{"B112 429 with a JSON-RPC error", rpc(429, `"error":{"code":-32000,"message":"slow down"}`), mcp.NoEra},
		{"B112 503", reply(503, "text/html", html), mcp.NoEra},
		{"B112 503 with a JSON-RPC error", rpc(503, `"error":{"code":-32603,"message":"too many"}`), mcp.NoEra},
		{"B112 503 with a result", rpc(503, `"result":{"capabilities":{},"supportedVersions":["2026-07-28"]}`), mcp.NoEra},
		{"B112 500 with an empty result", rpc(500, `"result":{}`), mcp.NoEra},
		{"a modern server that misses a header", rpc(400, `"error":{"code":-32020,"message":"Header mismatch"}`), mcp.NoEra},
		{"a modern server that misses a capability", rpc(400, `"error":{"code":-32021,"message":"Missing capability"}`), mcp.NoEra},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if string(m.Method) == "server/discover" {
					tt.discover(w, r, m)
					return
				}
				legacyPeer("2025-11-25", "", nil)(w, r, m)
			})
			c, err := streamable.Dial(t.Context(), p.url, nil)
			if tt.era == mcp.NoEra {
				if err == nil || len(p.seen("initialize")) > 0 {
					t.Fatalf("B112: %v, then %q", err, p.order())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer closeSoon(t, c)
			if info := c.Server(); info.Era != tt.era || tt.era == mcp.Modern && len(p.seen("initialize")) > 0 {
				t.Errorf("taken for %s after %q", info.Era, p.order())
			}
		})
	}
}

func TestRevisionIsAgreedOn(t *testing.T) {
	var refused bool
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if !refused {
			refused = true
			writeJSON(w, 400, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"error":{"code":-32022,"message":"Unsupported","data":{"supported":["2026-07-28"],"requested":"x"}}}`)
			return
		}
		modernPeer(nil)(w, r, m)
	})
	c := dial(t, p.url, nil)
	if info := c.Server(); info.Era != mcp.Modern || info.Revision != "2026-07-28" || len(p.seen("")) != 2 {
		t.Errorf("after a refusal: %v, %q", info, p.order())
	}
	for _, era := range []mcp.Era{mcp.NoEra, mcp.Modern} {
		future := newPeer(t, func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
			writeJSON(w, 400, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"error":{"code":-32022,"message":"Unsupported","data":{"supported":["2030-01-01"]}}}`)
		})
		if _, err := streamable.Dial(t.Context(), future.url, knownEra(era)); !errors.Is(err, session.ErrRevision) || !strings.Contains(err.Error(), "2030-01-01") {
			t.Errorf("a server of the future: %v", err)
		}
	}
	legacyOnly := newPeer(t, func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
		writeJSON(w, 400, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"error":{"code":-32022,"message":"Unsupported","data":{"supported":["2025-11-25"]}}}`)
	})
	if _, err := streamable.Dial(t.Context(), legacyOnly.url, knownEra(mcp.Modern)); !errors.Is(err, session.ErrRevision) {
		t.Errorf("a legacy server taken for a modern one: %v", err)
	}
}

func TestBothFailuresAreTold(t *testing.T) {
	p := newPeer(t, func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "initialize" {
			http.Error(w, "second", http.StatusNotFound)
			return
		}
		http.Error(w, "first", http.StatusBadRequest)
	})
	_, err := streamable.Dial(t.Context(), p.url, nil)
	// B134
	if err == nil || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "second") {
		t.Errorf("B134: %v", err)
	}
	if status, ok := errors.AsType[*streamable.StatusError](err); !ok || status.Status != http.StatusNotFound {
		t.Errorf("B134: %v", err)
	}
}

func TestHandshakeOfALegacyServer(t *testing.T) {
	released := make(chan struct{})
	early := make(chan string, 1)
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch string(m.Method) {
		case "notifications/initialized":
			<-time.After(50 * time.Millisecond)
			close(released)
			w.WriteHeader(http.StatusAccepted)
		case "tools/call":
			select {
			case <-released:
			default:
				early <- "tools/call"
			}
			writeResult(w, m, `{"content":[]}`)
		default:
			legacyPeer("2025-06-18", "s-1", nil)(w, r, m)
		}
	})
	c := dial(t, p.url, nil)
	if _, err := call(t, c, mcp.NoCaller{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-early:
		t.Error("B040: a call overtook notifications/initialized")
	default:
	}
	p.await(t, "GET", 1)
	closeSoon(t, c)
	for _, s := range p.seen("") {
		id, version := s.header.Get("Mcp-Session-Id"), s.header.Get("Mcp-Protocol-Version")
		switch s.method {
		case "server/discover":
			if version != "2026-07-28" || id != "" {
				t.Errorf("the probe has the version %q and the session %q", version, id)
			}
		case "initialize":
			if version != "" || id != "" {
				t.Errorf("B100: initialize has the version %q and the session %q", version, id)
			}
		default:
			// B115, S1.79: on all methods, POST, GET and DELETE.
			if version != "2025-06-18" || id != "s-1" {
				t.Errorf("B115: %s %s has the version %q and the session %q", s.verb, s.method, version, id)
			}
		}
	}
	if n := len(p.seen("DELETE")); n != 1 {
		t.Errorf("S1.80: %d DELETEs", n)
	}
}

func TestVersionsThatAServerAnswers(t *testing.T) {
	for answered, ok := range map[string]bool{
		`"2025-11-25"`: true, `"2025-06-18"`: true, `"2025-03-26"`: true, `"2024-11-05"`: true,
		`"1999-01-01"`: false, `5`: false, `"2026-07-28"`: false, `null`: false,
	} {
		p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if string(m.Method) == "initialize" {
				w.Header().Set("Mcp-Session-Id", "s")
				writeResult(w, m, `{"protocolVersion":`+answered+`,"capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
				return
			}
			legacyPeer("", "", nil)(w, r, m)
		})
		c, err := streamable.Dial(t.Context(), p.url, knownEra(mcp.Legacy))
		if !ok {
			// D1.18, B115: and the session is not left behind.
			if !errors.Is(err, session.ErrRevision) || len(p.seen("DELETE")) != 1 || len(p.seen("notifications/initialized")) != 0 {
				t.Errorf("B115: version %s: %v after %q", answered, err, p.order())
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := `"` + string(c.Server().Revision) + `"`; got != answered {
			t.Errorf("B115: version %s became %s", answered, got)
		}
		closeSoon(t, c)
	}
}

func TestSessionIDsThatAServerNames(t *testing.T) {
	for _, tt := range []struct {
		name, lines string
		ok          bool
		sent        string
	}{
		{"none", "", true, ""},
		{"visible", "Mcp-Session-Id: !a-Z~\n", true, "!a-Z~"},
		{"B106 empty", "Mcp-Session-Id:\n", true, ""},
		{"B106 with a space", "Mcp-Session-Id: a b\n", false, ""},
		{"B106 not ASCII", "Mcp-Session-Id: é\n", false, ""},
		{"B106 two", "Mcp-Session-Id: a\nMcp-Session-Id: b\n", false, ""},
		{"B106 at the limit", "Mcp-Session-Id: " + strings.Repeat("x", 1024) + "\n", true, strings.Repeat("x", 1024)},
		{"B106 64 KiB", "Mcp-Session-Id: " + strings.Repeat("x", 64<<10) + "\n", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent := make(chan string, 10)
			url, _ := wireServer(t, func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
				switch string(m.Method) {
				case "initialize":
					return wholeOnWire(conn, "200 OK", tt.lines, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
				case "notifications/initialized":
					sent <- r.Header.Get("Mcp-Session-Id")
					// D1.19: from no other reply.
					return wholeOnWire(conn, "202 Accepted", "Mcp-Session-Id: other\n", "")
				case "tools/call":
					sent <- r.Header.Get("Mcp-Session-Id")
					return wholeOnWire(conn, "200 OK", "Mcp-Session-Id: other\n", `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{}}`)
				}
				return wholeOnWire(conn, "405 Method Not Allowed", "", "")
			})
			c, err := streamable.Dial(t.Context(), url, knownEra(mcp.Legacy))
			if !tt.ok {
				if err == nil || !strings.Contains(err.Error(), "session id") || len(err.Error()) > 1000 {
					t.Fatalf("B106: %.300v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer closeSoon(t, c)
			for range 2 {
				if _, err := call(t, c, mcp.NoCaller{}); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				if got := await(t, sent); got != tt.sent {
					t.Errorf("D1.19: the session was called %.50q, want %.50q", got, tt.sent)
				}
			}
		})
	}
}

func TestServerThatIsNoMCPServer(t *testing.T) {
	for kind, body := range map[string]string{"text/html": "<html><body>hello</body></html>", "text/plain": "hello", "": ""} {
		p := newPeer(t, func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
			w.Header()["Content-Type"] = nil
			if kind != "" {
				w.Header().Set("Content-Type", kind)
			}
			_, _ = w.Write([]byte(body))
		})
		began := time.Now()
		_, err := streamable.Dial(t.Context(), p.url, nil)
		if err != nil && strings.Contains(err.Error(), "before that") {
			t.Errorf("%q: the same is told twice: %v", kind, err)
		}
		if err == nil || !strings.Contains(err.Error(), kind) || body != "" && !strings.Contains(err.Error(), "hello") {
			t.Errorf("B062, S1.91: %s: %v", kind, err)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("B062: %s took %v", kind, took)
		}
	}
}

func TestConnectingIsBounded(t *testing.T) {
	silent := func(conn net.Conn, _ *http.Request, _ *jsonrpc.Message) bool {
		_, _ = conn.Read(make([]byte, 1)) // until the other side goes
		return false
	}
	half := func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
		return onWire(conn, "HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 100\n", "{") && silent(conn, r, m)
	}
	openStream := func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
		return onWire(conn, "HTTP/1.1 200 OK\nContent-Type: text/event-stream\n", ":\n\n") && silent(conn, r, m)
	}
	initializing := func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
		if string(m.Method) == "server/discover" {
			return wholeOnWire(conn, "404 Not Found", "", "")
		}
		return silent(conn, r, m)
	}
	acknowledging := func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
		switch string(m.Method) {
		case "initialize":
			return wholeOnWire(conn, "200 OK", "Mcp-Session-Id: s\n", `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		case "server/discover":
			return wholeOnWire(conn, "404 Not Found", "", "")
		}
		return silent(conn, r, m)
	}
	for name, answer := range map[string]func(net.Conn, *http.Request, *jsonrpc.Message) bool{
		"B061 silence": silent, "B061 half a reply": half, "B061 a stream and nothing in it": openStream,
		"B061 silence at initialize": initializing, "B061 silence at initialized, and at DELETE": acknowledging,
	} {
		for _, byContext := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, context %v", name, byContext), func(t *testing.T) {
				t.Parallel()
				url, _ := wireServer(t, answer)
				const limit = 200 * time.Millisecond
				ctx, opts := t.Context(), &streamable.DialOptions{}
				if byContext {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, limit)
					defer cancel()
				} else {
					opts.HandshakeTimeout = limit
				}
				began := time.Now()
				_, err := streamable.Dial(ctx, url, opts)
				// The DELETE is bounded as well. Without a bound there is no end.
				if took := time.Since(began); took > patience {
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

func TestServerThatIsNotThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + listener.Addr().String() + "/mcp?key=hidden-secret"
	_ = listener.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := newPeer(t, modernPeer(nil))
	for name, url := range map[string]string{
		"nobody listens":          nobody,
		"no such name":            "http://no-such-host.invalid/mcp?key=hidden-secret",
		"an unknown certificate":  secure.URL + "/mcp?key=hidden-secret",
		"no TLS where TLS is due": strings.Replace(plain.url, "http:", "https:", 1) + "?key=hidden-secret",
	} {
		_, err := streamable.Dial(t.Context(), url, nil)
		e, ok := errors.AsType[*mcp.CallError](err)
		if !ok || e.Kind != mcp.Unreachable || e.Outcome != mcp.NotSent {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "hidden-secret") {
			t.Errorf("D1.26: %s: %v", name, err)
		}
	}
	// Over TLS that is trusted.
	roots := secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	trusting := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer trusting.CloseIdleConnections()
	_, err = streamable.Dial(t.Context(), secure.URL, &streamable.DialOptions{Transport: trusting})
	if status, ok := errors.AsType[*streamable.StatusError](err); !ok || status.Status != 404 {
		t.Errorf("a trusted server: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "mcp", "ftp://h/mcp", "http://", "http:///mcp", "://x", "http://h:port/", "\x00", "ws://h/mcp"} {
		if c, err := streamable.Dial(t.Context(), address, nil); err == nil {
			t.Errorf("%q is taken for an address", address)
			_ = c.Close()
		}
	}
}

func TestServerInfo(t *testing.T) {
	p := newPeer(t, legacyPeer("2025-03-26", "", nil))
	c := dial(t, p.url, &streamable.DialOptions{DialOptions: transport.DialOptions{Client: []byte(`{"name":"me","version":"2"}`), Capabilities: []byte(`{"roots":{}}`)}})
	info := c.Server()
	want := `{"resultType":"complete","supportedVersions":["2025-03-26"],"capabilities":{"tools":{"listChanged":true},"logging":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"peer","version":"1"}}}`
	if diff := cmp.Diff(want, string(info.Discover.Raw())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if body := p.seen("initialize")[0].body; !strings.Contains(body, `"clientInfo":{"name":"me","version":"2"}`) || !strings.Contains(body, `"capabilities":{"roots":{}}`) {
		t.Errorf("initialize says %s", body)
	}
	if body := p.seen("server/discover")[0].body; !strings.Contains(body, `"io.modelcontextprotocol/clientInfo":{"name":"me","version":"2"}`) {
		t.Errorf("server/discover says %s", body)
	}
}

// TestOutageIsNoVerdict_B112: a bridge whose server could not say at first what it is
// takes it for what it is later.
func TestOutageIsNoVerdict_B112(t *testing.T) {
	for _, tt := range []struct {
		status int
		era    mcp.Era
	}{{http.StatusUnauthorized, mcp.Modern}, {http.StatusTooManyRequests, mcp.Legacy}, {http.StatusServiceUnavailable, mcp.Modern}} {
		t.Run(fmt.Sprint(tt.status, " ", tt.era), func(t *testing.T) {
			served := map[mcp.Era]answerer{mcp.Modern: modernPeer(nil), mcp.Legacy: legacyPeer("2025-11-25", "", nil)}[tt.era]
			var asked atomic.Int64
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case asked.Add(1) == 1:
					w.WriteHeader(tt.status)
				case string(m.Method) == "tools/list":
					writeResult(w, m, `{"tools":[]}`)
				default:
					served(w, r, m)
				}
			})
			pool := transport.NewPool(func(ctx context.Context, _ *mcp.Metadata) (transport.Edge, error) {
				return streamable.Dial(ctx, p.url, nil)
			}, transport.PoolOptions{})
			t.Cleanup(func() { _ = pool.Close() })
			list := func() error {
				_, err := pool.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListTools, Meta: mcp.Metadata{Revision: mcp.NewestModern}}, mcp.NoCaller{})
				return err
			}
			if err := list(); mcp.OutcomeOf(err) != mcp.NotSent || len(p.seen("initialize")) > 0 {
				t.Fatalf("the first call: %v, after %q", err, p.order())
			}
			eventually(t, func() bool { return list() == nil })
			if handshakes := len(p.seen("initialize")); (handshakes > 0) != (tt.era == mcp.Legacy) {
				t.Errorf("%d handshakes: %q", handshakes, p.order())
			}
		})
	}
}
