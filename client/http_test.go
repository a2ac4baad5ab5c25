package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A site is a scripted HTTP server of one era.
type site struct {
	url    string
	inits  atomic.Int64
	gets   atomic.Int64
	listen atomic.Int64

	// Each may be nil.
	get   func(w http.ResponseWriter, r *http.Request, n int64)                 // nil refuses it
	hear  func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message)      // a listen call; nil refuses it
	other func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) bool // reports whether it has answered
	lost  func(session string) bool                                             // the session is not known
	gone  func()                                                                // a session is ended
}

func newSite(t *testing.T, s *site) *site {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get("Mcp-Session-Id")
	if session != "" && s.lost != nil && s.lost(session) {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodGet {
		n := s.gets.Add(1)
		if s.get == nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		s.get(w, r, n)
		return
	}
	if r.Method == http.MethodDelete && s.gone != nil {
		s.gone()
	}
	body, err := io.ReadAll(r.Body)
	var m jsonrpc.Message
	if err != nil || r.Method != http.MethodPost || jsonrpc.Scan(body, &m) != nil {
		return
	}
	switch method := mcp.MethodName(m.Method); {
	case s.other != nil && s.other(w, r, &m):
	case m.Kind != jsonrpc.Request:
		w.WriteHeader(http.StatusAccepted)
	case method == mcp.MethodInitialize:
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", s.inits.Add(1)))
		reply(w, &m, anInit)
	case method == mcp.MethodDiscover:
		reply(w, &m, aDiscover)
	case method == mcp.MethodListen:
		s.listen.Add(1)
		if s.hear == nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			reply(w, &m, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`)
			return
		}
		s.hear(w, r, &m)
	default:
		reply(w, &m, aResult)
	}
}

func reply(w http.ResponseWriter, m *jsonrpc.Message, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, strings.ReplaceAll(text, "ID", string(m.ID.Raw())))
}

// stream writes events at once.
func stream(w http.ResponseWriter, events ...string) {
	for _, e := range events {
		_, _ = io.WriteString(w, e)
	}
	w.(http.Flusher).Flush()
}

// nextEvent waits for an event.
func nextEvent(t *testing.T, s *client.Subscription) string {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		e, err := s.Next(t.Context())
		got <- fmt.Sprint(e.Method, err)
	}()
	select {
	case text := <-got:
		return strings.TrimSuffix(text, "<nil>")
	case <-time.After(20 * time.Second):
		t.Fatal("no event came")
		panic("unreachable")
	}
}

// TestLostSessionIsReplacedOnce_B098: whatever the number of calls that find out.
func TestLostSessionIsReplacedOnce_B098(t *testing.T) {
	var lost, executed atomic.Int64
	s := newSite(t, &site{
		lost: func(session string) bool { return lost.Load() > 0 && session == "s1" },
		other: func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) bool {
			if mcp.MethodName(m.Method) == mcp.MethodCallTool {
				executed.Add(1)
			}
			return false
		},
	})
	c := connect(t, client.URL(s.url), &client.Options{Era: mcp.Legacy, Healing: healsFast().Healing})
	sub := listen(t, c, tools)
	if err := call(t, c); err != nil {
		t.Fatal(err)
	}
	lost.Store(1)
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if err := call(t, c); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if s.inits.Load() != 2 || executed.Load() != 21 {
		t.Errorf("%d sessions, %d executions", s.inits.Load(), executed.Load())
	}
	if got := nextEvent(t, sub); got != client.Resynced {
		t.Errorf("the subscriber got %s", got)
	}
}

// TestIdleSubscriberLearnsOfALostSession_B098: nobody makes a call.
func TestIdleSubscriberLearnsOfALostSession_B098(t *testing.T) {
	var lost atomic.Bool
	opened, cut := make(chan struct{}), make(chan struct{})
	s := newSite(t, &site{
		lost: func(session string) bool { return lost.Load() && session == "s1" },
		get: func(w http.ResponseWriter, r *http.Request, n int64) {
			stream(w, "retry: 10\n\n")
			if n == 1 {
				close(opened)
				<-cut
				return
			}
			<-r.Context().Done()
		},
	})
	c := connect(t, client.URL(s.url), &client.Options{Era: mcp.Legacy, Healing: healsFast().Healing})
	sub := listen(t, c, tools)
	<-opened
	lost.Store(true)
	close(cut)
	if got := nextEvent(t, sub); got != client.Resynced || s.inits.Load() != 2 {
		t.Errorf("%s, with %d sessions", got, s.inits.Load())
	}
}

// TestDroppedGetStream: without an id to go on after, something may be missing.
func TestDroppedGetStream(t *testing.T) {
	const changed = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
	for _, tt := range []struct {
		name string
		id   string
		want []string
	}{
		{"S1.101 with an id", "id: 7\n", []string{mcp.NotificationToolsListChanged}},
		{"without one", "", []string{client.Resynced, mcp.NotificationToolsListChanged}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			listening := make(chan struct{})
			var after atomic.Value
			s := newSite(t, &site{get: func(w http.ResponseWriter, r *http.Request, n int64) {
				if n == 1 {
					stream(w, "retry: 10\n"+tt.id+"data:\n\n")
					<-listening
					return
				}
				after.Store(r.Header.Get("Last-Event-Id"))
				stream(w, changed)
				<-r.Context().Done()
			}})
			c := connect(t, client.URL(s.url), &client.Options{Era: mcp.Legacy})
			sub := listen(t, c, tools)
			close(listening)
			for _, want := range tt.want {
				if got := nextEvent(t, sub); got != want {
					t.Errorf("there came %s, want %s", got, want)
				}
			}
			if got := after.Load(); got != strings.TrimSuffix(strings.TrimPrefix(tt.id, "id: "), "\n") {
				t.Errorf("it went on after %q", got)
			}
		})
	}
}

// TestServerWithoutStreams: one that refuses GET or listen calls serves calls.
func TestServerWithoutStreams(t *testing.T) {
	eras(t, func(t *testing.T, era mcp.Era) {
		s := newSite(t, &site{})
		c := connect(t, client.URL(s.url), &client.Options{Era: era, Healing: healsFast().Healing})
		_, err := c.Listen(t.Context(), tools)
		if (err == nil) != (era == mcp.Legacy) { // where the session acknowledges
			t.Errorf("listening: %v", err)
		}
		for range 10 {
			if err := call(t, c); err != nil {
				t.Error(err)
			}
		}
		if s.gets.Load() > 1 || s.listen.Load() > 1 {
			t.Errorf("%d GETs, %d listen calls", s.gets.Load(), s.listen.Load())
		}
	})
}

// TestBrokenCallHarmsNoOther: over HTTP each call has a connection of its own.
func TestBrokenCallHarmsNoOther(t *testing.T) {
	release := make(chan struct{})
	var reads atomic.Int64
	s := newSite(t, &site{other: func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) bool {
		switch mcp.MethodName(m.Method) {
		case mcp.MethodCallTool:
			<-release
		case mcp.MethodReadResource:
			if reads.Add(1) == 1 {
				panic(http.ErrAbortHandler)
			}
			reply(w, m, `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","contents":[]}}`)
			return true
		}
		return false
	}})
	c := connect(t, client.URL(s.url), &client.Options{Era: mcp.Modern})
	ended := make(chan error, 1)
	go func() { ended <- call(t, c) }()
	if _, err := c.ReadResource(t.Context(), "a:b", nil); err != nil || reads.Load() != 2 {
		t.Errorf("a read that was cut off: %v after %d attempts", err, reads.Load())
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("another call: %v", err)
	}
}

// TestServerThatTakesNoMoreCalls says when it does, beside an error of its own.
func TestServerThatTakesNoMoreCalls(t *testing.T) {
	for _, tt := range []struct {
		name, retry, kind, body string
		status                  int
		attempts                int64
	}{
		{"503 with an error", "1", "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"full","data":1}}`, 503, 2},
		{"503 with a page", "1", "text/html", `<p>full`, 503, 2},
		{"429 with an error", "1", "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"full"}}`, 429, 2},
		{"429 with an error and no time", "", "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"full"}}`, 429, 2},
		{"an error", "", "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"full","data":1}}`, 503, 1},
		{"success with a time", "1", "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"full","data":1}}`, 200, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var attempts atomic.Int64
			s := newSite(t, &site{other: func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) bool {
				if mcp.MethodName(m.Method) != mcp.MethodCallTool || attempts.Add(1) > 1 {
					return false
				}
				w.Header().Set("Content-Type", tt.kind)
				if tt.retry != "" {
					w.Header().Set("Retry-After", tt.retry)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, strings.ReplaceAll(tt.body, "ID", string(m.ID.Raw())))
				return true
			}})
			c := connect(t, client.URL(s.url), &client.Options{Era: mcp.Modern})
			err := call(t, c)
			if attempts.Load() != tt.attempts || (err == nil) != (tt.attempts == 2) {
				t.Errorf("%d attempts, %v", attempts.Load(), err)
			}
			if refused, ok := errors.AsType[*jsonrpc.Error](err); err != nil && (!ok || !jsonrpc.FromPeer(err) || string(refused.Data.Raw()) != "1") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestNotificationThatIsNotTaken_S181: the deadline and the context of a caller hold
// for what has no response, too.
func TestNotificationThatIsNotTaken_S181(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		gives   bool // the caller gives up
		want    mcp.FailureKind
	}{
		{"in time", time.Second, false, mcp.TimedOut},
		{"and given up", time.Hour, true, mcp.Cancelled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			came, ended := make(chan struct{}), make(chan struct{})
			s := newSite(t, &site{other: func(_ http.ResponseWriter, r *http.Request, m *jsonrpc.Message) bool {
				if mcp.MethodName(m.Method) != mcp.NotificationRootsListChanged {
					return false
				}
				close(came)
				<-r.Context().Done()
				close(ended)
				return true
			}})
			c := connect(t, client.URL(s.url), &client.Options{Era: mcp.Legacy, Timeout: tt.timeout})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.gives {
				go func() {
					<-came
					cancel()
				}()
			}
			err := c.RootsChanged(ctx)
			if kind, sent := outcome(err); kind != tt.want || sent != mcp.MaybeExecuted {
				t.Errorf("it ended with %v", err)
			}
			select {
			case <-ended: // the request, too
			case <-time.After(20 * time.Second):
				t.Error("the request goes on")
			}
		})
	}
}

// TestSessionIDsOfOtherReplies_S173: the session is the one that the reply to
// initialize has named, whatever later ones say.
func TestSessionIDsOfOtherReplies_S173(t *testing.T) {
	for _, id := range []string{"other", "no id at all", ""} {
		t.Run(id, func(t *testing.T) {
			var came atomic.Value
			s := newSite(t, &site{other: func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) bool {
				if mcp.MethodName(m.Method) == mcp.MethodCallTool {
					came.Store(r.Header.Get("Mcp-Session-Id"))
					w.Header().Set("Mcp-Session-Id", id)
				}
				return false
			}})
			plain, own := client.URL(s.url), client.URL(s.url)
			own.Options.Transport = new(http.Transport) // which is another way to the server
			for i, target := range []client.Target{plain, own} {
				c := connect(t, target, &client.Options{Era: mcp.Legacy})
				for range 3 {
					if err := call(t, c); err != nil || came.Load() != fmt.Sprintf("s%d", i+1) {
						t.Errorf("a call came in the session %q: %v", came.Load(), err)
					}
				}
			}
		})
	}
}

// TestCallThatWasGivenUpBeforeIsNotSent_S158 in either era.
func TestCallThatWasGivenUpBeforeIsNotSent_S158(t *testing.T) {
	eras(t, func(t *testing.T, era mcp.Era) {
		var calls atomic.Int64
		s := newSite(t, &site{other: func(_ http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) bool {
			if mcp.MethodName(m.Method) == mcp.MethodCallTool {
				calls.Add(1)
			}
			return false
		}})
		c := connect(t, client.URL(s.url), &client.Options{Era: era})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			_, err := c.CallTool(ctx, "work", nil, nil)
			if kind, sent := outcome(err); kind != mcp.Cancelled || sent != mcp.NotSent || !errors.Is(err, context.Canceled) {
				t.Errorf("it failed with %v", err)
			}
		}
		if err := call(t, c); err != nil || calls.Load() != 1 {
			t.Errorf("%d calls reached the server, %v", calls.Load(), err)
		}
	})
}

// TestCancelReachesTheServerOverHTTP_B136_B122: as a message in a session, else by
// hanging up.
func TestCancelReachesTheServerOverHTTP_B136_B122(t *testing.T) {
	eras(t, func(t *testing.T, era mcp.Era) {
		started, told := make(chan struct{}), make(chan string, 2)
		s := newSite(t, &site{other: func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) bool {
			switch mcp.MethodName(m.Method) {
			case mcp.MethodCallTool:
				close(started)
				<-r.Context().Done()
				told <- "hung up"
				return true
			case mcp.NotificationCancelled:
				told <- "cancelled"
			}
			return false
		}})
		c := connect(t, client.URL(s.url), &client.Options{Era: era})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-started
			cancel()
		}()
		_, err := c.CallTool(ctx, "work", nil, nil)
		if kind, sent := outcome(err); kind != mcp.Cancelled || sent != mcp.MaybeExecuted {
			t.Errorf("the error is %v", err)
		}
		got := []string{<-told}
		if era == mcp.Legacy {
			got = append(got, <-told)
		}
		if want := map[mcp.Era]string{mcp.Legacy: "[cancelled hung up]", mcp.Modern: "[hung up]"}[era]; fmt.Sprint(got) != want {
			t.Errorf("the server was told %s", got)
		}
	})
}

// TestStreamsOfAModernServer: a listen call whose stream breaks is made again.
func TestStreamsOfAModernServer(t *testing.T) {
	const changed = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{}}\n\n"
	var s *site
	s = newSite(t, &site{hear: func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		w.Header().Set("Content-Type", "text/event-stream")
		stream(w, "data: "+strings.ReplaceAll(anAck, "ID", string(m.ID.Raw()))+"\n\n", changed)
		switch s.listen.Load() {
		case 1: // it breaks
		case 2:
			stream(w, "data: "+strings.ReplaceAll(aResult, "ID", string(m.ID.Raw()))+"\n\n")
		default:
			<-r.Context().Done()
		}
	}})
	var log bytes.Buffer // what is written before an event is there after it
	c := connect(t, client.URL(s.url), &client.Options{
		Era: mcp.Modern, Healing: healsFast().Healing, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	sub := listen(t, c, tools)
	seen := make(map[string]int)
	for s.listen.Load() < 3 || seen[client.Resynced] == 0 {
		seen[nextEvent(t, sub)]++
	}
	if seen[mcp.NotificationToolsListChanged] == 0 {
		t.Errorf("there came %v", seen)
	}
	if n := strings.Count(log.String(), "listening was interrupted"); n != 2 || !strings.Contains(log.String(), "the server ended the subscription") {
		t.Errorf("the log is %s", log.String())
	}
}

// TestPriorNeedsNoRoundTrip: the first request is the first call's.
func TestPriorNeedsNoRoundTrip(t *testing.T) {
	var first atomic.Value
	s := newSite(t, &site{other: func(_ http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) bool {
		first.CompareAndSwap(nil, mcp.MethodName(m.Method))
		return false
	}})
	before := connect(t, client.URL(s.url), nil)
	prior := before.Verdict()
	first = atomic.Value{}
	c := connect(t, client.URL(s.url), &client.Options{Prior: &prior})
	if first.Load() != nil {
		t.Errorf("connecting took %v", first.Load())
	}
	for range c.Prompts(t.Context()) {
	}
	if first.Load() != mcp.MethodListPrompts {
		t.Errorf("the first request is %v", first.Load())
	}
	if d, err := c.Server(t.Context()); err != nil || d.Capabilities.Tools == nil {
		t.Errorf("what the server says of itself: %v, %v", d, err)
	}
}

// TestServerThatHasBecomeLegacy is spoken to as such, at the first call that shows
// it.
func TestServerThatHasBecomeLegacy(t *testing.T) {
	s := newSite(t, &site{other: func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) bool {
		if r.Header.Get("Mcp-Session-Id") != "" || mcp.MethodName(m.Method) == mcp.MethodInitialize {
			return false
		}
		http.Error(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}`, http.StatusBadRequest)
		return true
	}})
	c := connect(t, client.URL(s.url), &client.Options{
		Prior: &client.Verdict{Era: mcp.Modern, Revision: mcp.NewestModern}, Healing: healsFast().Healing,
	})
	for _, err := range c.Prompts(t.Context()) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := c.Verdict().Era; got != mcp.Legacy || s.inits.Load() != 1 {
		t.Errorf("it is %v, with %d sessions", got, s.inits.Load())
	}
}

// TestServerOfAnotherEra replaces a server by one of the other era, of which the
// client learns by its answers.
func TestServerOfAnotherEra(t *testing.T) {
	for _, order := range [][2]mcp.Era{{mcp.Legacy, mcp.Modern}, {mcp.Modern, mcp.Legacy}} {
		t.Run(order[0].String()+" to "+order[1].String(), func(t *testing.T) {
			handlers := make(map[mcp.Era]*streamable.Handler)
			for _, era := range order {
				handlers[era] = streamable.NewHandler(demo.New("1"), &streamable.HandlerOptions{Era: era})
				t.Cleanup(handlers[era].Close)
			}
			var now atomic.Pointer[streamable.Handler]
			now.Store(handlers[order[0]])
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) }))
			t.Cleanup(h.Close) // after the client's
			c := connect(t, client.URL(h.URL), &client.Options{Healing: healsFast().Healing})
			for _, era := range order {
				now.Store(handlers[era])
				for _, err := range c.Prompts(t.Context()) {
					if err != nil {
						t.Error(err)
					}
				}
				if got := c.Verdict().Era; got != era {
					t.Errorf("the server is %v, and taken for %v", era, got)
				}
			}
		})
	}
}

// TestCallsOfAReplacedConnectionGoOn: a server that turns out to be another one, as in
// the middle of an upgrade, may still work on calls that it took before.
func TestCallsOfAReplacedConnectionGoOn(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed meanwhile: %v", closed), func(t *testing.T) {
			var modern atomic.Bool
			var deleted, executed atomic.Int64
			working, finish := make(chan struct{}), make(chan struct{})
			s := newSite(t, &site{other: func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) bool {
				tool, _ := m.Body.LookupString("name")
				switch method := mcp.MethodName(m.Method); {
				case method == mcp.MethodCallTool && tool == "slow":
					executed.Add(1)
					close(working)
					select {
					case <-finish:
					case <-r.Context().Done():
						return true
					}
				case modern.Load() && r.Header.Get("Mcp-Session-Id") != "":
					reply(w, m, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}}`)
					return true
				case !modern.Load() && method == mcp.MethodDiscover:
					reply(w, m, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`)
					return true
				}
				return false
			}})
			s.gone = func() { deleted.Add(1) }
			s.hear = func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				w.Header().Set("Content-Type", "text/event-stream")
				stream(w, "data: "+strings.ReplaceAll(anAck, "ID", string(m.ID.Raw()))+"\n\n")
				<-r.Context().Done()
			}
			c := connect(t, client.URL(s.url), healsFast())
			sub := listen(t, c, tools)
			if got := c.Verdict().Era; got != mcp.Legacy {
				t.Fatalf("the first connection is %v", got)
			}
			slow := make(chan error, 1)
			go func() {
				_, err := c.CallTool(t.Context(), "slow", nil, nil)
				slow <- err
			}()
			<-working
			modern.Store(true)
			if _, err := c.CallTool(t.Context(), "quick", nil, nil); err != nil || c.Verdict().Era != mcp.Modern {
				t.Fatalf("the second connection is %v, %v", c.Verdict().Era, err)
			}
			if got := nextEvent(t, sub); got != client.Resynced {
				t.Errorf("the subscription got %s", got)
			}
			select {
			case err := <-slow:
				t.Fatalf("the call before has ended: %v", err)
			default:
			}
			if !closed {
				close(finish)
			} else if err := c.Close(); err != nil {
				t.Error(err)
			}
			err := <-slow
			if kind, sent := outcome(err); (err == nil) == closed || closed && (kind != mcp.ConnectionLost || sent != mcp.MaybeExecuted) {
				t.Errorf("the call before ended with %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if deleted.Load() != 1 || executed.Load() != 1 {
				t.Errorf("%d sessions were ended, the call was executed %d times", deleted.Load(), executed.Load())
			}
		})
	}
}
