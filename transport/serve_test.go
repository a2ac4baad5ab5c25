package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// serve serves handler to a peer until the test ends.
func serve(t *testing.T, handler mcp.Handler, opts transport.ServeOptions) (*peer, *served) {
	t.Helper()
	link, p := newLink(t, transport.LineOptions{MaxLine: 1 << 20})
	s := serveLink(t, link, handler, opts)
	t.Cleanup(func() { _ = p.conn.Close() })
	return p, s
}

// A served is a running Serve.
type served struct {
	done   chan struct{}
	cancel context.CancelFunc
	err    error
}

func serveLink(t *testing.T, link transport.Link, handler mcp.Handler, opts transport.ServeOptions) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{done: make(chan struct{}), cancel: cancel}
	if opts.Drain == 0 {
		opts.Drain = 200 * time.Millisecond
	}
	go func() {
		defer close(s.done)
		s.err = transport.Serve(ctx, link, handler, opts)
	}()
	t.Cleanup(func() {
		cancel()
		<-s.done
	})
	return s
}

// A server is a handler that answers what the tests of Serve ask.
type server struct {
	calls    atomic.Int32 // of tools
	notified chan string  // methods
	slow     chan struct{}
	release  chan struct{} // lets slow tools end
}

func newServer() *server {
	return &server{notified: make(chan string, 1000), slow: make(chan struct{}, 1000), release: make(chan struct{})}
}

func (s *server) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Notification {
		s.notified <- req.Method + " " + string(req.Params.Raw())
		return mcp.Result{}, errors.New("not answered")
	}
	switch req.Method {
	case mcp.MethodDiscover:
		return mcp.RawResult([]byte(discovered)), nil
	case mcp.MethodCallTool:
		s.calls.Add(1)
		return s.call(ctx, req, caller)
	case "ping", "tools/list":
		return mcp.RawResult([]byte(`{"tools":[]}`)), nil
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
}

func (s *server) call(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	name, _ := req.Params.LookupString("name")
	switch name {
	case "panic":
		panic("a tool panics")
	case "secret":
		return mcp.Result{}, errors.New("secret")
	case "nothing":
		return mcp.Result{}, nil
	case "slow":
		s.slow <- struct{}{}
		select {
		case <-s.release:
		case <-ctx.Done():
			return mcp.Result{}, ctx.Err()
		}
	case "ask":
		s.slow <- struct{}{}
		return caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte("{}"))})
	}
	arguments := req.Params.Get("arguments")
	if arguments.IsZero() {
		arguments = jsonrpc.Trusted([]byte(`"absent"`))
	}
	return mcp.RawResult([]byte(`{"arguments":` + string(arguments.Raw()) + `}`)), nil
}

const (
	initLine        = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}}}}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	modernMetaJSON  = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

// handshakeWith makes the handshake of a legacy client.
func (p *peer) handshakeWith(revision mcp.Revision) {
	p.t.Helper()
	p.say(strings.Replace(initLine, "2025-06-18", string(revision), 1))
	if line := p.line(); !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"`+string(revision)) {
		p.t.Fatalf("initialize was answered by %s", line)
	}
	p.say(initializedLine)
}

// TestLegacyLines feeds lines to a listener within a legacy session and looks at
// what comes back before the answer to a ping that follows.
func TestLegacyLines(t *testing.T) {
	parseError, invalid := `"error":{"code":-32700,`, `"error":{"code":-32600,`
	for _, tt := range []struct {
		name, line string
		want       []string // beginnings
	}{
		{"S2.31 blank lines", "\n  \n\t\r", nil},
		{"S2.30 CRLF", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\r", []string{`{"jsonrpc":"2.0","id":1,"result":`}},
		{"S2.17 S2.32 no JSON", "{oops", []string{`{"jsonrpc":"2.0",` + parseError}},
		{"B013 invalid UTF-8", "\xff\xfe", []string{`{"jsonrpc":"2.0",` + parseError}},
		{"B013 invalid UTF-8 in a request", `{"jsonrpc":"2.0","id":1,"method":"` + "\xff" + `"}`, []string{`{"jsonrpc":"2.0","id":1,` + parseError}},
		{"B013 B014 invalid UTF-8 in an id", `{"jsonrpc":"2.0","id":"` + "\xe9" + `","method":"tools/list"}`, []string{`{"jsonrpc":"2.0",` + parseError}},
		{"D2.5 a number", "42", []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B005 null", "null", []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B005 a log line", `{"level":"info"}`, []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B005 jsonrpc 1.0", `{"jsonrpc":"1.0","id":4,"method":"ping"}`, []string{`{"jsonrpc":"2.0","id":4,` + invalid}},
		{"B005 no jsonrpc", `{"id":5,"method":"ping"}`, []string{`{"jsonrpc":"2.0","id":5,` + invalid}},
		{"B022 null id", `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B023 fraction", `{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B023 huge", `{"jsonrpc":"2.0","id":1e400,"method":"tools/list"}`, []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B023 boolean", `{"jsonrpc":"2.0","id":true,"method":"tools/list"}`, []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B023 array", `{"jsonrpc":"2.0","id":[1],"method":"tools/list"}`, []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B023 long", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 100_000) + `","method":"tools/list"}`, []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B023 a cancellation", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, nil},
		{"B020 strings are not numbers", `{"jsonrpc":"2.0","id":"001","method":"tools/list"}`, []string{`{"jsonrpc":"2.0","id":"001","result":`}},
		{"B025 members in another order", `{"method":"tools/call","params":{"name":"x","arguments":{"id":7}},"jsonrpc":"2.0","id":42}`,
			[]string{`{"jsonrpc":"2.0","id":42,"result":{"arguments":{"id":7}}}`}},
		{"B028 duplicates", `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}`, []string{`{"jsonrpc":"2.0","id":1,` + invalid}},
		{"B029 deep nesting", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`,
			[]string{`{"jsonrpc":"2.0","id":1,"error":`}},
		{"B034 unknown method", `{"jsonrpc":"2.0","id":4,"method":"nonexistent/x","params":{}}`, []string{`{"jsonrpc":"2.0","id":4,"error":{"code":-32601,`}},
		{"B034 malformed notification", `{"jsonrpc":"2.0","method":"notifications/initialized","params":5}`, nil},
		{"B035 a request without id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}`, nil},
		{"B031 no arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, []string{`{"jsonrpc":"2.0","id":1,"result":{"arguments":"absent"}}`}},
		{"B031 null arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":null}}`, []string{`{"jsonrpc":"2.0","id":1,"result":{"arguments":null}}`}},
		{"D2.1 S2.14 an empty result", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}`, []string{`{"jsonrpc":"2.0","id":1,"result":{}}`}},
		{"D2.2 S2.18 an error keeps the id", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"secret"}}`,
			[]string{`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}}`}},
		{"S2.81 R43 a panic is one failed request", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"panic"}}`,
			[]string{`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}}`}},
		{"B002 S2.43 a line over the limit", strings.Repeat("x", 1<<20+1), []string{`{"jsonrpc":"2.0",` + parseError}},
		{"a response to nothing", `{"jsonrpc":"2.0","id":99,"result":{}}`, nil},
		{"B137 a response with a bad id", `{"jsonrpc":"2.0","id":{},"result":{}}`, nil},
		{"B037 a batch in 2025-06-18", `[{"jsonrpc":"2.0","id":2,"method":"ping"}]`,
			[]string{`{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request: batches are part of revision 2025-03-26 only"`}},
		{"D2.4 an empty batch", `[]`, []string{`{"jsonrpc":"2.0",` + invalid}},
		{"B007 a byte order mark", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{`{"jsonrpc":"2.0","id":1,"result":`}},
		{"B008 Content-Length", "Content-Length: 46\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{`{"jsonrpc":"2.0","id":1,"result":`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer()
			p, _ := serve(t, s, transport.ServeOptions{})
			p.handshakeWith(mcp.Revision20250618)
			p.say(tt.line)
			for _, want := range tt.want {
				if got := p.line(); !strings.HasPrefix(got, want) {
					t.Errorf("got %.200s, want %s", got, want)
				}
			}
			p.say(`{"jsonrpc":"2.0","id":"after","method":"ping"}`)
			if got := p.line(); got != `{"jsonrpc":"2.0","id":"after","result":{}}` {
				t.Errorf("got %.200s", got)
			}
			if strings.HasPrefix(tt.name, "B035") && s.calls.Load() != 0 {
				t.Error("the tool was called")
			}
		})
	}
}

func TestModernLines(t *testing.T) {
	modern := func(id, method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":{%s%s}}`, id, method, params, modernMetaJSON)
	}
	for _, tt := range []struct {
		name, line string
		era        mcp.Era // of the listener
		want       string  // beginning
	}{
		{"a call", modern("1", "tools/call", `"name":"x",`), mcp.NoEra, `{"jsonrpc":"2.0","id":1,"result":{"arguments":"absent","resultType":"complete"}}`},
		{"a list gets caching hints", modern(`"a"`, "tools/list", ""), mcp.NoEra,
			`{"jsonrpc":"2.0","id":"a","result":{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}}`},
		{"discover lists what is served", modern("1", "server/discover", ""), mcp.NoEra,
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25",`},
		{"discover of a modern listener", modern("1", "server/discover", ""), mcp.Modern,
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],`},
		{"B110 discover of a legacy listener", modern("1", "server/discover", ""), mcp.Legacy, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"discover without _meta", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, mcp.NoEra, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},
		{"discover with an empty _meta", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{}}}`, mcp.NoEra, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},
		{"a call without _meta at a modern listener", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, mcp.Modern, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},
		{"a call without _meta, before initialize", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, mcp.NoEra, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"without capabilities", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, mcp.NoEra,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},
		{"an unknown revision", strings.Replace(modern("1", "tools/list", ""), "2026-07-28", "2031-01-01", 1), mcp.NoEra,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2031-01-01"}}}`},
		{"a legacy revision", strings.Replace(modern("1", "tools/list", ""), "2026-07-28", "2025-11-25", 1), mcp.Modern,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}`},
		{"initialize at a modern listener", initLine, mcp.Modern,
			`{"jsonrpc":"2.0","id":"init","error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2025-06-18"}}}`},
		{"a legacy method", modern("1", "ping", ""), mcp.NoEra, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,`},
		{"a notification's name", modern("1", "notifications/cancelled", ""), mcp.NoEra, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,`},
		{"a level that is none", strings.Replace(modern("1", "tools/list", ""), `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"loud",`, 1), mcp.NoEra,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},
		{"B148 resource not found", modern("1", "tools/call", `"name":"secret",`), mcp.NoEra, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,`},
		{"B037 a batch", `[` + modern("1", "tools/list", "") + `]`, mcp.NoEra, `{"jsonrpc":"2.0","error":{"code":-32600,`},
		{"B116 initialize of an unknown revision", strings.Replace(initLine, "2025-06-18", "2099-01-01", 1), mcp.NoEra,
			`{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25",`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := serve(t, newServer(), transport.ServeOptions{Era: tt.era})
			p.say(tt.line)
			if got := p.line(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestBatchesOf20250326_B037_B038_D23_S234_S236(t *testing.T) {
	s := newServer()
	p, _ := serve(t, s, transport.ServeOptions{})
	// Before the handshake is over the revision is not known; a client may send on.
	p.say(strings.Replace(initLine, "2025-06-18", "2025-03-26", 1),
		`[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":3,"method":"tools/list"},`+
			`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"panic"}},1,[],`+
			strings.Replace(initLine, `"init"`, "5", 1)+`]`)
	got := make(map[string]string)
	for range 7 {
		line := p.line()
		id, code := "none", "result"
		m := new(jsonrpc.Message)
		if err := jsonrpc.Scan([]byte(line), m); err != nil {
			t.Fatal(err)
		}
		if !m.ID.IsZero() {
			id = m.ID.String()
		}
		if m.Failed {
			code = fmt.Sprint(jsonrpc.ReadError(&m.Body).Code)
		}
		got[id] += code
	}
	want := map[string]string{`"init"`: "result", "2": "result", "3": "result", "4": "-32603", "none": "-32600-32600", "5": "-32600"}
	for id, w := range want {
		if got[id] != w {
			t.Errorf("%s: %q, want %q", id, got[id], w)
		}
	}
	for _, line := range []string{`[]`, `[` + strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/x"},`, 100) + `1]`} {
		p.say(line)
		if got := p.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","error":{"code":-32600,`) {
			t.Errorf("got %s", got)
		}
	}
	p.say(`[{"jsonrpc":"2.0","method":"notifications/y"}]`)
	for _, want := range []string{"notifications/x ", "notifications/y "} {
		if got := receive(t, "the notification", s.notified); got != want {
			t.Errorf("notified of %s", got)
		}
	}
}

// TestPlainMode is JSON-RPC as it is, for any handler (S2).
func TestPlainMode_S212_D24(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"a request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`},
		{"S2.17 no JSON", `{oops`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"an invalid notification", `{"jsonrpc":"2.0","method":1,"params":"bar"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"D2.4 an empty batch", `[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"a batch of what is none", `[1,2]`, `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"D2.3 S2.34 a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"panic"}},{"jsonrpc":"2.0","id":"3","method":"y"}]`,
			`[{"jsonrpc":"2.0","id":1,"result":{"tools":[]}},{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error"}},{"jsonrpc":"2.0","id":"3","error":{"code":-32601,"message":"Method not found"}}]`},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,`},
		{"S2.36 a batch of notifications", `[{"jsonrpc":"2.0","method":"x"}]` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,`},
		{"D2.2 a failing notification", `{"jsonrpc":"2.0","method":"x"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := serve(t, newServer(), transport.ServeOptions{Plain: true, Ordered: true})
			p.say(tt.line)
			if got := p.line(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func slowCall(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"slow",` + modernMetaJSON + `}}`
}

func TestConcurrencyIsLimited_D28(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts transport.ServeOptions
		run  int
	}{
		{"default", transport.ServeOptions{}, transport.DefaultMaxInFlight},
		{"configured", transport.ServeOptions{MaxInFlight: 3}, 3},
		{"S2.38 ordered", transport.ServeOptions{Ordered: true}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.MaxQueued = 10
			s := newServer()
			p, _ := serve(t, s, tt.opts)
			for i := range tt.run + 10 {
				p.say(slowCall(fmt.Sprint(i)))
			}
			for range tt.run {
				receive(t, "a call", s.slow)
			}
			p.say(slowCall(`"too many"`))
			if got := p.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"too many","error":{"code":-32603,`) ||
				!strings.Contains(got, `"mcpsplice":{"kind":"limit exceeded","outcome":"not sent","limit":"MaxQueued"}`) {
				t.Errorf("got %s", got)
			}
			if n := s.calls.Load(); n != int32(tt.run) {
				t.Errorf("%d run", n)
			}
			close(s.release)
			var ids []string
			for range tt.run + 10 {
				ids = append(ids, p.message().ID.String())
			}
			if tt.run == 1 && strings.Join(ids, ",") != "0,1,2,3,4,5,6,7,8,9,10" {
				t.Errorf("answered %v", ids)
			}
		})
	}
}

func TestIDInFlightTwice_B026(t *testing.T) {
	s := newServer()
	p, _ := serve(t, s, transport.ServeOptions{})
	p.say(slowCall("1"))
	receive(t, "the first", s.slow)
	p.say(slowCall("1"))
	if got := p.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`) {
		t.Errorf("got %s", got)
	}
	p.say(slowCall(`"1"`)) // B020: another id
	receive(t, "the other", s.slow)
	close(s.release)
	if a, b := p.message(), p.message(); a.Failed || b.Failed || a.ID.Key() == b.ID.Key() {
		t.Errorf("got %s and %s", a.ID, b.ID)
	}
}

func TestCancellation_S226(t *testing.T) {
	cancel := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
	}
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			s := newServer()
			p, _ := serve(t, s, transport.ServeOptions{Ordered: true})
			request := slowCall
			if era == mcp.Legacy {
				p.handshakeWith(mcp.Revision20250618)
				request = func(id string) string {
					return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"slow"}}`
				}
			}
			// One that runs, and one that waits for it: neither is answered. A
			// cancellation may be right behind its request.
			p.say(request("1"), request("2"), cancel("2"), cancel(`"1"`), cancel("99"))
			receive(t, "the first", s.slow)
			p.say(cancel("1"), request("3"))
			receive(t, "the third", s.slow)
			close(s.release)
			if got := p.message(); got.ID.String() != "3" || got.Failed {
				t.Errorf("got %s", got.ID)
			}
			if n := s.calls.Load(); n != 2 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestQuestionsWhileTheLimitIsReached: behind requests that wait there is the
// answer that the running one waits for.
func TestQuestionsWhileTheLimitIsReached(t *testing.T) {
	p, _ := serve(t, newServer(), transport.ServeOptions{Ordered: true})
	p.handshakeWith(mcp.Revision20250618)
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}`
	p.say(fmt.Sprintf(call, 1, "ask"), fmt.Sprintf(call, 2, "x"), fmt.Sprintf(call, 3, "x"))
	question := p.expect(mcp.MethodElicit)
	p.answer(question, `{"action":"accept"}`)
	for i, want := range []string{`{"action":"accept"}`, `{"arguments":"absent"}`, `{"arguments":"absent"}`} {
		if m := p.message(); m.ID.String() != fmt.Sprint(i+1) || string(m.Body.Raw()) != want {
			t.Errorf("got %s %s", m.ID, m.Body.Raw())
		}
	}
}

func TestNotificationsKeepTheirOrder(t *testing.T) {
	s := newServer()
	p, _ := serve(t, s, transport.ServeOptions{})
	p.handshakeWith(mcp.Revision20250618)
	for i := range 200 {
		p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"i":%d}}`, i))
	}
	for i := range 200 {
		if got := receive(t, "a notification", s.notified); got != fmt.Sprintf(`notifications/vendor {"i":%d}`, i) {
			t.Fatalf("%d: %s", i, got)
		}
	}
}

// TestPipelinedHandshake: a script writes all that it has to say at once.
func TestPipelinedHandshake_S228_D26(t *testing.T) {
	p, s := serve(t, newServer(), transport.ServeOptions{})
	p.say(initLine, initializedLine, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if m := p.message(); m.ID.String() != `"init"` || m.Failed {
		t.Errorf("got %s %s", m.ID, m.Body.Raw())
	}
	if m := p.message(); m.ID.String() != `1` || m.Failed {
		t.Errorf("got %s %s", m.ID, m.Body.Raw())
	}
	_ = p.conn.Close()
	receive(t, "the end", s.done)
	if s.err != nil {
		t.Error(s.err)
	}
}

func TestContextDrains_D210_S242(t *testing.T) {
	s := newServer()
	p, running := serve(t, s, transport.ServeOptions{Drain: patience})
	p.handshakeWith(mcp.Revision20250618)
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}`
	p.say(fmt.Sprintf(call, 1, "slow"), fmt.Sprintf(call, 2, "ask"))
	receive(t, "a call", s.slow)
	receive(t, "a call", s.slow)
	question := p.expect(mcp.MethodElicit)
	running.cancel()
	// No new work is taken, but the client can still answer.
	for {
		p.say(fmt.Sprintf(call, 3, "x"))
		if m := p.message(); m.Failed {
			if !strings.Contains(string(m.Body.Raw()), `"outcome":"not sent"`) {
				t.Errorf("refused with %s", m.Body.Raw())
			}
			break
		}
	}
	p.answer(question, `{"action":"decline"}`)
	if m := p.message(); m.ID.String() != "2" || string(m.Body.Raw()) != `{"action":"decline"}` {
		t.Errorf("got %s %s", m.ID, m.Body.Raw())
	}
	close(s.release)
	if m := p.message(); m.ID.String() != "1" || m.Failed {
		t.Errorf("got %s %s", m.ID, m.Body.Raw())
	}
	receive(t, "the end", running.done)
	if running.err != nil || p.line() != "" {
		t.Errorf("err %v", running.err)
	}
}

// TestDrainIsBounded also for handlers that do not obey their context.
func TestDrainIsBounded_S242_P8(t *testing.T) {
	for _, obeys := range []bool{true, false} {
		t.Run(fmt.Sprint("obeys ", obeys), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				handler := mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
					if obeys {
						<-ctx.Done()
						return mcp.Result{}, ctx.Err()
					}
					<-release
					return mcp.Result{}, nil
				})
				link, p := newLink(t, transport.LineOptions{})
				p.patience = time.Hour
				done := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { done <- transport.Serve(ctx, link, handler, transport.ServeOptions{Drain: 5 * time.Second}) }()
				p.say(slowCall("1"))
				synctest.Wait()
				cancel()
				began := time.Now()
				if obeys {
					if m := p.message(); !m.Failed || m.ID.String() != "1" {
						t.Errorf("got %s", m.Body.Raw())
					}
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
					t.Errorf("took %v", took)
				}
				close(release)
			})
		})
	}
}

// TestEndOfInputDrains: what was read is answered, however late, and a client
// that has stopped sending is not waited for with a question.
func TestEndOfInputDrains_D26_S242(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	link := transport.NewLineLink(in, out, func() error { return errors.Join(in.Close(), out.Close()) }, transport.LineOptions{})
	s := newServer()
	running := serveLink(t, link, s, transport.ServeOptions{Drain: patience})
	output := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(fromServer)
		output <- string(text)
	}()
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}`
	large := strings.Repeat("x", 1<<20)
	_, err := io.WriteString(toServer, strings.Join([]string{initLine, initializedLine,
		fmt.Sprintf(call, 1, "slow"), fmt.Sprintf(call, 2, "ask"),
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"a":"` + large + `"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`}, "\n")) // and no newline
	if err != nil {
		t.Fatal(err)
	}
	receive(t, "a call", s.slow)
	receive(t, "a call", s.slow)
	if err := toServer.Close(); err != nil {
		t.Fatal(err)
	}
	close(s.release)
	text := receive(t, "all output", output)
	for _, want := range []string{`"id":1,"result"`, `"id":2,"error"`, `"id":3,"result":{"arguments":{"a":"` + large + `"}}`, `"id":4,"result"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%.60s is missing in %.300s", want, text)
		}
	}
	receive(t, "the end", running.done)
	if running.err != nil {
		t.Error(running.err)
	}
}

// A patientLink tells whether there is time for what is still to be written.
type patientLink struct {
	transport.Link

	flushed chan error
}

func (l *patientLink) Flush(ctx context.Context) error {
	l.flushed <- ctx.Err()
	return nil
}

// A terminalLink is a link that nothing unblocks but its user.
type terminalLink struct {
	transport.Link
	typed  chan struct{}
	closes bool // while it is read
}

func (l *terminalLink) Read() ([]byte, error) {
	<-l.typed
	return nil, io.EOF
}

func (l *terminalLink) Close() error {
	if !l.closes {
		<-l.typed
	}
	return l.Link.Close()
}

// TestServeReturnsAlthoughItsLinkCannotBeClosed_D210: as a console of Windows, or nobody
// can be unblocked who reads from it.
func TestServeReturnsAlthoughItsLinkCannotBeClosed_D210(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			link, _ := newLink(t, transport.LineOptions{})
			terminal := &terminalLink{link, make(chan struct{}), closes}
			s := serveLink(t, terminal, new(server), transport.ServeOptions{})
			synctest.Wait()
			s.cancel()
			<-s.done // or the bubble is deadlocked
			if s.err != nil {
				t.Errorf("closes %t: got %v", closes, s.err)
			}
			close(terminal.typed)
		})
	}
}

// A lastLink is a link whose only request comes when its Serve is to end.
type lastLink struct {
	transport.Link
	request string
	end     func()
}

func (l *lastLink) Read() ([]byte, error) {
	if l.request == "" {
		return l.Link.Read()
	}
	request := []byte(l.request)
	l.request = ""
	l.end()
	return request, nil
}

// TestRequestThatComesWithTheEndIsNotServed_D210, whether or not the end has been noticed:
// it is refused as not sent, if the link is not closed by then.
func TestRequestThatComesWithTheEndIsNotServed_D210(t *testing.T) {
	for range 50 {
		plain, p := newLink(t, transport.LineOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		link := &lastLink{plain, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fast",` + modernMetaJSON + `}}`, cancel}
		s := newServer()
		done := make(chan error, 1)
		go func() { done <- transport.Serve(ctx, link, s, transport.ServeOptions{}) }()
		got := p.line()
		if err := receive(t, "the end of Serve", done); err != nil {
			t.Error(err)
		}
		if got != "" && !strings.Contains(got, `"outcome":"not sent"`) || s.calls.Load() != 0 {
			t.Fatalf("it is answered with %s after %d calls", got, s.calls.Load())
		}
	}
}

// TestRequestsAreOfWhoeverIsServed: the one that the options name, in either era.
func TestRequestsAreOfWhoeverIsServed_B155(t *testing.T) {
	opts := transport.ServeOptions{Principal: mcp.Principal{Issuer: "i", Subject: "ann"}, Grant: "g"}
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		came := make(chan mcp.Metadata, 1)
		p, _ := serve(t, mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools {
				came <- mcp.Metadata{Principal: req.Meta.Principal, Grant: req.Meta.Grant}
			}
			return mcp.RawResult([]byte(`{"tools":[],"capabilities":{}}`)), nil
		}), opts)
		listed(p, era, "c", `{}`)
		if got := receive(t, "the list", came); got.Principal != opts.Principal || got.Grant != opts.Grant {
			t.Errorf("%v: of %v under %q", era, got.Principal, got.Grant)
		}
	}
}

// TestRequestThatIsReadAfterTheEndIsNotTaken, though nobody has noticed the end yet. If
// there is time left, its client is told so.
func TestRequestThatIsReadAfterTheEndIsNotTaken(t *testing.T) {
	for i := range 20 {
		var s *served // set before anything is read
		handler := newServer()
		link, p := newLink(t, transport.LineOptions{Tap: func(outgoing bool, _ []byte) {
			if !outgoing {
				s.cancel()
			}
		}})
		hold := &heldLink{Link: link, begin: make(chan struct{})}
		s = serveLink(t, hold, handler, transport.ServeOptions{Ordered: i%2 == 0})
		close(hold.begin)
		p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fast",` + modernMetaJSON + `}}`)
		if got := p.line(); got != "" && (!strings.Contains(got, `"id":1,"error":`) || !strings.Contains(got, `"outcome":"not sent"`)) {
			t.Errorf("answered %s", got)
		}
		receive(t, "the end", s.done)
		if n := handler.calls.Load(); n != 0 {
			t.Errorf("%d calls are made", n)
		}
	}
}

// A heldLink is read once begin is closed.
type heldLink struct {
	transport.Link
	begin chan struct{}
}

func (l *heldLink) Read() ([]byte, error) {
	<-l.begin
	return l.Link.Read()
}

func TestLongestDrain(t *testing.T) {
	plain, p := newLink(t, transport.LineOptions{})
	link := &patientLink{plain, make(chan error, 1)}
	serveLink(t, link, newServer(), transport.ServeOptions{Drain: math.MaxInt64})
	_ = p.conn.Close()
	if err := receive(t, "the end", link.flushed); err != nil {
		t.Errorf("the last messages have no time: %v", err)
	}
}

// TestClientThatTakesNothingMore: nothing is executed for a client that cannot
// be answered.
func TestClientThatTakesNothingMore_B047_D29(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	link := transport.NewLineLink(in, out, func() error { return errors.Join(in.Close(), out.Close()) }, transport.LineOptions{})
	s := newServer()
	running := serveLink(t, link, s, transport.ServeOptions{Drain: time.Hour})
	if _, err := io.WriteString(toServer, slowCall("1")+"\n"); err != nil {
		t.Fatal(err)
	}
	receive(t, "the call", s.slow)
	if err := fromServer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(toServer, `{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	receive(t, "the end", running.done) // the slow call was cancelled
	if running.err != nil {
		t.Error(running.err)
	}
}

func TestPanicsAreLogged_R43(t *testing.T) {
	var log journal
	p, _ := serve(t, newServer(), transport.ServeOptions{Logger: log.logger()})
	p.say(strings.Replace(slowCall("1"), "slow", "panic", 1))
	p.line()
	if !strings.Contains(log.String(), "a tool panics") || !strings.Contains(log.String(), "serve_test.go") {
		t.Errorf("logged %s", log.String())
	}
}

// TestFramesStayWhole_S241: one write per frame, from many goroutines.
func TestFramesStayWhole_S241_S244(t *testing.T) {
	p, _ := serve(t, newServer(), transport.ServeOptions{MaxQueued: 1000})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 500 {
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","arguments":{"a":"%s"},%s}}`,
				i, strings.Repeat("é", i), modernMetaJSON))
		}
	})
	seen := make(map[string]bool)
	for range 500 {
		m := p.message()
		i, _ := m.ID.Int()
		if want := fmt.Sprintf(`{"arguments":{"a":"%s"},"resultType":"complete"}`, strings.Repeat("é", int(i))); string(m.Body.Raw()) != want {
			t.Errorf("got %s", m.Body.Raw())
		}
		seen[m.ID.Key()] = true
	}
	wg.Wait()
	if len(seen) != 500 {
		t.Errorf("%d ids", len(seen))
	}
}
