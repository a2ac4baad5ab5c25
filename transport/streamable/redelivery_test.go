package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/eventlog"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestDroppedCallIsResumed_B109_B122 drops the stream of a call at each point and
// resumes it before, in the middle of, or after the rest of the call.
func TestDroppedCallIsResumed_B109_B122(t *testing.T) {
	const last = 3
	for _, revision := range []mcp.Revision{"2025-03-26", "2025-06-18", "2025-11-25"} {
		for drop := range last + 1 {
			for back := drop; back <= last+1; back++ {
				if drop == 0 && !revision.HasPolling() {
					continue // nothing with an id has come
				}
				t.Run(fmt.Sprintf("%s/after %d/back at %d", revision, drop, back), func(t *testing.T) {
					t.Parallel()
					p, b := puppeteer(t, strictServer(t))
					session := b.initialize(t, string(revision))
					opened := make(chan *http.Response, 1)
					go func() { opened <- b.call(t, session, "A", "Accept", "text/event-stream") }()
					stream := readEvents(await(t, opened))
					var at string
					if revision.HasPolling() {
						at = stream.opened(t)
					}
					for i := 1; i <= drop; i++ {
						p.notify(t, "A", i)
						at = stream.numbered(t, "A", i)
					}
					_ = stream.body.Close()
					for i := drop + 1; i <= min(back, last); i++ {
						p.notify(t, "A", i)
					}
					if back > last {
						p.end("A")
					}
					stream = b.resume(t, session, at)
					if revision.HasPolling() {
						if id := stream.opened(t); id != at {
							t.Errorf("the stream begins at %q, not at %q", id, at)
						}
					}
					for i := back + 1; i <= last; i++ {
						p.notify(t, "A", i)
					}
					if back <= last {
						p.end("A")
					}
					for i := drop + 1; i <= last; i++ {
						stream.numbered(t, "A", i)
					}
					stream.result(t, "A")
					stream.wantEnd(t)
					// Who does not believe it may ask again.
					again := b.resume(t, session, at)
					for i := drop + 1; i <= last; i++ {
						again.numbered(t, "A", i)
					}
					again.result(t, "A")
					again.wantEnd(t)
				})
			}
		}
	}
}

func TestCallIsPolled_B107(t *testing.T) {
	p, b := puppeteer(t, strictServer(t))
	session := b.initialize(t, "2025-11-25")
	opened := make(chan *http.Response, 1)
	go func() { opened <- b.call(t, session, "A") }()
	p.release(t, "A", 0) // the default
	stream := readEvents(await(t, opened))
	at := stream.opened(t)
	if got, _ := stream.next(); got != "event: message|id: "+at+"|retry: 1000|data: " {
		t.Errorf("B107: before the end comes %q", got)
	}
	stream.wantEnd(t)
	p.notify(t, "A", 1)
	stream = b.resume(t, session, at)
	at = stream.numbered(t, "A", 1)
	p.release(t, "A", 1234567*time.Microsecond)
	if got, _ := stream.next(); got != "event: message|id: "+at+"|retry: 1235|data: " {
		t.Errorf("B107: before the end comes %q", got)
	}
	stream.wantEnd(t)
	p.release(t, "A", 0) // nobody is there
	p.end("A")
	stream = b.resume(t, session, at)
	stream.result(t, "A")
	stream.wantEnd(t)
}

func TestReleaseDoesNothingWhereClientsCannotComeBack(t *testing.T) {
	for _, tt := range []struct{ name, revision, accept string }{
		{"an older revision", "2025-06-18", "application/json, text/event-stream"},
		{"no event stream", "2025-11-25", "application/json"},
		{"modern", "", "application/json, text/event-stream"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, b := puppeteer(t, strictServer(t))
			answered := make(chan reply, 1)
			if tt.revision == "" {
				go func() { answered <- b.modern(t, modernRequest(`"A"`, "tools/call", toolCall("A", "{}"))) }()
			} else {
				session := b.initialize(t, tt.revision)
				go func() { answered <- b.do(t, "POST", callOf("A"), legacyHeader(session, "Accept", tt.accept)) }()
			}
			p.release(t, "A", time.Second)
			p.end("A")
			r := await(t, answered)
			if kind := r.header.Get("Content-Type"); kind != "application/json" || !strings.Contains(r.body, `"id":"A","result":{`) {
				t.Errorf("the call: %s of type %s", r, kind)
			}
		})
	}
}

// TestStreamsAreNotMixed_B109_TG2 names the events of one stream elsewhere.
func TestStreamsAreNotMixed_B109_TG2(t *testing.T) {
	opts := strictServer(t)
	opts.Principal = func(r *http.Request) mcp.Principal { return mcp.Principal{Subject: r.Header.Get("Authorization")} }
	p, b := puppeteer(t, opts)
	session, other := b.initialize(t, "2025-11-25"), b.initialize(t, "2025-11-25")
	a, c := readEvents(b.call(t, session, "A", "Accept", "text/event-stream")), readEvents(b.call(t, session, "B", "Accept", "text/event-stream"))
	atA, atB := a.opened(t), c.opened(t)
	own := readEvents(b.open(t, "GET", "", legacyHeader(session)))
	atOwn := own.opened(t)
	p.notify(t, "A", 1)
	p.notify(t, "B", 1)
	_ = a.body.Close()
	p.notify(t, "B", 2)
	p.notify(t, "A", 2)
	p.end("B")
	p.end("A")
	if a = b.resume(t, session, atA); atA == atB || atA == atOwn {
		t.Errorf("events have the ids %q, %q and %q", atA, atB, atOwn)
	}
	a.numbered(t, "A", 1)
	a.numbered(t, "A", 2)
	a.result(t, "A")
	a.wantEnd(t)
	c.numbered(t, "B", 1)
	c.numbered(t, "B", 2)
	c.result(t, "B")
	c.wantEnd(t)

	name, _, _ := strings.Cut(atA, "-")
	refused := func(session, id string, pairs ...string) string {
		t.Helper()
		r := b.do(t, "GET", "", legacyHeader(session, append(pairs, "Last-Event-Id", id)...))
		if r.status != 400 || r.code(t) != jsonrpc.CodeInvalidRequest || strings.Contains(r.body, `"id"`) || !strings.Contains(r.body, "Last-Event-ID") {
			t.Errorf("%q is answered with %s", id, r)
		}
		return r.body
	}
	never := refused(other, strings.Repeat("A", len(name))+"-1")
	for _, foreign := range []string{atA, atOwn} {
		if got := refused(other, foreign); got != never {
			t.Errorf("T-G2: a foreign id is answered with %s, one that never was with %s", got, never)
		}
	}
	for _, id := range []string{name + "-99", name + "-0", name, "garbage", "a\tb-1", "-1", strings.Repeat("x", 10<<10)} {
		refused(session, id)
	}
	twice := legacyHeader(session)
	twice["Last-Event-Id"] = []string{atA, atA}
	if r := b.do(t, "GET", "", twice); r.status != 400 {
		t.Errorf("two ids are answered with %s", r)
	}
	// As unknown as the session itself.
	if r := b.do(t, "GET", "", legacyHeader(session, "Last-Event-Id", atA, "Authorization", "mallory")); r.status != 404 {
		t.Errorf("B101: another principal: %s", r)
	}
	// All that did the session no harm.
	b.legacy(t, session, legacyRequest("1", "resources/subscribe", `{"uri":"test://a"}`))
	update := &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted([]byte(`{"uri":"test://a"}`))}
	eventually(t, func() bool { return p.listeners(update) == 1 })
	p.change(update)
	own.message(t, mcp.NotificationResourceUpdated)
}

// TestOwnStreamIsKept follows a session's own stream through reconnects.
func TestOwnStreamIsKept(t *testing.T) {
	p, opts := newPuppet(), strict(t)
	h := streamable.NewHandler(p, &opts)
	t.Cleanup(h.Close)
	b := newBrowser(t, newServer(t, h))
	session := b.initialize(t, "2025-11-25")
	b.legacy(t, session, legacyRequest("1", "resources/subscribe", `{"uri":"test://a"}`))
	update := func(n int) *mcp.Notification {
		return &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"uri":"test://a","n":%d}`, n))}
	}
	eventually(t, func() bool { return p.listeners(update(0)) == 1 })
	change := func(n int) {
		t.Helper()
		p.change(update(n))
		// Its delivery to the log is not to be seen from outside.
		eventually(t, func() bool { return p.told(update(n)) })
	}
	nth := func(n int) string { return fmt.Sprintf(`"n":%d}`, n) }
	change(1)
	change(2)
	stream := readEvents(b.open(t, "GET", "", legacyHeader(session)))
	start := stream.opened(t)
	stream.message(t, nth(1)) // what was kept since the session began
	second := stream.message(t, nth(2))
	change(3)
	third := stream.message(t, nth(3))
	_ = stream.body.Close()
	// What is sent before that is seen counts as sent.
	eventually(t, func() bool { return h.Streams() == 0 })
	change(4)
	stream = readEvents(b.open(t, "GET", "", legacyHeader(session)))
	if at := stream.opened(t); at != third {
		t.Errorf("a stream without an id begins at %q, want %q", at, third)
	}
	stream.message(t, nth(4)) // nothing twice
	// With an id by that, however old; and the newer request wins.
	newer := b.resume(t, session, second)
	stream.wantEnd(t)
	newer.message(t, nth(3))
	newer.message(t, nth(4))
	change(5)
	newer.message(t, nth(5))
	oldest := b.resume(t, session, start)
	for n := 1; n <= 5; n++ {
		oldest.message(t, nth(n))
	}
	newer.wantEnd(t)
	if r := b.do(t, "DELETE", "", legacyHeader(session)); r.status != 204 {
		t.Errorf("DELETE: %s", r)
	}
	oldest.wantEnd(t)
}

func TestNewerResumptionWins_B104(t *testing.T) {
	p, b := puppeteer(t, strictServer(t))
	session := b.initialize(t, "2025-11-25")
	streams := []*eventReader{readEvents(b.call(t, session, "A", "Accept", "text/event-stream"))}
	at := streams[0].opened(t)
	p.notify(t, "A", 1)
	streams[0].numbered(t, "A", 1)
	for range 10 {
		s := b.resume(t, session, at)
		s.numbered(t, "A", 1)
		streams = append(streams, s)
	}
	for _, s := range streams[:10] {
		s.wantEnd(t)
	}
	p.notify(t, "A", 2)
	p.end("A")
	streams[10].numbered(t, "A", 2)
	streams[10].result(t, "A")
	streams[10].wantEnd(t)
}

func TestQuestionIsReplayed(t *testing.T) {
	p, b := puppeteer(t, strictServer(t))
	session := b.initialize(t, "2025-11-25")
	stream := readEvents(b.call(t, session, "A", "Accept", "text/event-stream"))
	at := stream.opened(t)
	_ = stream.body.Close()
	answers := make(chan string, 1)
	p.tool("A").steps <- func(ctx context.Context, caller mcp.Caller) {
		answer, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte(question))})
		answers <- fmt.Sprint(string(answer.Raw()), err)
	}
	stream = b.resume(t, session, at)
	stream.message(t, `"id":1,"method":"elicitation/create"`)
	if r := b.legacy(t, session, `{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}`); r.status != 202 {
		t.Errorf("the answer: %s", r)
	}
	if got := await(t, answers); got != `{"action":"decline"}<nil>` {
		t.Errorf("the tool got %s", got)
	}
	p.end("A")
	stream.result(t, "A")
}

func TestBatchIsResumed_B038(t *testing.T) {
	p, b := puppeteer(t, strictServer(t))
	session := b.initialize(t, "2025-03-26")
	opened := make(chan *http.Response, 1)
	go func() {
		opened <- b.open(t, "POST", "["+callOf("A")+","+callOf("B")+"]", legacyHeader(session))
	}()
	p.notify(t, "A", 1)
	stream := readEvents(await(t, opened))
	at := stream.numbered(t, "A", 1)
	_ = stream.body.Close()
	p.notify(t, "B", 1)
	p.end("B")
	p.end("A")
	stream = b.resume(t, session, at)
	stream.numbered(t, "B", 1)
	rest := stream.await(t, `"result"`) + stream.await(t, `"result"`)
	if !strings.Contains(rest, `"of":"A"`) || !strings.Contains(rest, `"of":"B"`) || strings.Contains(rest, "data: [") {
		t.Errorf("the answers are %s", rest)
	}
	stream.wantEnd(t)
}

func TestEventsThatAreGone_TK1(t *testing.T) {
	opts := strictServer(t)
	opts.Events = eventlog.NewMemory(&eventlog.Options{StreamEvents: 3})
	p, b := puppeteer(t, opts)
	session := b.initialize(t, "2025-11-25")
	stream := readEvents(b.call(t, session, "A", "Accept", "text/event-stream"))
	at := stream.opened(t)
	p.notify(t, "A", 1)
	first := stream.numbered(t, "A", 1)
	_ = stream.body.Close()
	for i := 2; i <= 4; i++ {
		p.notify(t, "A", i)
	}
	r := b.do(t, "GET", "", legacyHeader(session, "Last-Event-Id", at))
	if r.status != 400 || r.code(t) != jsonrpc.CodeInvalidRequest || !strings.Contains(r.body, "1 events are gone: over the limit StreamEvents of 3") {
		t.Errorf("what is gone is answered with %s", r)
	}
	p.end("A") // which pushes out the second
	eventually(t, func() bool {
		return b.do(t, "GET", "", legacyHeader(session, "Last-Event-Id", first)).status == 400
	})
	// A client that names no event is told beside what there is.
	b.legacy(t, session, legacyRequest("1", "resources/subscribe", `{"uri":"test://a"}`))
	update := &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted([]byte(`{"uri":"test://a"}`))}
	eventually(t, func() bool { return p.listeners(update) == 1 })
	for range 5 {
		p.change(update)
		eventually(t, func() bool { return p.told(update) })
	}
	own := readEvents(b.open(t, "GET", "", legacyHeader(session)))
	own.opened(t)
	if got, _ := own.next(); got != ": 2 events are gone: over the limit StreamEvents of 3" {
		t.Errorf("before what is kept comes %q", got)
	}
	for range 3 {
		own.message(t, mcp.NotificationResourceUpdated)
	}
}

func TestSlowReaderHoldsUpNobody_B104(t *testing.T) {
	opts := strictServer(t)
	opts.WriteTimeout = patience // far longer than the call may take
	p, b := puppeteer(t, opts)
	session := b.initialize(t, "2025-11-25")
	dead := dialRaw(t, b.url)
	if err := dead.(interface{ SetReadBuffer(int) error }).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	body := callOf("A")
	mustWrite(t, dead, fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"+
		"Mcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", session, len(body), body))
	head := make([]byte, 1<<10)
	n, err := dead.Read(head)
	for err == nil && !strings.Contains(string(head[:n]), "data: \n") {
		var more int
		more, err = dead.Read(head[n:])
		n += more
	}
	match := firstID.FindStringSubmatch(string(head[:n]))
	if err != nil || match == nil {
		t.Fatalf("the reply begins with %q, %v", head[:n], err)
	}
	pad := strings.Repeat("x", 1<<20)
	began := time.Now()
	for i := range 12 {
		p.do(t, "A", func(ctx context.Context, caller mcp.Caller) {
			params := jsonrpc.Trusted(fmt.Appendf(nil, `{"n":%d,"pad":"%s"}`, i, pad))
			if err := caller.Notify(ctx, &mcp.Notification{Method: "notifications/vendor/big", Params: params}); err != nil {
				t.Errorf("notification %d: %v", i, err)
			}
		})
	}
	p.end("A")
	if took := time.Since(began); took > patience/2 {
		t.Errorf("a client that does not read holds the call up for %v", took)
	}
	stream := b.resume(t, session, match[1])
	stream.lines.Buffer(nil, 2<<20)
	for i := range 12 {
		stream.message(t, fmt.Sprintf(`{"n":%d,"pad"`, i))
	}
	stream.result(t, "A")
	stream.wantEnd(t)
	_ = dead.Close()
}
