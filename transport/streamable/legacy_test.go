package streamable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func TestInitializeNegotiates(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	for asked, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05",
		"2099-01-01": "2025-11-25", "2026-07-28": "2025-11-25", "2025-07-01": "2025-06-18", "garbage": "2025-11-25", "": "2025-11-25",
	} {
		// B116
		r := b.do(t, "POST", initializeRequest(asked), legacyHeader("", "Mcp-Protocol-Version", asked))
		if r.status != 200 || !strings.Contains(r.body, `"protocolVersion":"`+want+`"`) {
			t.Errorf("B116: %q is answered with %s", asked, r)
		}
		if id := r.header.Values("Mcp-Session-Id"); len(id) != 1 || !regexp.MustCompile(`^[\x21-\x7e]{22,}$`).MatchString(id[0]) {
			t.Errorf("B106: the session id is %q", id)
		}
	}
	r := b.do(t, "POST", legacyRequest("1", "initialize", `{"protocolVersion":5}`), legacyHeader(""))
	if r.status != 200 || r.code(t) != -32602 || r.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("a version that is no string: %s with session %q", r, r.header.Get("Mcp-Session-Id"))
	}
}

func TestSessionIDs(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	id := b.initialize(t, "2025-11-25")
	other := b.initialize(t, "2025-11-25")
	if id == other {
		t.Fatal("B106: two sessions have one id")
	}
	list := legacyRequest("1", "tools/list", "{}")
	// B100: a stale id does not keep a client from beginning anew.
	r := b.do(t, "POST", initializeRequest("2025-11-25"), legacyHeader("dead"))
	if fresh := r.header.Get("Mcp-Session-Id"); r.status != 200 || fresh == "" || fresh == "dead" {
		t.Errorf("B100: initialize with a dead id: %s, session %q", r, fresh)
	}
	for _, tt := range []struct {
		name   string
		values []string
		status int
	}{
		{"its own", []string{id}, 200},
		{"B100 dead", []string{"dead"}, 404},
		{"B100 missing", nil, 400},
		{"B106 empty", []string{""}, 400},
		{"B106 two", []string{id, id}, 400},
		{"B106 of two sessions", []string{id, other}, 400},
		{"B106 a part", []string{id[:len(id)-1]}, 404},
		{"B106 in another case", []string{strings.ToLower(id)}, 404},
		{"B106 with a query", []string{"vs-1&owner=bob"}, 404},
		{"B106 a path", []string{"../x"}, 404},
		{"B106 an escaped line break", []string{"%0d%0aX: y"}, 404},
		{"B106 64 KiB minus the rest", []string{strings.Repeat("x", 60<<10)}, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, method := range []string{"POST", "GET", "DELETE"} {
				if tt.status == 200 && method != "POST" {
					continue
				}
				h := legacyHeader("", "Accept", "application/json, text/event-stream")
				if tt.values != nil {
					h["Mcp-Session-Id"] = tt.values
				}
				body, status := "", tt.status
				if method == "POST" {
					body = list
				} else if tt.values == nil || tt.values[0] == "" {
					status = 405
				}
				r := b.do(t, method, body, h)
				if r.status != status {
					t.Errorf("%s: %s, want %d", method, r, status)
				}
				if method == "POST" && status == 404 && !strings.Contains(r.body, `"id":1,"error"`) {
					t.Errorf("the refusal is %s", r)
				}
			}
		})
	}
	// B106: a folded header does not smuggle one in.
	conn := dialRaw(t, b.url)
	mustWrite(t, conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: x\r\n Mcp-Session-Id: "+id+"\r\nContent-Length: 2\r\n\r\n{}")
	if r := readReply(t, conn); r.status == 200 || r.status == 202 {
		t.Errorf("B106: a folded header: %s", r)
	}
	if r := b.do(t, "POST", list, legacyHeader(id, "Mcp-Protocol-Version", "")); r.status != 400 {
		t.Errorf("an empty version: %s", r)
	}
	h := legacyHeader(id)
	h["Mcp-Protocol-Version"] = []string{"2025-11-25", "2025-11-25"}
	if r := b.do(t, "POST", list, h); r.status != 400 {
		t.Errorf("T-A5: two versions: %s", r)
	}
}

func TestSessionsBelongToTheirPrincipal(t *testing.T) {
	opts := strictServer(t)
	opts.Principal = func(r *http.Request) mcp.Principal { return mcp.Principal{Subject: r.Header.Get("Authorization")} }
	b := serving(t, echo, opts)
	r := b.do(t, "POST", initializeRequest("2025-11-25"), legacyHeader("", "Authorization", "a"))
	id := r.header.Get("Mcp-Session-Id")
	for _, method := range []string{"POST", "GET", "DELETE"} {
		body := ""
		if method == "POST" {
			body = legacyRequest("1", "tools/list", "{}")
		}
		// B101: as unknown as none.
		if r := b.do(t, method, body, legacyHeader(id, "Authorization", "b")); r.status != 404 {
			t.Errorf("B101: %s of another: %s", method, r)
		}
	}
	if r := b.do(t, "POST", legacyRequest("1", "tools/list", "{}"), legacyHeader(id, "Authorization", "a")); r.status != 200 {
		t.Errorf("B101: its owner: %s", r)
	}
}

func TestDeleteEndsASession(t *testing.T) {
	f := newFixture()
	b := serving(t, f, strictServer(t))
	id := b.initialize(t, "2025-11-25")
	stream := readEvents(b.open(t, "GET", "", legacyHeader(id)))
	stream.opened(t)
	answered := make(chan reply, 1)
	go func() { answered <- b.legacy(t, id, legacyRequest("1", "tools/call", `{"name":"slow"}`)) }()
	await(t, f.started)
	if r := b.do(t, "DELETE", "", legacyHeader(id)); r.status != 204 || r.body != "" {
		t.Errorf("DELETE: %s", r)
	}
	stream.wantEnd(t)
	if r := await(t, answered); r.code(t) != -32603 {
		t.Errorf("the call in flight: %s", r)
	}
	for _, method := range []string{"DELETE", "GET", "POST"} {
		body := ""
		if method == "POST" {
			body = legacyRequest("2", "tools/list", "{}")
		}
		if r := b.do(t, method, body, legacyHeader(id)); r.status != 404 {
			t.Errorf("B058: %s after the end: %s", method, r)
		}
	}
}

func TestSessionsAreCapped(t *testing.T) {
	opts := strictServer(t)
	opts.Sessions.Max = 3
	b := serving(t, echo, opts)
	var ids []string
	for range 3 {
		ids = append(ids, b.initialize(t, "2025-11-25"))
	}
	r := b.do(t, "POST", initializeRequest("2025-11-25"), legacyHeader(""))
	if r.status != 503 || r.header.Get("Mcp-Session-Id") != "" || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, `"id":0,"error":{"code":-32603`) {
		t.Errorf("B103, T-K1: over the limit: %s with %v", r, r.header)
	}
	b.do(t, "DELETE", "", legacyHeader(ids[0]))
	b.initialize(t, "2025-11-25")
	if r := b.modern(t, modernRequest("1", "tools/list", "")); r.status != 200 {
		t.Errorf("modern clients: %s", r)
	}
}

// visit serves one request by hand, so that a bubble's clock counts.
func visit(h http.Handler, method, body string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost/mcp", strings.NewReader(body))
	r.Header = header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestIdleSessionsExpireAndBusyOnesDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Minute
		handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				time.Sleep(5 * idle)
			}
			return echo.Handle(ctx, req, caller)
		})
		h := streamable.NewHandler(handler, &streamable.HandlerOptions{Sessions: session.TableOptions{Idle: idle}})
		defer h.Close()
		begin := func() string {
			return visit(h, "POST", initializeRequest("2025-11-25"), legacyHeader("")).Header().Get("Mcp-Session-Id")
		}
		list := legacyRequest("1", "tools/list", "{}")
		alive := func(id string) bool { return visit(h, "POST", list, legacyHeader(id)).Code == 200 }
		quiet, touched, calling, streaming := begin(), begin(), begin(), begin()
		var busy sync.WaitGroup
		busy.Go(func() {
			call := legacyRequest("1", "tools/call", `{"name":"echo","arguments":{}}`)
			if w := visit(h, "POST", call, legacyHeader(calling)); w.Code != 200 || !strings.Contains(w.Body.String(), `"result"`) {
				t.Errorf("B103: the long call: %d %s", w.Code, w.Body)
			}
		})
		ctx, leave := context.WithCancel(t.Context())
		busy.Go(func() {
			r := httptest.NewRequest("GET", "http://localhost/mcp", nil).WithContext(ctx)
			r.Header = legacyHeader(streaming)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if n := strings.Count(w.Body.String(), ":\n\n"); n < 5 {
				t.Errorf("S2.73: %d comments in 5 minutes", n)
			}
		})
		for range 4 {
			time.Sleep(idle - time.Second)
			if !alive(touched) {
				t.Fatal("B103: a session in use has ended")
			}
		}
		if alive(quiet) {
			t.Error("B103: an idle session is still there")
		}
		if !alive(streaming) || !alive(calling) {
			t.Error("B103: a session with a call or a stream has ended")
		}
		leave()
		busy.Wait()
		time.Sleep(2 * idle)
		if n := h.Sessions(); n != 0 || h.Streams() != 0 {
			t.Errorf("B103: %d sessions and %d streams are left", n, h.Streams())
		}
	})
}

func TestConcurrentCallsWithOneID(t *testing.T) {
	f := newFixture()
	release := make(chan struct{})
	b := serving(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		name, _ := req.Params.LookupString("name")
		if name == "A" {
			f.started <- name
			<-release
		}
		if req.Method == mcp.MethodCallTool {
			return raw(`{"content":[],"from":"` + name + `"}`)
		}
		return f.Handle(ctx, req, caller)
	}), strictServer(t))
	session := b.initialize(t, "2025-11-25")
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		post := func(tool string) reply {
			if era == mcp.Modern {
				return b.modern(t, modernRequest("1", "tools/call", toolCall(tool, "{}")))
			}
			return b.legacy(t, session, legacyRequest("1", "tools/call", `{"name":"`+tool+`"}`))
		}
		first := make(chan reply, 1)
		go func() { first <- post("A") }()
		await(t, f.started)
		second := post("B")
		release <- struct{}{}
		if r := await(t, first); !strings.Contains(r.body, `"from":"A"`) {
			t.Errorf("B026: %s: the first got %s", era, r)
		}
		// Each modern request stands for itself.
		if refused := second.code(t) == -32600; refused != (era == mcp.Legacy) || !refused && !strings.Contains(second.body, `"from":"B"`) {
			t.Errorf("B026: %s: the second got %s", era, second)
		}
	}
}

func TestCancelledCallIsAnswered(t *testing.T) {
	f := newFixture()
	b := serving(t, f, strictServer(t))
	id := b.initialize(t, "2025-11-25")
	answered := make(chan reply, 1)
	go func() { answered <- b.legacy(t, id, legacyRequest(`"x"`, "tools/call", `{"name":"slow"}`)) }()
	await(t, f.started)
	b.legacy(t, id, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"y"}}`)
	if r := b.legacy(t, id, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`); r.status != 202 {
		t.Errorf("the cancellation: %s", r)
	}
	await(t, f.cancelled)
	if r := await(t, answered); r.status != 200 || r.code(t) != -32603 || !strings.Contains(r.body, `"id":"x"`) {
		t.Errorf("B136: the call: %s", r)
	}
}

func TestPingAndLevelAnswerEmptyObjects(t *testing.T) {
	b := serving(t, newFixture(), strictServer(t))
	id := b.initialize(t, "2025-11-25")
	for method, params := range map[string]string{
		"ping": `{}`, "logging/setLevel": `{"level":"info"}`, "resources/subscribe": `{"uri":"test://a"}`, "resources/unsubscribe": `{"uri":"test://a"}`,
	} {
		if r := b.legacy(t, id, legacyRequest("1", method, params)); r.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("%s: %s", method, r)
		}
	}
}

func TestBatches(t *testing.T) {
	f := newFixture()
	b := serving(t, f, strictServer(t))
	sessions := map[string]string{"none": "", "unknown": "dead"}
	for _, revision := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		sessions[revision] = b.initialize(t, revision)
	}
	const ping, note, list = `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`, `{"jsonrpc":"2.0","id":"3","method":"prompts/list"}`
	for _, tt := range []struct {
		name, session, body string
		version             string
		status              int
		want                []string // one answer each, in any order; without [ one error
	}{
		{"B038 2025-03-26", "2025-03-26", "[" + ping + "," + note + "," + list + "]", "2025-03-26", 200, []string{`"id":2,"result":{}`, `"id":"3","result":{"prompts"`}},
		{"B038 without the version", "2025-03-26", "[" + ping + "]", "", 200, []string{`"id":2,"result":{}`}},
		{"B038 notifications only", "2025-03-26", "[" + note + "," + note + "]", "2025-03-26", 202, nil},
		{"answers only", "2025-03-26", `[{"jsonrpc":"2.0","id":9,"result":{}}]`, "2025-03-26", 202, nil},
		{"B038 with initialize", "2025-03-26", "[" + initializeRequest("2025-03-26") + "," + ping + "]", "2025-03-26", 200, []string{`"id":0,"error":{"code":-32600`, `"id":2,"result"`}},
		{"D2.3 a faulty item", "2025-03-26", "[1," + ping + `,{"jsonrpc":"2.0","id":4,"method":"unknown"}]`, "2025-03-26", 200, []string{`{"jsonrpc":"2.0","error":{"code":-32600`, `"id":2,"result"`, `"id":4,"error":{"code":-32601`}},
		{"an item's tool panics", "2025-03-26", "[" + ping + "," + legacyRequest("5", "tools/call", `{"name":"panic"}`) + "]", "", 200, []string{`"id":2,"result"`, `"id":5,"error":{"code":-32603`}},
		{"D2.3 faulty items only", "2025-03-26", `[1,{"jsonrpc":"2.0","id":7}]`, "2025-03-26", 200, []string{`{"jsonrpc":"2.0","error":{"code":-32600`, `"id":7,"error":{"code":-32600`}},
		{"a faulty answer and a request", "2025-03-26", `[{"jsonrpc":"2.0","id":9},` + ping + "]", "2025-03-26", 200, []string{`"error":{"code":-32600`, `"id":2,"result"`}},
		{"S2.59 a faulty answer", "2025-03-26", `[{"jsonrpc":"2.0","id":9,"result":{},"error":{}},{"jsonrpc":"2.0","id":10,"result":{}}]`, "2025-03-26", 400, []string{`{"jsonrpc":"2.0","error":{"code":-32600`}},
		{"S2.59 a faulty notification", "2025-03-26", `[` + note + `,{"jsonrpc":"2.0","method":"notifications/x","params":1}]`, "2025-03-26", 400, []string{`{"jsonrpc":"2.0","error":{"code":-32600`}},
		{"D2.4 empty", "2025-03-26", "[]", "2025-03-26", 400, []string{`"error":{"code":-32600`}},
		{"T-K1 too many", "2025-03-26", "[" + strings.Repeat(ping+",", jsonrpc.MaxBatch) + ping + "]", "2025-03-26", 400, []string{`"code":-32600`}},
		{"no JSON", "2025-03-26", "[" + ping, "2025-03-26", 400, []string{`"code":-32700`}},
		{"B038 2025-06-18", "2025-06-18", "[" + ping + "]", "2025-06-18", 400, []string{`"error":{"code":-32600`}},
		{"B038 2025-11-25", "2025-11-25", "[" + ping + "]", "2025-11-25", 400, []string{`"error":{"code":-32600`}},
		{"B038 2026-07-28", "none", "[" + modernRequest("1", "tools/list", "") + "]", "2026-07-28", 400, []string{`"error":{"code":-32600`}},
		{"B038 initialize and nothing before", "none", "[" + initializeRequest("2025-03-26") + "]", "", 400, []string{`"error":{"code":-32600`}},
		{"a dead session", "unknown", "[" + ping + "]", "", 404, []string{`"error":{"code":-32600`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := legacyHeader(sessions[tt.session])
			if tt.version != "" {
				h.Set("Mcp-Protocol-Version", tt.version)
			}
			r := b.do(t, "POST", tt.body, h)
			if r.status != tt.status {
				t.Fatalf("%s, want %d", r, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(r.body, want) {
					t.Errorf("%s holds no %s", r, want)
				}
			}
			var answers []json.RawMessage
			switch err := json.Unmarshal([]byte(r.body), &answers); {
			case tt.status == 200 && (err != nil || len(answers) != len(tt.want)):
				t.Errorf("%s: %d answers, %v", r, len(answers), err)
			case tt.status == 202 && r.body != "":
				t.Errorf("S2.59: %s", r)
			case tt.status >= 400 && err == nil:
				t.Errorf("a refusal is an array: %s", r)
			}
		})
	}
	// docs/eras.md: with a request that streams, a stream of single messages.
	streaming := fmt.Sprintf("[%s,%s]", ping, `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":"p"}}}`)
	r := b.legacy(t, sessions["2025-03-26"], streaming)
	if r.header.Get("Content-Type") != "text/event-stream" || len(regexp.MustCompile(`(?m)^event: message\nid: \S+\ndata: \{`).FindAllString(r.body, -1)) != 5 || strings.Contains(r.body, "data: [") ||
		!strings.Contains(r.body, `"progressToken":"p"`) || !strings.Contains(r.body, `"id":6,"result"`) || !strings.Contains(r.body, `"id":2,"result"`) {
		t.Errorf("B038: a batch that streams: %s", r)
	}
}

// TestBatchesCountInFlight has each message of a batch count that is served at a time.
func TestBatchesCountInFlight_TK1(t *testing.T) {
	const limit = 3
	for _, tt := range []struct{ items, counted int }{{1, 1}, {2, 2}, {3, 3}, {5, 3}} {
		for _, accept := range []string{"application/json", "application/json, text/event-stream"} {
			t.Run(fmt.Sprint(tt.items, " ", accept), func(t *testing.T) {
				f := newFixture()
				h := streamable.NewHandler(f, &streamable.HandlerOptions{MaxInFlight: limit})
				defer h.Close()
				b := newBrowser(t, newServer(t, h))
				session := b.initialize(t, "2025-03-26")
				var items []string
				for i := range tt.items {
					items = append(items, legacyRequest(fmt.Sprint(i), "tools/call", `{"name":"slow"}`))
				}
				answered := make(chan reply, 1)
				go func() {
					answered <- b.do(t, "POST", "["+strings.Join(items, ",")+"]", legacyHeader(session, "Accept", accept))
				}()
				for range tt.counted {
					await(t, f.started)
				}
				if n := h.InFlight(); n != tt.counted {
					t.Errorf("%d in flight, want %d", n, tt.counted)
				}
				ping := `{"jsonrpc":"2.0","id":9,"method":"ping"}`
				r := b.legacy(t, session, "["+ping+","+ping+"]")
				if full := tt.counted+2 > limit; full != (r.status == 503) || full && !strings.Contains(r.body, "MaxInFlight of 3") {
					t.Errorf("another batch: %s", r)
				}
				b.do(t, "DELETE", "", legacyHeader(session))
				await(t, answered)
				eventually(t, func() bool { return h.InFlight() == 0 })
			})
		}
	}
}

// TestForeignSessionLooksLikeNone_TG2: nobody can find out which ids are given
// out.
func TestForeignSessionLooksLikeNone_TG2_SEC96_SEC98(t *testing.T) {
	opts := strictServer(t)
	opts.Principal = func(r *http.Request) mcp.Principal { return mcp.Principal{Subject: r.Header.Get("Authorization")} }
	b := serving(t, echo, opts)
	id := b.do(t, "POST", initializeRequest("2025-11-25"), legacyHeader("", "Authorization", "a")).header.Get("Mcp-Session-Id")
	for method, body := range map[string]string{
		"POST": legacyRequest("1", "tools/list", "{}"), "GET": "", "DELETE": "",
	} {
		foreign := b.do(t, method, body, legacyHeader(id, "Authorization", "b"))
		never := b.do(t, method, body, legacyHeader(strings.Repeat("A", len(id)), "Authorization", "b"))
		for _, r := range []*reply{&foreign, &never} {
			r.header.Del("Date")
		}
		if foreign.status != 404 || foreign.body != never.body || fmt.Sprint(foreign.header) != fmt.Sprint(never.header) {
			t.Errorf("%s: %s with %v, and %s with %v for an id that was never given out", method, foreign, foreign.header, never, never.header)
		}
	}
	// Ids of calls, even, are not shared: another's cancellation ends nothing.
	if r := b.do(t, "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, legacyHeader(id, "Authorization", "b")); r.status != 404 {
		t.Errorf("a cancellation: %s", r)
	}
}

// TestAbandonedClientsLeaveNothing_TK3 begins sessions and discovers, and never
// comes back.
func TestAbandonedClientsLeaveNothing_TK3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := streamable.NewHandler(newFixture(), &streamable.HandlerOptions{Sessions: session.TableOptions{Idle: time.Minute}})
		defer h.Close()
		before := runtime.NumGoroutine()
		discover := modernRequest("1", "server/discover", "")
		for range 2000 {
			if w := visit(h, "POST", initializeRequest("2025-11-25"), legacyHeader("")); w.Code != 200 {
				t.Fatalf("initialize: %d %s", w.Code, w.Body)
			}
			if w := visit(h, "POST", discover, modernHeader(t, discover)); w.Code != 200 {
				t.Fatalf("discover: %d %s", w.Code, w.Body)
			}
		}
		if n := h.Sessions(); n != 2000 {
			t.Errorf("%d sessions", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		// What is left of other tests may come and go; a leak here is of 2000.
		if n, after := h.Sessions(), runtime.NumGoroutine(); n != 0 || after > before+100 {
			t.Errorf("%d sessions are left, and %d goroutines of %d", n, after, before)
		}
	})
}
