package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// An sseClient speaks HTTP with SSE by hand.
type sseClient struct {
	*browser // at where messages are posted

	events *eventReader
	id     string
}

var endpointEvent = regexp.MustCompile(`^event: endpoint\|data: ((?:/\w+)*/message\?sessionId=([\x21-\x7e]{22,}))$`)

// openSSE opens a stream at b, which must begin with the endpoint.
func openSSE(t *testing.T, b *browser, pairs ...string) *sseClient {
	t.Helper()
	resp := b.open(t, "GET", "", header(append([]string{"Accept", "text/event-stream"}, pairs...)...))
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("GET is answered with %d and %q", resp.StatusCode, kind)
	}
	c := &sseClient{events: readEvents(resp)}
	first, _ := c.events.next()
	m := endpointEvent.FindStringSubmatch(first)
	if m == nil {
		t.Fatalf("the first event is %q", first)
	}
	c.browser, c.id = b.at(m[1]), m[2]
	return c
}

// sseAt serves handler and returns a browser at its stream.
func sseAt(t *testing.T, handler mcp.Handler, opts *streamable.ServerOptions) *browser {
	t.Helper()
	return serving(t, handler, opts).at("/sse")
}

func (c *sseClient) post(t *testing.T, body string, pairs ...string) reply {
	t.Helper()
	return c.do(t, "POST", body, header(append([]string{"Content-Type", "application/json"}, pairs...)...))
}

// say posts a message that must be taken.
func (c *sseClient) say(t *testing.T, body string) {
	t.Helper()
	if r := c.post(t, body); r.status != http.StatusAccepted || r.body != "" || r.header.Get("Content-Type") != "" {
		t.Fatalf("B079: %s is answered with %s", body, r)
	}
}

// hear wants the next message on the stream to be m.
func (c *sseClient) hear(t *testing.T, m string) {
	t.Helper()
	c.events.want(t, "event: message|data: "+m)
}

func (c *sseClient) initialize(t *testing.T, revision string) {
	t.Helper()
	c.say(t, initializeRequest(revision))
	if got, _ := c.events.next(); !strings.Contains(got, `"id":0,"result":{"protocolVersion":"`+revision+`"`) {
		t.Fatalf("initialize is answered with %q", got)
	}
	c.say(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func result(id, value string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + value + `}`
}

func TestSSEConversation(t *testing.T) {
	f := newFixture()
	c := openSSE(t, sseAt(t, f, strictServer(t)))
	c.initialize(t, "2024-11-05")
	c.say(t, legacyRequest(`"p"`, "ping", "{}"))
	c.hear(t, result(`"p"`, "{}"))
	c.say(t, legacyRequest("1", "tools/call", `{"name":"echo","arguments":{"n":9007199254740993,"z":1.0}}`))
	c.hear(t, result("1", `{"content":[],"structuredContent":{"n":9007199254740993,"z":1.0},"vendor":{"b":1,"a":1e2}}`))
	c.say(t, legacyRequest("2", "nonexistent/x", "{}"))
	c.events.await(t, `"id":2,"error":{"code":-32601`)
	// In order, and before the result.
	c.say(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":"t"}}}`)
	for i := range 3 {
		c.hear(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"total":3,"progressToken":"t"}}`, i+1))
	}
	c.hear(t, result("3", `{"content":[]}`))
	c.say(t, legacyRequest("4", "logging/setLevel", `{"level":"error"}`))
	c.hear(t, result("4", "{}"))
	c.say(t, legacyRequest("5", "tools/call", `{"name":"log"}`))
	c.events.want(t, `event: message|data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"error message"}}`)
	c.hear(t, result("5", `{"content":[]}`))
	c.say(t, legacyRequest("6", "resources/subscribe", `{"uri":"test://a"}`))
	c.hear(t, result("6", "{}"))
	updated := &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted([]byte(`{"uri":"test://a"}`))}
	eventually(t, func() bool { return f.listeners(updated) == 1 })
	f.change(updated)
	c.hear(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}`)
	// A cancelled request gets no answer: what comes next is another's.
	c.say(t, legacyRequest(`"x"`, "tools/call", `{"name":"slow"}`))
	await(t, f.started)
	c.say(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
	await(t, f.cancelled)
	c.say(t, legacyRequest("7", "resources/list", "{}"))
	c.hear(t, result("7", `{"resources":[{"uri":"test://a","name":"a"}]}`))
}

func TestSSENegotiates_B116(t *testing.T) {
	b := sseAt(t, echo, strictServer(t))
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-11-25": "2025-11-25", "2026-07-28": "2025-11-25", "garbage": "2025-11-25",
	} {
		c := openSSE(t, b)
		c.say(t, initializeRequest(asked))
		c.events.await(t, `"id":0,"result":{"protocolVersion":"`+want+`"`)
		c.say(t, initializeRequest(asked))
		c.events.await(t, `"id":0,"error":{"code":-32600`)
	}
	c := openSSE(t, b)
	c.say(t, legacyRequest("1", "tools/list", "{}"))
	c.events.await(t, `"id":1,"error":{"code":-32600`)
	// A modern request is none of this transport's.
	c.say(t, modernRequest("2", "tools/list", ""))
	c.events.await(t, `"id":2,"error":{"code":-32600`)
}

func TestSSEQuestions(t *testing.T) {
	c := openSSE(t, sseAt(t, newFixture(), strictServer(t)))
	c.initialize(t, "2025-06-18")
	for id := 1; id <= 2; id++ {
		c.say(t, legacyRequest(fmt.Sprint(id), "tools/call", `{"name":"ask"}`))
		event := c.events.await(t, `"method":"elicitation/create","params":`+question)
		_, number, _ := strings.Cut(event, `"id":`)
		number, _, _ = strings.Cut(number, ",")
		c.say(t, `{"jsonrpc":"2.0","id":`+number+`,"result":{"action":"accept","content":{"name":"Ada"}}}`)
		c.hear(t, result(fmt.Sprint(id), `{"content":[],"structuredContent":{"answer":{"action":"accept","content":{"name":"Ada"}}}}`))
		c.say(t, `{"jsonrpc":"2.0","id":`+number+`,"result":{"action":"accept"}}`) // once more
	}
}

func TestSSEBatches_B038(t *testing.T) {
	b := sseAt(t, newFixture(), strictServer(t))
	const ping, note = `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`
	const list = `{"jsonrpc":"2.0","id":"3","method":"prompts/list"}`
	c := openSSE(t, b)
	c.initialize(t, "2025-03-26")
	c.say(t, "["+strings.Join([]string{ping, note, list, initializeRequest("2025-03-26"), `{"id":9}`}, ",")+"]")
	var got []string
	for range 4 {
		event, _ := c.events.next()
		got = append(got, event)
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{`"id":2,"result":{}`, `"id":"3","result":{"prompts"`, `"id":0,"error":{"code":-32600`, `"error":{"code":-32600`} {
		if !strings.Contains(all, want) {
			t.Errorf("B038: %s is not among %s", want, all)
		}
	}
	if r := c.post(t, "[]"); r.status != 400 || r.code(t) != -32600 {
		t.Errorf("an empty batch: %s", r)
	}
	for _, revision := range []string{"2024-11-05", "2025-06-18"} {
		c := openSSE(t, b)
		c.initialize(t, revision)
		if r := c.post(t, "["+ping+"]"); r.status != 400 || r.code(t) != -32600 {
			t.Errorf("B038: a batch in a session of %s: %s", revision, r)
		}
	}
}

// TestSSERefusesMessages: what is not taken is answered by the POST, and nothing
// of it comes on the stream.
func TestSSERefusesMessages(t *testing.T) {
	f := newFixture()
	opts := strictServer(t)
	opts.MaxBody = 1000
	c := openSSE(t, sseAt(t, f, opts))
	c.initialize(t, "2024-11-05")
	c.say(t, legacyRequest("1", "tools/call", `{"name":"slow"}`))
	await(t, f.started)
	for _, tt := range []struct {
		name, body string
		header     []string
		status     int
		contains   string
	}{
		{"no JSON", `{"jsonrpc":`, nil, 400, `"error":{"code":-32700`},
		{"T-A4 two values", `{"jsonrpc":"2.0","id":5,"method":"ping"} {}`, nil, 400, `"error":{"code":-32700`},
		{"T-A4 invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"caf\xe9\"}", nil, 400, `"error":{"code":-32700`},
		{"T-A1 a name twice", `{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/call"}`, nil, 400, `"id":5,"error":{"code":-32600`},
		{"T-A1 a name in another case", `{"jsonrpc":"2.0","id":5,"method":"ping","Method":"tools/call"}`, nil, 400, `"error":{"code":-32600`},
		{"a notification that is none", `{"method":"notifications/x"}`, nil, 400, `"error":{"code":-32600`},
		{"a number", `42`, nil, 400, `"error":{"code":-32600`},
		{"nothing", ``, nil, 400, `"error":{"code":-32700`},
		{"B026 an id in flight", legacyRequest("1", "tools/list", "{}"), nil, 400, `"id":1,"error":{"code":-32600`},
		{"T-B2 text", legacyRequest("5", "ping", "{}"), []string{"Content-Type", "text/plain"}, 415, `"error":{"code":-32600`},
		{"B092 packed", legacyRequest("5", "ping", "{}"), []string{"Content-Encoding", "gzip"}, 415, `"error":{"code":-32600`},
		{"T-K1 too large", legacyRequest("5", "ping", `{"x":"`+strings.Repeat("x", 1000)+`"}`), nil, 413, "MaxBody of 1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := header("Content-Type", "application/json")
			for i := 0; i < len(tt.header); i += 2 {
				h.Set(tt.header[i], tt.header[i+1])
			}
			if r := c.do(t, "POST", tt.body, h); r.status != tt.status || !strings.Contains(r.body, tt.contains) || r.header.Get("Retry-After") != "" {
				t.Errorf("%s, want %d with %s", r, tt.status, tt.contains)
			}
		})
	}
	c.say(t, legacyRequest("6", "ping", "{}"))
	c.hear(t, result("6", "{}"))
}

func TestSSEServesConcurrentlyUpToALimit_TK1(t *testing.T) {
	f := newFixture()
	opts := strictServer(t)
	opts.SSE = streamable.SSEOptions{MaxInFlight: 2, MaxQueued: 1}
	c := openSSE(t, sseAt(t, f, opts))
	c.initialize(t, "2024-11-05")
	call := func(id int) string { return legacyRequest(fmt.Sprint(id), "tools/call", `{"name":"slow"}`) }
	for id := 1; id <= 3; id++ {
		c.say(t, call(id))
	}
	await(t, f.started)
	await(t, f.started)
	r := c.post(t, call(4))
	if r.status != 503 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, `"id":4,"error":{"code":-32603`) || !strings.Contains(r.body, "MaxQueued") {
		t.Errorf("over the limit: %s with Retry-After %q", r, r.header.Get("Retry-After"))
	}
	// What ends a request does not wait behind it.
	c.say(t, legacyRequest("5", "ping", "{}"))
	c.hear(t, result("5", "{}"))
	for id := 1; id <= 3; id++ {
		c.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
	}
	await(t, f.cancelled)
	await(t, f.cancelled)
	for r.status == 503 {
		r = c.post(t, legacyRequest("6", "resources/list", "{}"))
	}
	c.events.await(t, `"id":6,"result"`)
}

// TestSSEQueuesAreBoundedTogether_TK1: however many clients there are.
func TestSSEQueuesAreBoundedTogether_TK1(t *testing.T) {
	for limit, sse := range map[string]streamable.SSEOptions{
		"MaxQueuedTotal": {MaxInFlight: 1, MaxQueuedTotal: 2},
		"MaxQueuedBytes": {MaxInFlight: 1, MaxQueuedBytes: 180},
	} {
		t.Run(limit, func(t *testing.T) {
			f := newFixture()
			opts := strictServer(t)
			opts.SSE = sse
			b := sseAt(t, f, opts)
			var clients []*sseClient
			call := func(id int) string { return legacyRequest(fmt.Sprint(id), "tools/call", `{"name":"slow"}`) }
			for range 3 {
				c := openSSE(t, b)
				c.initialize(t, "2024-11-05")
				c.say(t, call(1))
				await(t, f.started)
				clients = append(clients, c)
			}
			clients[0].say(t, call(2))
			clients[1].say(t, call(2))
			for i, c := range clients {
				if r := c.post(t, call(3)); r.status != 503 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, `"limit":"`+limit+`"`) {
					t.Errorf("client %d, over the limit: %s", i, r)
				}
			}
			// Who leaves makes room.
			if err := clients[0].events.body.Close(); err != nil {
				t.Error(err)
			}
			eventually(t, func() bool { return clients[2].post(t, call(2)).status == 202 })
		})
	}
}

func TestSSEWithoutALimit(t *testing.T) {
	opts := strictServer(t)
	opts.SSE = streamable.SSEOptions{MaxQueued: math.MaxInt}
	openSSE(t, sseAt(t, newFixture(), opts)).initialize(t, "2024-11-05")
}

// TestSSECountsInFlight: the limit of a listener holds for all its clients.
func TestSSECountsInFlight_TK1(t *testing.T) {
	f := newFixture()
	opts := strictServer(t)
	opts.MaxInFlight = 2
	b := sseAt(t, f, opts)
	c := openSSE(t, b)
	c.initialize(t, "2024-11-05")
	c.say(t, legacyRequest("1", "tools/call", `{"name":"slow"}`))
	c.say(t, legacyRequest("2", "tools/call", `{"name":"slow"}`))
	await(t, f.started)
	await(t, f.started)
	for name, r := range map[string]reply{
		"/message": c.post(t, legacyRequest("3", "ping", "{}")), "/mcp": b.at("/mcp").modern(t, modernRequest("3", "tools/list", "")),
	} {
		if r.status != 503 || !strings.Contains(r.body, "MaxInFlight of 2") {
			t.Errorf("%s: %s", name, r)
		}
	}
}

func TestSSEClientThatLeavesEndsItsCalls(t *testing.T) {
	f := newFixture()
	h := newSSE(t, f, nil)
	b := newBrowser(t, newServer(t, h)).at("/sse")
	leaving, staying := openSSE(t, b), openSSE(t, b)
	for _, c := range []*sseClient{leaving, staying} {
		c.initialize(t, "2024-11-05")
		c.say(t, legacyRequest("1", "tools/call", `{"name":"slow"}`))
		await(t, f.started)
	}
	if err := leaving.events.body.Close(); err != nil {
		t.Error(err)
	}
	if got := await(t, f.cancelled); got != "slow" {
		t.Errorf("%s was cancelled", got)
	}
	eventually(t, func() bool { return h.Streams() == 1 && h.InFlight() == 1 })
	if r := leaving.post(t, legacyRequest("2", "ping", "{}")); r.status != 404 || r.code(t) != -32600 {
		t.Errorf("a POST after the end: %s", r)
	}
	staying.say(t, legacyRequest("2", "ping", "{}"))
	staying.hear(t, result("2", "{}"))
	eventually(t, func() bool { return f.listeners(&mcp.Notification{Method: mcp.NotificationToolsListChanged}) == 1 })
}

// newSSE returns an SSEHandler for the time of the test.
func newSSE(t *testing.T, handler mcp.Handler, change func(*streamable.HandlerOptions)) *streamable.SSEHandler {
	opts := strict(t)
	if change != nil {
		change(&opts)
	}
	h := streamable.NewSSEHandler(handler, &opts)
	t.Cleanup(h.Close)
	return h
}

func TestSSEClientThatDoesNotReadHarmsItselfOnly_R10(t *testing.T) {
	ended := make(chan error, 1)
	pad := strings.Repeat("x", 64<<10)
	flood := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return newFixture().Handle(ctx, req, caller)
		}
		n := &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(`{"progress":1,"progressToken":1,"pad":"` + pad + `"}`))}
		for {
			if err := caller.Notify(ctx, n); err != nil {
				ended <- err
				return mcp.Result{}, err
			}
		}
	})
	h := newSSE(t, flood, func(o *streamable.HandlerOptions) {
		o.WriteTimeout = 200 * time.Millisecond
		o.SSE = streamable.SSEOptions{MaxUnsent: 1 << 20}
	})
	b := newBrowser(t, newServer(t, h)).at("/sse")
	dead, alive := openSSE(t, b), openSSE(t, b)
	dead.initialize(t, "2024-11-05")
	alive.initialize(t, "2024-11-05")
	dead.say(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}`)
	for open := true; open; {
		alive.say(t, legacyRequest("1", "ping", "{}"))
		alive.hear(t, result("1", "{}"))
		if n := h.Unsent(); n > 1<<20+len(pad) {
			t.Fatalf("S2.68: %d bytes wait for a client that does not read", n)
		}
		select {
		case err := <-ended:
			open = false
			if err == nil {
				t.Error("the flood ended well")
			}
		default:
		}
	}
	eventually(t, func() bool { return h.Streams() == 1 })
}

func TestSSESessionsBelongToWhoOpenedThem_TB7_TG2_B101_B106(t *testing.T) {
	const page, other = "http://localhost:6274", "http://localhost:6275"
	opts := strictServer(t)
	opts.AllowedOrigins = []string{page, other}
	opts.Principal = func(r *http.Request) mcp.Principal { return mcp.Principal{Subject: r.Header.Get("Authorization")} }
	b := sseAt(t, echo, opts)
	own := strings.TrimSuffix(b.url, "/sse")
	c, fromPage := openSSE(t, b, "Authorization", "a"), openSSE(t, b, "Authorization", "a", "Origin", page)
	if c.id == fromPage.id {
		t.Error("T-G3: two sessions have one id")
	}
	never := b.at("/message?sessionId="+strings.Repeat("A", len(c.id))).do(t, "POST", legacyRequest("1", "ping", "{}"), header("Content-Type", "application/json", "Authorization", "a"))
	for _, tt := range []struct {
		name   string
		client *sseClient
		header []string
		status int
	}{
		{"its own", c, []string{"Authorization", "a"}, 202},
		{"its own, from its own page", c, []string{"Authorization", "a", "Origin", own}, 202},
		{"B101 another principal", c, []string{"Authorization", "b"}, 404},
		{"B101 nobody", c, nil, 404},
		{"T-B7 a page", c, []string{"Authorization", "a", "Origin", page}, 404},
		{"the page", fromPage, []string{"Authorization", "a", "Origin", page}, 202},
		{"T-B7 another page", fromPage, []string{"Authorization", "a", "Origin", other}, 404},
		{"T-B7 no page", fromPage, []string{"Authorization", "a"}, 404},
		{"T-B7 a page that is not let in", fromPage, []string{"Authorization", "a", "Origin", "http://evil.example"}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.client.post(t, legacyRequest("1", "ping", "{}"), tt.header...)
			if r.status != tt.status {
				t.Errorf("%s, want %d", r, tt.status)
			}
			if tt.status == 404 && (r.body != never.body || never.status != 404 || r.code(t) != -32600) {
				t.Errorf("T-G2: %s, and %s for an id that was never given out", r, never)
			}
		})
	}
	for query, status := range map[string]int{
		"": 400, "?sessionId=": 400, "?sessionId=" + c.id + "&sessionId=" + c.id: 400, "?SessionID=" + c.id: 400,
		"?sessionId=" + strings.ToLower(c.id): 404, "?sessionId=" + c.id[1:]: 404, "?sessionId=__proto__": 404,
		"?sessionId=toString": 404, "?sessionId=..%2f": 404, "?sessionId=%00": 404, "?sessionId=" + strings.Repeat("x", 50<<10): 404,
	} {
		r := b.at("/message"+query).do(t, "POST", legacyRequest("1", "ping", "{}"), header("Content-Type", "application/json", "Authorization", "a"))
		if r.status != status || r.code(t) != -32600 {
			t.Errorf("B106: %.80q: %s, want %d", query, r, status)
		}
	}
	// A session of one endpoint is none of the other's.
	if r := b.at("/mcp").do(t, "POST", legacyRequest("1", "ping", "{}"), legacyHeader(c.id, "Authorization", "a")); r.status != 404 {
		t.Errorf("T-G2: at the other endpoint: %s", r)
	}
}

func TestSSEClientsAreCapped_TK1(t *testing.T) {
	h := newSSE(t, echo, func(o *streamable.HandlerOptions) { o.SSE.Max = 2 })
	b := newBrowser(t, newServer(t, h)).at("/sse")
	first := openSSE(t, b)
	openSSE(t, b)
	r := b.do(t, "GET", "", nil)
	if r.status != 503 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "SSE.Max of 2") {
		t.Errorf("over the limit: %s", r)
	}
	_ = first.events.body.Close()
	eventually(t, func() bool { return h.Streams() == 1 })
	openSSE(t, b)
}

// TestOnePrincipalLeavesSSEToOthers_TK1: it is refused before they are.
func TestOnePrincipalLeavesSSEToOthers_TK1(t *testing.T) {
	h := newSSE(t, echo, func(o *streamable.HandlerOptions) {
		o.SSE.Max = 4
		o.Principal = func(r *http.Request) mcp.Principal { return mcp.Principal{Subject: r.Header.Get("Authorization")} }
	})
	b := newBrowser(t, newServer(t, h)).at("/sse")
	first := openSSE(t, b, "Authorization", "greedy")
	for range 2 {
		openSSE(t, b, "Authorization", "greedy")
	}
	over := func() reply { return b.do(t, "GET", "", header("Authorization", "greedy")) }
	if r := over(); r.status != 503 || !strings.Contains(r.body, "3 of 3 clients are of one principal, the limit SSE.Max is 4, and it may have 3 times what is left") {
		t.Errorf("over its share: %s", r)
	}
	late := openSSE(t, b, "Authorization", "late")
	for _, c := range []*sseClient{first, late} {
		_ = c.events.body.Close()
	}
	eventually(t, func() bool { return h.Streams() == 2 })
	openSSE(t, b, "Authorization", "greedy")
	if r := over(); r.status != 503 {
		t.Errorf("over its share again: %s", r)
	}
}

func TestSSEDrainsAndCloses(t *testing.T) {
	f := newFixture()
	release := make(chan struct{})
	handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return f.Handle(ctx, req, caller)
		}
		f.started <- "call"
		select {
		case <-release:
			return raw(`{"content":[]}`)
		case <-ctx.Done():
			f.cancelled <- "call"
			return mcp.Result{}, context.Cause(ctx)
		}
	})
	for _, closing := range []bool{false, true} {
		h := newSSE(t, handler, nil)
		b := newBrowser(t, newServer(t, h)).at("/sse")
		busy, idle := openSSE(t, b), openSSE(t, b)
		busy.initialize(t, "2024-11-05")
		busy.say(t, legacyRequest("1", "tools/call", `{"name":"x"}`))
		await(t, f.started)
		h.Drain()
		idle.events.wantEnd(t)
		for _, r := range []reply{b.do(t, "GET", "", nil), busy.post(t, legacyRequest("2", "tools/list", "{}"))} {
			if r.status != 503 || r.header.Get("Retry-After") == "" || r.code(t) != -32603 {
				t.Errorf("while draining: %s", r)
			}
		}
		if closing {
			h.Close()
			await(t, f.cancelled)
		} else {
			release <- struct{}{}
			busy.hear(t, result("1", `{"content":[]}`))
		}
		busy.events.wantEnd(t)
		eventually(t, func() bool { return h.Streams() == 0 && h.InFlight() == 0 })
	}
}

func TestSSEStreamsAreKeptAlive_S273(t *testing.T) {
	h := newSSE(t, echo, func(o *streamable.HandlerOptions) { o.KeepAlive = time.Millisecond })
	c := openSSE(t, newBrowser(t, newServer(t, h)).at("/sse"))
	for range 3 {
		c.events.want(t, ":")
	}
}

func TestSSEHandlerElsewhere(t *testing.T) {
	mux := http.NewServeMux()
	stripped := newSSE(t, echo, func(o *streamable.HandlerOptions) { o.SSE.Prefix = "/a/b/" })
	mux.Handle("/a/b/", http.StripPrefix("/a/b", stripped))
	mux.Handle("/c/", newSSE(t, echo, func(o *streamable.HandlerOptions) { o.SSE.Prefix = "c" }))
	mux.Handle("/plain/", http.StripPrefix("/plain", newSSE(t, echo, func(o *streamable.HandlerOptions) { o.Plain = true })))
	mux.Handle("/modern/", http.StripPrefix("/modern", newSSE(t, echo, func(o *streamable.HandlerOptions) { o.Era = mcp.Modern })))
	b := newBrowser(t, newServer(t, mux))
	for _, prefix := range []string{"/a/b", "/c"} {
		c := openSSE(t, b.at(prefix+"/sse"))
		if !strings.Contains(c.url, prefix+"/message?") {
			t.Errorf("messages are to be posted at %s", c.url)
		}
		c.initialize(t, "2024-11-05")
	}
	for _, tt := range []struct {
		method, path string
		header       http.Header
		status       int
		allow        string
	}{
		{"GET", "/plain/sse", nil, 404, ""},
		{"GET", "/modern/sse", nil, 404, ""},
		{"GET", "/c/x", nil, 404, ""},
		{"POST", "/c/sse", nil, 405, "GET, OPTIONS"},
		{"GET", "/c/message", nil, 405, "POST, OPTIONS"},
		{"OPTIONS", "/c/message", nil, 204, "POST, OPTIONS"},
		{"GET", "/c/sse", header("Accept", "application/json"), 406, ""},
		{"GET", "/c/sse", header("Origin", "http://evil.example"), 403, ""},
		{"POST", "/c/message", header("Host", "evil.example"), 403, ""},
	} {
		r := b.at(tt.path).do(t, tt.method, "", tt.header)
		if r.status != tt.status || r.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: %s with Allow %q", tt.method, tt.path, r, r.header.Get("Allow"))
		}
	}
}

func TestSSELeavesOutToolsThatHTTPCannotCall(t *testing.T) {
	b := sseAt(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodListTools {
			return raw(`{"tools":[{"name":"good","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}},` +
				`{"name":"bad","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"no token"}}}}]}`)
		}
		return newFixture().Handle(ctx, req, caller)
	}), strictServer(t))
	c := openSSE(t, b)
	c.initialize(t, "2024-11-05")
	c.say(t, legacyRequest("1", "tools/list", "{}"))
	if got := c.events.await(t, `"id":1,"result"`); strings.Contains(got, `"bad"`) || !strings.Contains(got, `"good"`) {
		t.Errorf("the list is %s", got)
	}
	// What was learnt here holds for the other endpoint.
	if r := b.at("/mcp").modern(t, modernRequest("2", "tools/call", toolCall("good", `{"r":"eu"}`))); r.status != 400 || r.code(t) != -32020 {
		t.Errorf("a call without the header: %s", r)
	}
}

// TestSSEPanicFailsItsRequestOnly: and what a handler does not answer for long
// holds nothing up.
func TestSSEPanicFailsItsRequestOnly_TK2(t *testing.T) {
	c := openSSE(t, sseAt(t, newFixture(), strictServer(t)))
	c.initialize(t, "2024-11-05")
	c.say(t, legacyRequest("1", "tools/call", `{"name":"panic"}`))
	c.events.await(t, `"id":1,"error":{"code":-32603`)
	c.say(t, legacyRequest("2", "ping", "{}"))
	c.hear(t, result("2", "{}"))
}

func TestSSEManyClientsWithOneID_TG1(t *testing.T) {
	b := sseAt(t, newFixture(), strictServer(t))
	failed := make(chan error, 8)
	for i := range 8 {
		c := openSSE(t, b)
		c.initialize(t, "2024-11-05")
		go func() { failed <- c.echoes(i) }()
	}
	for range 8 {
		if err := await(t, failed); err != nil {
			t.Errorf("T-G1, B143: %v", err)
		}
	}
}

// echoes makes calls whose answers tell whose they are.
func (c *sseClient) echoes(n int) error {
	for id := range 100 {
		body := legacyRequest(fmt.Sprint(id), "tools/call", fmt.Sprintf(`{"name":"echo","arguments":{"client":%d}}`, n))
		resp, err := c.http.Post(c.url, "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		got, ok := c.events.next()
		if want := fmt.Sprintf(`"id":%d,"result":{"content":[],"structuredContent":{"client":%d}`, id, n); !ok || !strings.Contains(got, want) {
			return errors.New(got + " came instead of " + want)
		}
	}
	return nil
}

// TestSSETeardownRaces_B058 ends streams while messages are posted to them.
func TestSSETeardownRaces_B058(t *testing.T) {
	h := newSSE(t, newFixture(), func(o *streamable.HandlerOptions) { o.KeepAlive = time.Millisecond })
	b := newBrowser(t, newServer(t, h)).at("/sse")
	for i := range 100 {
		c := openSSE(t, b)
		c.say(t, initializeRequest("2024-11-05"))
		var posting sync.WaitGroup
		for id := range 4 {
			posting.Go(func() {
				body := legacyRequest(fmt.Sprint(id), "tools/call", `{"name":"progress","_meta":{"progressToken":1}}`)
				resp, err := c.http.Post(c.url, "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				if s := resp.StatusCode; s != 202 && s != 404 && s != 503 {
					t.Errorf("B058: a POST at the end of its stream is answered with %d", s)
				}
			})
		}
		if i%2 == 0 {
			posting.Wait()
		}
		_ = c.events.body.Close()
		posting.Wait()
	}
	eventually(t, func() bool { return h.Streams() == 0 && h.InFlight() == 0 })
}
