package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/eventlog"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A witness is a log that knows which sessions have been dropped, and can be made
// to fail.
type witness struct {
	eventlog.Log

	mu      sync.Mutex
	failing bool
	events  map[string]int // by session
	dropped map[string]bool
	late    int // events of sessions that had been dropped
}

func newWitness() *witness {
	return &witness{Log: eventlog.NewMemory(nil), events: make(map[string]int), dropped: make(map[string]bool)}
}

func (w *witness) Append(ctx context.Context, s eventlog.Stream, data []byte) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing {
		return 0, errors.New("the log is elsewhere")
	}
	w.events[s.Session]++
	if w.dropped[s.Session] {
		w.late++
	}
	return w.Log.Append(ctx, s, data)
}

func (w *witness) Drop(ctx context.Context, session string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped[session] = true
	return w.Log.Drop(ctx, session)
}

func (w *witness) fail(failing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = failing
}

// state returns how many events a session has, and whether it has been dropped.
func (w *witness) state(session string) (events int, dropped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events[session], w.dropped[session]
}

func TestEndedSessionsLeaveNothingInTheLog_B103(t *testing.T) {
	w := newWitness()
	opts := strictServer(t)
	opts.Events = w
	p, b := puppeteer(t, opts)
	session := b.initialize(t, "2025-11-25")
	stream := readEvents(b.call(t, session, "A", "Accept", "text/event-stream"))
	at := stream.opened(t)
	p.notify(t, "A", 1)
	stream.numbered(t, "A", 1)
	_ = stream.body.Close()
	resumed := b.resume(t, session, at)
	resumed.numbered(t, "A", 1)
	if r := b.do(t, "DELETE", "", legacyHeader(session)); r.status != 204 {
		t.Errorf("DELETE: %s", r)
	}
	resumed.message(t, `"id":"A","error":{`) // the call was cancelled
	resumed.wantEnd(t)
	eventually(t, func() bool { _, dropped := w.state(session); return dropped })
	if r := b.do(t, "GET", "", legacyHeader(session, "Last-Event-Id", at)); r.status != 404 {
		t.Errorf("afterwards: %s", r)
	}
	if w.late != 0 {
		t.Errorf("%d events came after the end", w.late)
	}
}

// TestLateMessagesFindNoSession keeps a Caller for longer than it is valid.
func TestLateMessagesFindNoSession(t *testing.T) {
	w := newWitness()
	opts := strictServer(t)
	opts.Events = w
	p, b := puppeteer(t, opts)
	session := b.initialize(t, "2025-11-25")
	stream := readEvents(b.call(t, session, "A", "Accept", "text/event-stream"))
	var kept mcp.Caller
	p.do(t, "A", func(_ context.Context, caller mcp.Caller) { kept = caller })
	p.end("A")
	stream.result(t, "A")
	stream.wantEnd(t)
	b.do(t, "DELETE", "", legacyHeader(session))
	eventually(t, func() bool { _, dropped := w.state(session); return dropped })
	if err := kept.Notify(t.Context(), &mcp.Notification{Method: "notifications/vendor/late"}); err != nil {
		t.Errorf("a late notification: %v", err)
	}
	if _, err := kept.Ask(t.Context(), &mcp.Request{Method: mcp.MethodElicit}); err == nil {
		t.Error("a late question is answered")
	}
	if err := mcp.Release(t.Context(), kept, 0); err != nil {
		t.Errorf("a late release: %v", err)
	}
	if w.late != 0 {
		t.Errorf("%d events came after the end", w.late)
	}
}

func TestCloseDropsTheLog(t *testing.T) {
	w := newWitness()
	p := newPuppet()
	h := streamable.NewHandler(p, &streamable.HandlerOptions{Events: w})
	b := newBrowser(t, newServer(t, h))
	session := b.initialize(t, "2025-11-25")
	readEvents(b.call(t, session, "A", "Accept", "text/event-stream")).opened(t)
	own := readEvents(b.open(t, "GET", "", legacyHeader(session)))
	own.opened(t)
	h.Close()
	own.wantEnd(t)
	eventually(t, func() bool { _, dropped := w.state(session); return dropped })
	if r := b.do(t, "POST", initializeRequest("2025-11-25"), legacyHeader("")); r.status != 503 || !strings.Contains(r.body, "shutting down") {
		t.Errorf("a new session after the end: %s", r)
	}
}

// client is an HTTP request made by hand, so that a bubble's clock counts.
type client struct {
	leave func()
	done  chan struct{}
	reply *httptest.ResponseRecorder
}

func request(h http.Handler, method, body string, header http.Header) *client {
	ctx, leave := context.WithCancel(context.Background())
	r := httptest.NewRequest(method, "http://localhost/mcp", strings.NewReader(body)).WithContext(ctx)
	r.Header = header
	c := &client{leave: leave, done: make(chan struct{}), reply: httptest.NewRecorder()}
	go func() {
		defer close(c.done)
		h.ServeHTTP(c.reply, r)
	}()
	return c
}

// TestAbandonedCallKeepsItsSession_B103_B122 leaves a call that takes far longer
// than a session may be idle, and comes back after its end.
func TestAbandonedCallKeepsItsSession_B103_B122(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Minute
		handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				time.Sleep(5 * idle)
			}
			return echo.Handle(ctx, req, caller)
		})
		w := newWitness()
		h := streamable.NewHandler(handler, &streamable.HandlerOptions{Sessions: session.TableOptions{Idle: idle}, Events: w})
		defer h.Close()
		id := visit(h, "POST", initializeRequest("2025-11-25"), legacyHeader("")).Header().Get("Mcp-Session-Id")
		call := request(h, "POST", legacyRequest("7", "tools/call", `{"name":"echo","arguments":{"a":1}}`), legacyHeader(id))
		time.Sleep(streamable.DefaultStreamAfter - time.Millisecond)
		if n, _ := w.state(id); n != 0 {
			t.Errorf("a call that may be fast has %d events", n)
		}
		time.Sleep(2 * time.Millisecond)
		call.leave()
		<-call.done
		match := firstID.FindStringSubmatch(call.reply.Body.String())
		if match == nil {
			t.Fatalf("the reply begins with %q", call.reply.Body)
		}
		if n := h.InFlight(); n != 1 {
			t.Errorf("%d messages are in flight", n)
		}
		time.Sleep(5*idle - 2*time.Second)
		back := request(h, "GET", "", legacyHeader(id, "Last-Event-Id", match[1]))
		<-back.done
		if body := back.reply.Body.String(); !strings.Contains(body, `"id":7,"result":{"a":1}`) {
			t.Errorf("the client that came back got %q", body)
		}
		if n := h.InFlight(); n != 0 {
			t.Errorf("%d messages are in flight", n)
		}
		if _, dropped := w.state(id); dropped || h.Sessions() != 1 {
			t.Error("the session has ended too soon")
		}
		time.Sleep(idle + time.Second)
		if _, dropped := w.state(id); !dropped || h.Sessions() != 0 {
			t.Error("the session is still there")
		}
	})
}

// TestClientThatLeavesTooSoon_B122 leaves before the reply is a stream: the call
// goes on, and what it sends goes to the session's own stream.
func TestClientThatLeavesTooSoon_B122(t *testing.T) {
	p := newPuppet()
	h := streamable.NewHandler(p, nil)
	defer h.Close()
	id := visit(h, "POST", initializeRequest("2025-11-25"), legacyHeader("")).Header().Get("Mcp-Session-Id")
	call := request(h, "POST", callOf("A"), legacyHeader(id))
	await(t, p.tool("A").began)
	call.leave()
	await(t, call.done)
	p.notify(t, "A", 1)
	p.release(t, "A", 0)
	p.end("A")
	eventually(t, func() bool { return h.InFlight() == 0 })
	if call.reply.Body.Len() != 0 {
		t.Errorf("a client that has gone is sent %q", call.reply.Body)
	}
	b := newBrowser(t, newServer(t, h))
	readEvents(b.open(t, "GET", "", legacyHeader(id))).numbered(t, "A", 1)
}

func TestPlainRepliesDoNotTouchTheLog(t *testing.T) {
	w := newWitness()
	opts := strictServer(t)
	opts.Events = w
	b := serving(t, newFixture(), opts)
	session := b.initialize(t, "2025-11-25")
	for _, method := range []string{"ping", "tools/list", "prompts/list"} {
		if r := b.legacy(t, session, legacyRequest("1", method, "{}")); r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s is answered with %s", method, r)
		}
	}
	b.legacy(t, session, legacyRequest("1", "tools/call", `{"name":"echo","arguments":{}}`))
	if n, _ := w.state(session); n != 0 {
		t.Errorf("there are %d events", n)
	}
}

// TestLogThatFails_R22 has nothing but JSON to answer with.
func TestLogThatFails_R22(t *testing.T) {
	w := newWitness()
	opts := strictServer(t)
	opts.Events = w
	p, b := puppeteer(t, opts)
	session := b.initialize(t, "2025-11-25")
	w.fail(true)
	answered := make(chan reply, 1)
	go func() { answered <- b.do(t, "POST", callOf("A"), legacyHeader(session)) }()
	p.notify(t, "A", 1)
	p.release(t, "A", 0)
	p.end("A")
	if r := await(t, answered); r.header.Get("Content-Type") != "application/json" || !strings.Contains(r.body, `"of":"A"`) {
		t.Errorf("without the log: %s", r)
	}
	if r := b.do(t, "GET", "", legacyHeader(session)); r.status != 503 {
		t.Errorf("a stream without the log: %s", r)
	}
	w.fail(false)
	readEvents(b.open(t, "GET", "", legacyHeader(session))).opened(t)
}

// A stuckWriter is a client that reads nothing until it is let go.
type stuckWriter struct {
	*httptest.ResponseRecorder

	began chan struct{}
	free  chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "vendor/n") {
		select {
		case w.began <- struct{}{}:
		default:
		}
		<-w.free
	}
	return w.ResponseRecorder.Write(p)
}

// TestReaderThatFallsBehindIsCutOff_TK1 has the limits pass a client that reads too
// slowly: its stream ends, so that it asks and is told, and has no gap.
func TestReaderThatFallsBehindIsCutOff_TK1(t *testing.T) {
	p := newPuppet()
	h := streamable.NewHandler(p, &streamable.HandlerOptions{Events: eventlog.NewMemory(&eventlog.Options{StreamEvents: 3})})
	defer h.Close()
	id := visit(h, "POST", initializeRequest("2025-11-25"), legacyHeader("")).Header().Get("Mcp-Session-Id")
	w := &stuckWriter{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(callOf("A")))
		r.Header = legacyHeader(id)
		h.ServeHTTP(w, r)
	}()
	p.notify(t, "A", 1)
	await(t, w.began)
	for i := 2; i <= 9; i++ {
		p.notify(t, "A", i)
	}
	close(w.free)
	await(t, served)
	body := w.Body.String()
	for i := 1; i <= 9; i++ {
		if got, want := strings.Contains(body, fmt.Sprintf(`"A%d"`, i)), i == 1; got != want {
			t.Errorf("notification %d: %v in %q", i, got, body)
		}
	}
	r := visit(h, "GET", "", legacyHeader(id, "Last-Event-Id", lastID(body)))
	if r.Code != 400 || !strings.Contains(r.Body.String(), "StreamEvents of 3") {
		t.Errorf("coming back: %d %s", r.Code, r.Body)
	}
	p.end("A")
}

func lastID(body string) string {
	ids := firstID.FindAllStringSubmatch(body, -1)
	return ids[len(ids)-1][1]
}

// TestNewerStreamBeginsAfterTheOlder_B104 opens a session's own stream again while
// the one before is writing, once or several times.
func TestNewerStreamBeginsAfterTheOlder_B104(t *testing.T) {
	for _, tt := range []struct {
		name  string
		newer int
		leave bool // those between the oldest and the newest go before that comes
	}{
		{"two streams", 1, false},
		{"three streams", 2, false},
		{"many streams", 20, false},
		{"three streams, of which one was left", 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPuppet()
				h := streamable.NewHandler(p, nil)
				defer h.Close()
				id := visit(h, "POST", initializeRequest("2025-11-25"), legacyHeader("")).Header().Get("Mcp-Session-Id")
				call := request(h, "POST", callOf("A"), legacyHeader(id))
				await(t, p.tool("A").began)
				call.leave()
				await(t, call.done)
				p.notify(t, "A", 1)
				w := &stuckWriter{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
				older := make(chan struct{})
				go func() {
					defer close(older)
					r := httptest.NewRequest("GET", "http://localhost/mcp", nil)
					r.Header = legacyHeader(id)
					h.ServeHTTP(w, r)
				}()
				await(t, w.began)
				var newer []*client
				for range tt.newer {
					if n := len(newer); n > 0 && tt.leave {
						newer[n-1].leave()
						synctest.Wait()
					}
					newer = append(newer, request(h, "GET", "", legacyHeader(id)))
					synctest.Wait()
				}
				close(w.free)
				await(t, older)
				p.notify(t, "A", 2)
				synctest.Wait()
				for _, c := range newer {
					c.leave()
					await(t, c.done)
				}
				p.end("A")
				streams := []string{w.Body.String()}
				for _, c := range newer {
					streams = append(streams, c.reply.Body.String())
				}
				for i, body := range streams {
					if first, second := strings.Contains(body, `"A1"`), strings.Contains(body, `"A2"`); first != (i == 0) || second != (i == tt.newer) {
						t.Errorf("stream %d of %d brought %q", i+1, tt.newer+1, body)
					}
				}
			})
		})
	}
}
