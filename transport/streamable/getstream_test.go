package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func TestGetStreamCarriesWhatBelongsToNoRequest(t *testing.T) {
	f := newFixture()
	b := serving(t, f, strictServer(t))
	id, other := b.initialize(t, "2025-11-25"), b.initialize(t, "2025-11-25")
	resp := b.open(t, "GET", "", legacyHeader(id, "Mcp-Protocol-Version", "2025-11-25"))
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("GET is answered with %d and %q", resp.StatusCode, kind)
	}
	stream, foreign := readEvents(resp), readEvents(b.open(t, "GET", "", legacyHeader(other)))
	stream.opened(t)
	foreign.opened(t)
	b.legacy(t, id, legacyRequest("1", "resources/subscribe", `{"uri":"test://a"}`))
	list := &mcp.Notification{Method: mcp.NotificationToolsListChanged}
	eventually(t, func() bool { return f.listeners(list) == 2 })
	f.change(&mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted([]byte(`{"uri":"test://a"}`))})
	// B067, D2.19: with a name, and only to the session that it belongs to.
	stream.want(t, `event: message|data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}`)
	f.change(list)
	stream.await(t, "notifications/tools/list_changed")
	foreign.want(t, `event: message|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	again := readEvents(b.open(t, "GET", "", legacyHeader(id)))
	again.opened(t)
	stream.wantEnd(t)
}

func TestNewGetStreamReplacesTheOld(t *testing.T) {
	f := newFixture()
	b := serving(t, f, strictServer(t))
	id := b.initialize(t, "2025-11-25")
	var streams []*eventReader
	for range 20 {
		s := readEvents(b.open(t, "GET", "", legacyHeader(id)))
		s.opened(t)
		streams = append(streams, s)
	}
	for _, s := range streams[:19] {
		s.wantEnd(t) // B104
	}
	for i := range 3 {
		n := &mcp.Notification{Method: "notifications/vendor/n", Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"n":%d}`, i))}
		f.await(t, func() { f.change(n) }, func() bool {
			got, ok := streams[19].next()
			return ok && strings.Contains(got, fmt.Sprintf(`{"n":%d}`, i))
		})
	}
}

// await repeats a change until it has been heard: a session listens beside the
// requests that make it.
func (f *fixture) await(t *testing.T, change func(), heard func() bool) {
	t.Helper()
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			change()
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	})
	defer changing.Wait()
	defer close(stop)
	for range 1000 {
		if heard() {
			return
		}
	}
	t.Fatal("the change was not heard")
}

func TestHalfDeadGetStreamDoesNotHoldUpTheNext(t *testing.T) {
	f := newFixture()
	opts := strictServer(t)
	opts.WriteTimeout = 10 * patience // far longer than a new stream may take
	var sent atomic.Int64
	opts.Tap = func(outgoing bool, _ []byte) {
		if outgoing {
			sent.Add(1)
		}
	}
	b := serving(t, f, opts)
	id := b.initialize(t, "2025-11-25")
	dead := dialRaw(t, b.url)
	if err := dead.(interface{ SetReadBuffer(int) error }).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, dead, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: "+id+"\r\n\r\n")
	if _, err := dead.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	// More than any buffer takes, to a client that does not read.
	pad := strings.Repeat("x", 1<<20)
	stop := make(chan struct{})
	var flooding sync.WaitGroup
	flooding.Go(func() {
		for {
			f.change(&mcp.Notification{Method: "notifications/vendor/flood", Params: jsonrpc.Trusted([]byte(`{"pad":"` + pad + `"}`))})
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	eventually(t, func() bool { // until nothing moves
		before := sent.Load()
		<-time.After(50 * time.Millisecond)
		return before > 1 && before == sent.Load()
	})
	began := time.Now()
	var last *http.Response
	for range 20 {
		last = b.open(t, "GET", "", legacyHeader(id))
		if _, err := last.Body.Read(make([]byte, 3)); err != nil {
			t.Fatalf("B104: a new stream: %v", err)
		}
	}
	close(stop)
	flooding.Wait()
	// What an old stream did not take does not hold up the new one.
	f.change(&mcp.Notification{Method: "notifications/vendor/last"})
	tail := make([]byte, 0, 1<<16)
	for !strings.Contains(string(tail), "vendor/last") {
		tail = append(tail[max(0, len(tail)-100):], make([]byte, 1<<15)...)
		n, err := last.Body.Read(tail[len(tail)-1<<15:])
		if err != nil {
			t.Fatalf("B104: the last stream: %v", err)
		}
		tail = tail[:len(tail)-1<<15+n]
	}
	if took := time.Since(began); took > 5*patience {
		t.Errorf("B104: opening new streams took %v", took)
	}
	_ = dead.Close()
}

func TestQuestionGoesWhereTheClientIs(t *testing.T) {
	b := serving(t, newFixture(), strictServer(t))
	id := b.initialize(t, "2025-11-25")
	stream := readEvents(b.open(t, "GET", "", legacyHeader(id)))
	stream.opened(t)
	answer := func(event string) {
		_, number, _ := strings.Cut(event, `"id":`)
		number, _, _ = strings.Cut(number, ",")
		if r := b.legacy(t, id, `{"jsonrpc":"2.0","id":`+number+`,"result":{"action":"accept","content":{"name":"Ada"}}}`); r.status != 202 {
			t.Errorf("the answer: %s", r)
		}
	}
	ask := legacyRequest("1", "tools/call", `{"name":"ask"}`)
	own := readEvents(b.open(t, "POST", ask, legacyHeader(id)))
	answer(own.await(t, "elicitation/create"))
	own.await(t, `"id":1,"result":{"content":[],"structuredContent":{"answer":{"action":"accept"`)
	own.wantEnd(t)
	// A client that takes no stream for its call has one for questions.
	answered := make(chan reply, 1)
	go func() { answered <- b.do(t, "POST", ask, legacyHeader(id, "Accept", "application/json")) }()
	answer(stream.await(t, "elicitation/create"))
	if r := await(t, answered); !strings.Contains(r.body, `{"name":"Ada"}`) {
		t.Errorf("the call: %s", r)
	}
	// And one that has none at all is not asked.
	lone := b.initialize(t, "2025-11-25")
	if r := b.do(t, "POST", ask, legacyHeader(lone, "Accept", "application/json")); r.status != 200 || r.code(t) != -32603 {
		t.Errorf("a client that cannot be asked: %s", r)
	}
}

// TestAnswersOfOthersAreNotTaken_SEC109: the id of a question says nothing about
// whose it is.
func TestAnswersOfOthersAreNotTaken_SEC109_TG1(t *testing.T) {
	b := serving(t, newFixture(), strictServer(t))
	const ask = `{"name":"ask"}`
	mine, other := b.initialize(t, "2025-11-25"), b.initialize(t, "2025-11-25")
	old, otherOld := openSSE(t, b.at("/sse")), openSSE(t, b.at("/sse"))
	old.initialize(t, "2025-06-18")
	otherOld.initialize(t, "2025-06-18")
	stream := readEvents(b.open(t, "POST", legacyRequest("1", "tools/call", ask), legacyHeader(mine)))
	stream.await(t, `"id":1,"method":"elicitation/create"`)
	old.say(t, legacyRequest("1", "tools/call", ask))
	old.events.await(t, `"id":1,"method":"elicitation/create"`)
	const wrong = `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Eve"}}}`
	if r := b.legacy(t, other, wrong); r.status != 202 {
		t.Errorf("an answer to nothing: %s", r)
	}
	otherOld.say(t, wrong)
	const right = `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}}`
	b.legacy(t, mine, right)
	old.say(t, right)
	for name, events := range map[string]*eventReader{"Streamable HTTP": stream, "HTTP with SSE": old.events} {
		if got := events.await(t, `"id":1,"result"`); !strings.Contains(got, `{"name":"Ada"}`) {
			t.Errorf("%s: the answer is %s", name, got)
		}
	}
}

// TestTeardownRaces opens and floods a stream, and ends everything at once.
func TestTeardownRaces(t *testing.T) {
	const rounds = 1000
	f := newFixture()
	h := streamable.NewHandler(f, &streamable.HandlerOptions{KeepAlive: time.Millisecond, Logger: strict(t).Logger})
	server := newServer(t, h)
	b := newBrowser(t, server)
	stop := make(chan struct{})
	var flooding sync.WaitGroup
	flooding.Go(func() {
		for {
			f.change(&mcp.Notification{Method: "notifications/vendor/flood"})
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Microsecond):
			}
		}
	})
	var rounding sync.WaitGroup
	for worker := range 4 {
		rounding.Go(func() {
			for i := worker; i < rounds; i += 4 {
				b.round(t, i)
			}
		})
	}
	rounding.Wait()
	h.Close() // B058: and the whole of it, with streams open
	close(stop)
	flooding.Wait()
	if n, m := h.Sessions(), h.Streams(); n != 0 || m > 4 {
		t.Errorf("B058: %d sessions and %d streams are left", n, m)
	}
}

// round begins a session with a stream and a call, and ends it in one of several
// ways.
func (b *browser) round(t *testing.T, i int) {
	post := func(ctx context.Context, method, body, id string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, method, b.url, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return nil
		}
		req.Header = legacyHeader(id)
		resp, err := b.http.Do(req)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err != nil {
			return nil
		}
		return resp
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	resp := post(ctx, "POST", initializeRequest("2025-11-25"), "")
	if resp == nil {
		return
	}
	_ = resp.Body.Close()
	id := resp.Header.Get("Mcp-Session-Id")
	var parts sync.WaitGroup
	for _, part := range []func(){
		func() {
			if resp := post(ctx, "GET", "", id); resp != nil {
				_, _ = resp.Body.Read(make([]byte, 64))
				_ = resp.Body.Close()
			}
		},
		func() {
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":1}}}`
			if resp := post(ctx, "POST", body, id); resp != nil {
				_ = resp.Body.Close()
			}
		},
		func() {
			if i%3 == 0 {
				leave()
			}
			if resp := post(t.Context(), "DELETE", "", id); resp != nil {
				if resp.StatusCode != http.StatusNoContent {
					t.Errorf("B058: DELETE is answered with %d", resp.StatusCode)
				}
				_ = resp.Body.Close()
			}
		},
	} {
		parts.Go(part)
	}
	parts.Wait()
	if resp := post(t.Context(), "DELETE", "", id); resp != nil {
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("B058: the second DELETE is answered with %d", resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
}
