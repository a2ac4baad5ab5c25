package streamable_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// counting counts the calls that reach a handler, but for those that a
// session keeps open.
func counting(handler mcp.Handler, calls chan<- string) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodDiscover && req.Method != mcp.MethodListen {
			calls <- req.Method
		}
		return handler.Handle(ctx, req, caller)
	})
}

// drained returns how many messages wait in c.
func drained(c <-chan string) (n int) {
	for {
		select {
		case <-c:
			n++
		default:
			return n
		}
	}
}

// TestMessages posts one message in each era. A status of 0 stands for the one
// before it.
func TestMessages(t *testing.T) {
	calls := make(chan string, 10)
	b := serving(t, counting(echo, calls), strictServer(t))
	session := b.initialize(t, "2025-11-25")
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct {
		name, body     string // $ stands for the era's metadata
		modern, legacy int    // statuses
		contains       string
		called         string // by which eras the handler is reached
	}{
		{"B007 a byte order mark", "\xEF\xBB\xBF" + `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$}}`, 200, 200, `"id":1,"result"`, "both"},
		{"white space around", " \r\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$}}` + "\n\n", 200, 200, `"id":1,"result"`, "both"},
		{"B025 the id behind another one", `{"method":"tools/call","params":{"name":"echo","arguments":{"id":7},$},"jsonrpc":"2.0","id":42}`, 200, 200, `"id":42,"result":{"id":7`, "both"},
		{"B020 an id that is a string", `{"jsonrpc":"2.0","id":"001","method":"tools/list","params":{$}}`, 200, 200, `"id":"001","result"`, "both"},
		{"B016 an id beyond 2^53", `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list","params":{$}}`, 200, 200, `"id":9007199254740993,`, "both"},
		{"B017 arguments beyond 2^53", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":9007199254740993,"z":-0},$}}`, 200, 200, `{"n":9007199254740993,"z":-0`, "both"},
		{"B022 a null id", `{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{$}}`, 400, 400, `{"jsonrpc":"2.0","error":{"code":-32600`, "none"},
		{"B023 a fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"tools/list","params":{$}}`, 400, 400, `{"jsonrpc":"2.0","error":{"code":-32600`, "none"},
		{"B023 a boolean as id", `{"jsonrpc":"2.0","id":true,"method":"tools/list","params":{$}}`, 400, 400, `{"jsonrpc":"2.0","error":{"code":-32600`, "none"},
		{"B023 an array as id", `{"jsonrpc":"2.0","id":[1],"method":"tools/list","params":{$}}`, 400, 400, `{"jsonrpc":"2.0","error":{"code":-32600`, "none"},
		{"B023 a number beyond all others as id", `{"jsonrpc":"2.0","id":1e400,"method":"tools/list","params":{$}}`, 400, 400, `{"jsonrpc":"2.0","error":{"code":-32600`, "none"},
		{"B023 an id of 1 MiB", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1<<20) + `","method":"tools/list","params":{$}}`, 400, 400, `{"jsonrpc":"2.0","error":{"code":-32600`, "none"},
		{"B023 an object as id", `{"jsonrpc":"2.0","id":{},"method":"tools/list","params":{$}}`, 400, 400, `{"jsonrpc":"2.0","error":{"code":-32600`, "none"},
		{"D2.11 invalid UTF-8", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"caf` + "\xe9" + `",$}}`, 400, 400, `"code":-32700`, "none"},
		{"D2.11 a character cut off", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"` + "\xf0\x9f\x98" + `",$}}`, 400, 400, `"code":-32700`, "none"},
		{"B025 a fault behind the id", `{"jsonrpc":"2.0","id":42,"method":"tools/list","params":{$},}`, 400, 400, `"id":42,"error":{"code":-32700`, "none"},
		{"B029 nested", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"a":` + deep(900) + `},$}}`, 200, 200, `"id":3,"result"`, "both"},
		{"B029 nested too deep", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"a":` + deep(200_000) + `},$}}`, 400, 400, `"id":3,"error":{"code":-32`, "none"},
		{"no JSON", `{"jsonrpc":`, 400, 400, `"code":-32700`, "none"},
		{"an empty body", ``, 400, 400, `"code":-32700`, "none"},
		{"T-A4 two values", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$}} {}`, 400, 400, `"code":-32700`, "none"},
		{"B005 another version", `{"jsonrpc":"1.0","id":4,"method":"tools/list","params":{$}}`, 400, 400, `"id":4,"error":{"code":-32600`, "none"},
		{"B005 no version", `{"id":4,"method":"tools/list","params":{$}}`, 400, 400, `"id":4,"error":{"code":-32600`, "none"},
		{"D2.5 a number", `42`, 400, 400, `"code":-32600`, "none"},
		{"B028 a name twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"echo",$}}`, 400, 400, `"id":1,"error":{"code":-32600`, "none"},
		{"T-A1 a name in another case", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"echo",$}}`, 400, 400, `"code":-32600`, "none"},
		{"D2.17 B079 a notification", `{"jsonrpc":"2.0","method":"notifications/vendor/x","params":{$}}`, 202, 202, "", "legacy"},
		{"B034 a notification of a known name, malformed", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1],$}}`, 202, 202, "", "none"},
		{"B035 a request without an id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{},$}}`, 202, 202, "", "none"},
		{"B034 an unknown method", `{"jsonrpc":"2.0","id":4,"method":"nonexistent/x","params":{$}}`, 404, 200, `"id":4,"error":{"code":-32601`, "both"},
	} {
		for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
			t.Run(tt.name+" "+era.String(), func(t *testing.T) {
				var r reply
				status := tt.legacy
				if era == mcp.Modern {
					status = tt.modern
					h := header("Content-Type", "application/json", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Name", "echo")
					body := strings.Replace(tt.body, "$", modernMeta, 1)
					var m jsonrpc.Message
					_ = jsonrpc.Scan([]byte(body), &m)
					h.Set("Mcp-Method", string(m.Method))
					r = b.do(t, "POST", body, h)
				} else {
					body := strings.Replace(strings.Replace(tt.body, ",$", "", 1), "$", "", 1)
					r = b.legacy(t, session, body)
				}
				if r.status != status || !strings.Contains(r.body, tt.contains) {
					t.Errorf("%.300s, want %d with %s", r, status, tt.contains)
				}
				if status == 202 && (r.body != "" || r.header.Get("Content-Type") != "") {
					t.Errorf("B079: a body of type %q: %q", r.header.Get("Content-Type"), r.body)
				}
				want := 0
				if tt.called == "both" || tt.called == era.String() {
					want = 1
				}
				if n := drained(calls); n != want {
					t.Errorf("the handler was called %d times, want %d", n, want)
				}
			})
		}
	}
}

func TestResponsesOfClients(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	session := b.initialize(t, "2025-11-25")
	const answer = `{"jsonrpc":"2.0","id":77,"result":{}}`
	if r := b.legacy(t, session, answer); r.status != 202 || r.body != "" {
		t.Errorf("an answer to nothing in a session: %s", r)
	}
	// "The client MUST NOT send JSON-RPC responses" (2026-07-28).
	if r := b.do(t, "POST", answer, header("Content-Type", "application/json", "Mcp-Protocol-Version", "2026-07-28")); r.status != 400 || r.code(t) != -32600 {
		t.Errorf("an answer of a modern client: %s", r)
	}
	if r := b.do(t, "POST", answer, header("Content-Type", "application/json")); r.status != 400 {
		t.Errorf("an answer of nobody: %s", r)
	}
}

// TestRefusedResponseHasNoID has responses refused in every way. Their ids are those
// of requests of the server's: in an error they would name requests of the client's
// ("a JSON-RPC error response that has no id", 2025-11-25, transports, Sending
// Messages).
func TestRefusedResponseHasNoID(t *testing.T) {
	const answer, both = `{"jsonrpc":"2.0","id":77,"result":{}}`, `{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":""}}`
	servers := map[mcp.Era]*browser{}
	for _, era := range []mcp.Era{mcp.NoEra, mcp.Legacy, mcp.Modern} {
		servers[era] = serving(t, echo, &streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Era: era, Logger: strict(t).Logger}})
	}
	plain := strictServer(t)
	plain.Plain = true
	session, older := servers[mcp.NoEra].initialize(t, "2025-11-25"), servers[mcp.NoEra].initialize(t, "2025-03-26")
	json := header("Content-Type", "application/json")
	for _, tt := range []struct {
		name   string
		server *browser
		body   string
		header http.Header
		status int
		id     string // how the error begins otherwise
	}{
		{"no session", servers[mcp.NoEra], answer, json, 400, ""},
		{"a session that is unknown", servers[mcp.NoEra], answer, legacyHeader("dead"), 404, ""},
		{"a revision that is unknown", servers[mcp.NoEra], answer, legacyHeader(session, "Mcp-Protocol-Version", "2025-11-26"), 400, ""},
		{"a result and an error", servers[mcp.NoEra], both, legacyHeader(session), 400, ""},
		{"bad UTF-8", servers[mcp.NoEra], strings.Replace(answer, "{}", "\"\xff\"", 1), legacyHeader(session), 400, ""},
		{"in a batch", servers[mcp.NoEra], "[" + both + "]", legacyHeader(older), 400, ""},
		{"in a batch with another fault", servers[mcp.NoEra], "[" + both + ",1]", legacyHeader(older), 200, ""},
		{"modern", servers[mcp.Modern], both, header("Content-Type", "application/json", "Mcp-Protocol-Version", "2026-07-28"), 400, ""},
		{"modern, without a version", servers[mcp.Modern], answer, json, 400, ""},
		{"modern, to a listener for legacy clients", servers[mcp.Legacy], answer, header("Content-Type", "application/json", "Mcp-Protocol-Version", "2026-07-28"), 400, ""},
		{"plain", serving(t, ping, plain), both, json, 400, `"id":null,`},
		{"plain, in a batch", serving(t, ping, plain), "[" + both + "]", json, 200, `"id":null,`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.server.do(t, "POST", tt.body, tt.header)
			if want := `{"jsonrpc":"2.0",` + tt.id + `"error":{"code":-32`; r.status != tt.status || !strings.HasPrefix(strings.Trim(r.body, "[]"), want) {
				t.Errorf("%s, want %d %s", r, tt.status, want)
			}
		})
	}
}

// TestEraOfAMessage is the table of docs/eras.md: which era a message is served in,
// and what a listener for one era says to the other.
func TestEraOfAMessage(t *testing.T) {
	servers := map[mcp.Era]*browser{}
	for _, era := range []mcp.Era{mcp.NoEra, mcp.Legacy, mcp.Modern} {
		servers[era] = serving(t, echo, &streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Era: era, Logger: strict(t).Logger}})
	}
	session := map[mcp.Era]string{
		mcp.NoEra: servers[mcp.NoEra].initialize(t, "2025-11-25"), mcp.Legacy: servers[mcp.Legacy].initialize(t, "2025-11-25"), mcp.Modern: "any",
	}
	metaOf := func(version string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	bare := legacyRequest("1", "tools/list", "{}")
	const version, id = "Mcp-Protocol-Version", "Mcp-Session-Id"
	type answer struct{ status, code int }
	for _, tt := range []struct {
		name, body  string
		header      []string
		withSession bool
		both        answer
		legacy      answer
		modern      answer
	}{
		{"metadata and header", metaOf("2026-07-28"), []string{version, "2026-07-28"}, false, answer{200, 0}, answer{400, -32022}, answer{200, 0}},
		{"metadata, header and a session id", metaOf("2026-07-28"), []string{version, "2026-07-28"}, true, answer{200, 0}, answer{400, -32022}, answer{200, 0}},
		{"metadata only", metaOf("2026-07-28"), nil, false, answer{400, -32020}, answer{400, -32022}, answer{400, -32020}},
		{"header only", bare, []string{version, "2026-07-28"}, false, answer{400, -32602}, answer{400, -32022}, answer{400, -32602}},
		{"an unknown revision in both", metaOf("v999.0.0"), []string{version, "v999.0.0"}, false, answer{400, -32022}, answer{400, -32022}, answer{400, -32022}},
		{"an unknown revision in the header only", bare, []string{version, "2099-01-01"}, false, answer{400, -32602}, answer{400, -32022}, answer{400, -32602}},
		{"a legacy revision in the metadata", metaOf("2025-11-25"), []string{version, "2025-11-25"}, false, answer{400, -32022}, answer{400, -32022}, answer{400, -32022}},
		{"a session", bare, nil, true, answer{200, 0}, answer{200, 0}, answer{400, -32020}},
		{"a session and its revision", bare, []string{version, "2025-11-25"}, true, answer{200, 0}, answer{200, 0}, answer{400, -32020}},
		{"a session and an unknown revision", bare, []string{version, "1999-01-01"}, true, answer{400, -32600}, answer{400, -32600}, answer{400, -32602}},
		{"a legacy revision and no session", bare, []string{version, "2025-11-25"}, false, answer{400, -32600}, answer{400, -32600}, answer{400, -32020}},
		{"nothing", bare, nil, false, answer{400, -32600}, answer{400, -32600}, answer{400, -32020}},
		{"B116 initialize", initializeRequest("2025-11-25"), nil, false, answer{200, 0}, answer{200, 0}, answer{400, -32022}},
		{"B116 initialize under a modern header", initializeRequest("2099-01-01"), []string{version, "2026-07-28"}, false, answer{200, 0}, answer{200, 0}, answer{400, -32022}},
		{"B116 initialize under an unknown header", initializeRequest("2099-01-01"), []string{version, "2099-01-01"}, false, answer{200, 0}, answer{200, 0}, answer{400, -32022}},
		{"B116 initialize under garbage", initializeRequest("2099-01-01"), []string{version, "garbage"}, false, answer{200, 0}, answer{200, 0}, answer{400, -32022}},
		{"initialize with modern metadata", strings.Replace(metaOf("2026-07-28"), "tools/list", "initialize", 1), []string{version, "2026-07-28", "Mcp-Method", "initialize"}, false, answer{404, -32601}, answer{400, -32022}, answer{404, -32601}},
		{"initialize without an id", strings.Replace(initializeRequest("2025-11-25"), `"id":0,`, "", 1), nil, false, answer{400, -32600}, answer{400, -32600}, answer{400, -32022}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for era, want := range map[mcp.Era]answer{mcp.NoEra: tt.both, mcp.Legacy: tt.legacy, mcp.Modern: tt.modern} {
				h := header("Content-Type", "application/json", "Mcp-Method", "tools/list")
				for i := 0; i < len(tt.header); i += 2 {
					h.Set(tt.header[i], tt.header[i+1])
				}
				if tt.withSession {
					h.Set(id, session[era])
				}
				r := servers[era].do(t, "POST", tt.body, h)
				if r.status != want.status || r.code(t) != want.code {
					t.Errorf("a listener for %s clients (unknown: both): %s, want %v", era, r, want)
				}
				if r.code(t) == -32022 && (!strings.Contains(r.body, `"supported":["`) || !strings.Contains(r.body, `"requested":"`)) {
					t.Errorf("the refusal names no revisions: %s", r)
				}
				if era == mcp.Modern && r.header.Get(id) != "" {
					t.Errorf("a modern listener made a session")
				}
			}
		})
	}
	for _, method := range []string{"GET", "DELETE"} {
		// "HTTP GET or DELETE to the MCP endpoint: respond with 405" (2026-07-28).
		h := header(id, "any", "Accept", "text/event-stream")
		if r := servers[mcp.Modern].do(t, method, "", h); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != "POST, OPTIONS" {
			t.Errorf("%s to a modern listener: %s, Allow %q", method, r, r.header.Get("Allow"))
		}
	}
	// What is told names no method that would be refused the same way.
	for _, method := range []string{"GET", "DELETE"} {
		want := "clients POST; " + method + " is for those with a session"
		if r := servers[mcp.NoEra].do(t, method, "", header("Accept", "text/html")); r.status != http.StatusMethodNotAllowed || !strings.Contains(r.body, want) {
			t.Errorf("%s without a session: %s", method, r)
		}
	}
	h := header(id, session[mcp.NoEra], version, "2026-07-28", "Accept", "text/event-stream")
	if r := servers[mcp.NoEra].do(t, "GET", "", h); r.status != http.StatusMethodNotAllowed {
		t.Errorf("GET of a modern client: %s", r)
	}
}

func TestInFlightLimit(t *testing.T) {
	f := newFixture()
	opts := strictServer(t)
	opts.MaxInFlight = 2
	b := serving(t, f, opts)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow := modernRequest("1", "tools/call", toolCall("slow", "{}"))
	for range 2 {
		req, err := http.NewRequestWithContext(ctx, "POST", b.url, strings.NewReader(slow))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = modernHeader(t, slow)
		go func() {
			if resp, err := b.http.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}()
		await(t, f.started)
	}
	// D2.27, T-K1
	r := b.modern(t, modernRequest("1", "tools/list", ""))
	if r.status != 503 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "MaxInFlight of 2") {
		t.Errorf("over the limit: %s with Retry-After %q", r, r.header.Get("Retry-After"))
	}
	if r := b.at("/mcp/health").do(t, "GET", "", nil); r.status != 200 {
		t.Errorf("health: %s", r)
	}
	cancel()
	await(t, f.cancelled)
	await(t, f.cancelled)
	for r.status != 200 {
		r = b.modern(t, modernRequest("1", "tools/list", ""))
	}
}
