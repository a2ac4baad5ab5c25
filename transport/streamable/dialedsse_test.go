package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestHandshakeWithAnOldServer: nothing overtakes what must come before it.
func TestHandshakeWithAnOldServer_B040(t *testing.T) {
	released := make(chan struct{})
	s := newOldServer(t, endpointIs("/m"), func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
		switch string(m.Method) {
		case "notifications/initialized":
			<-time.After(50 * time.Millisecond)
			close(released)
		case "tools/call":
			select {
			case <-released:
			default:
				t.Error("B040: a call overtook notifications/initialized")
			}
		}
		s.take(w, m)
	})
	c := dialSSE(t, s.url, nil)
	mustCall(t, c)
	if got, want := s.order(), []string{"GET", "initialize", "notifications/initialized", "tools/call"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q", got)
	}
}

func TestHandshakeThatAnOldServerRefuses(t *testing.T) {
	for _, method := range []string{"initialize", "notifications/initialized"} {
		s := newOldServer(t, endpointIs("/m"), func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
			if string(m.Method) == method {
				http.Error(w, "not in the mood", http.StatusBadRequest)
				return
			}
			s.take(w, m)
		})
		err := notConnected(t, s.url, nil)
		if status, ok := errors.AsType[*streamable.StatusError](err); !ok || status.Status != 400 || !strings.Contains(err.Error(), "not in the mood") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestStatusOfAPost: a POST that is not taken fails its call, and no other.
func TestStatusOfAPost_B079(t *testing.T) {
	for _, tt := range []struct {
		status  int
		kind    mcp.FailureKind // empty: taken
		outcome mcp.Outcome
		ends    bool // the connection
	}{
		{status: 200}, {status: 202}, {status: 204},
		{status: 400, kind: mcp.BadReply, outcome: mcp.Answered},
		{status: 401, kind: mcp.BadReply, outcome: mcp.Answered},
		{status: 403, kind: mcp.BadReply, outcome: mcp.Answered},
		{status: 413, kind: mcp.BadReply, outcome: mcp.Answered},
		{status: 429, kind: mcp.BadReply, outcome: mcp.Answered},
		{status: 503, kind: mcp.BadReply, outcome: mcp.Answered},
		{status: 500, kind: mcp.BadReply, outcome: mcp.MaybeExecuted},
		{status: 502, kind: mcp.BadReply, outcome: mcp.MaybeExecuted},
		{status: 504, kind: mcp.BadReply, outcome: mcp.MaybeExecuted},
		{status: 404, kind: mcp.ConnectionLost, outcome: mcp.NotSent, ends: true},
		{status: 410, kind: mcp.ConnectionLost, outcome: mcp.NotSent, ends: true},
	} {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			refused := false
			s := newOldServer(t, endpointIs("/m?session=hidden-secret"), atCalls(func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
				if refused {
					s.take(w, m)
					return
				}
				if tt.kind == "" {
					w.WriteHeader(tt.status)
					if tt.status == 200 {
						_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":99,"result":{"not":"this"}}`)
					}
					s.answer(m)
					return
				}
				refused = true
				w.Header().Set("Retry-After", "7")
				http.Error(w, "why hidden-secret", tt.status)
			}))
			c := dialSSE(t, s.url, nil)
			result, err := call(t, c, mcp.NoCaller{})
			if tt.kind == "" {
				if err != nil || result != `{"content":[]}` {
					t.Errorf("B079: %s, %v", result, err)
				}
				return
			}
			e, ok := errors.AsType[*mcp.CallError](err)
			if !ok || e.Kind != tt.kind || e.Outcome != tt.outcome || e.Method != mcp.MethodCallTool {
				t.Fatalf("%v", err)
			}
			status, isStatus := errors.AsType[*streamable.StatusError](err)
			auth, isAuth := errors.AsType[*streamable.AuthError](err)
			switch {
			case isStatus && status.Status == tt.status && status.RetryAfter == 7*time.Second && strings.Contains(err.Error(), "why ***"):
			case isAuth && auth.Status == tt.status:
			default:
				t.Errorf("D1.26: the error is %v", err)
			}
			if tt.ends {
				await(t, c.Done())
				if !errors.Is(err, streamable.ErrSessionLost) || !errors.Is(c.Err(), streamable.ErrSessionLost) {
					t.Errorf("%v, %v", err, c.Err())
				}
				return
			}
			mustCall(t, c)
		})
	}
}

// TestPostThatIsAnsweredLate: some servers answer the POST of a call when the
// call has ended. It holds up neither others nor the server's questions.
func TestPostThatIsAnsweredLate(t *testing.T) {
	answered := make(chan string, 1)
	s := newOldServer(t, endpointIs("/m"), atCalls(func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
		switch {
		case m.Kind == jsonrpc.Response:
			answered <- string(m.Body.Raw())
			w.WriteHeader(http.StatusAccepted)
		case string(m.Method) == "ping":
			s.take(w, m)
		default:
			s.stream <- event(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":` + question + `}`)
			answered <- await(t, answered)
			s.answer(m)
			<-time.After(100 * time.Millisecond)
			w.WriteHeader(http.StatusOK)
		}
	}))
	opts := knownEra(mcp.Legacy)
	opts.Capabilities = []byte(`{"elicitation":{}}`)
	c := dialSSE(t, s.url, opts)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	asked := callerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if _, err := c.Handle(ctx, &mcp.Request{Method: mcp.MethodPing}, mcp.NoCaller{}); err != nil {
			t.Errorf("another call: %v", err)
		}
		return raw(`{"action":"decline"}`)
	})
	if _, err := callWithin(ctx, c, asked); err != nil {
		t.Fatal(err)
	}
	if got := await(t, answered); got != `{"action":"decline"}` {
		t.Errorf("the answer is %s", got)
	}
}

// TestCancellationIsTakenBeforeTheAnswer: also by a server that takes its time.
func TestCancellationIsTakenBeforeTheAnswer_B151(t *testing.T) {
	answered, order := make(chan struct{}), make(chan string, 2)
	s := newOldServer(t, endpointIs("/m"), atCalls(func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
		switch {
		case m.Kind == jsonrpc.Response:
			close(answered)
			order <- "answer"
		case string(m.Method) == mcp.NotificationCancelled:
			select {
			case <-answered:
			case <-time.After(20 * time.Millisecond):
			}
			order <- "cancellation"
		default:
			s.stream <- event(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":` + question + `}`)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	opts := knownEra(mcp.Legacy)
	opts.Capabilities = []byte(`{"elicitation":{}}`)
	c := dialSSE(t, s.url, opts)
	ctx, cancel := context.WithCancel(t.Context())
	asked := callerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		cancel()
		<-ctx.Done()
		return mcp.Result{}, ctx.Err()
	})
	if _, err := callWithin(ctx, c, asked); err == nil {
		t.Error("the call succeeds")
	}
	if first, second := await(t, order), await(t, order); first != "cancellation" || second != "answer" {
		t.Errorf("the server takes the %s, then the %s", first, second)
	}
}

// callerFunc is a caller that can be asked.
type callerFunc func(context.Context, *mcp.Request) (mcp.Result, error)

func (callerFunc) Notify(context.Context, *mcp.Notification) error { return nil }

func (f callerFunc) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return f(ctx, req)
}

func TestCallThatAnOldServerNeverAnswers(t *testing.T) {
	for _, taken := range []bool{true, false} { // or the POST stays open
		failed := make(chan error, 1)
		release := make(chan struct{})
		s := newOldServer(t, endpointIs("/m"), atCalls(func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
			if string(m.Method) == "tools/call" && !taken {
				<-release
			}
			w.WriteHeader(http.StatusAccepted)
		}))
		c := dialSSE(t, s.url, nil)
		ctx, expire := faulttest.Expiring(t)
		go func() {
			_, err := callWithin(ctx, c, mcp.NoCaller{})
			failed <- err
		}()
		s.await(t, "tools/call", 1)
		expire()
		err := await(t, failed)
		close(release)
		if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.TimedOut || e.Outcome != mcp.MaybeExecuted {
			t.Errorf("taken %v: %v", taken, err)
		}
		if body := s.await(t, "notifications/cancelled", 1)[0].body; !strings.Contains(body, `"requestId":2`) {
			t.Errorf("B136: %s", body)
		}
		closeEdge(t, c)
	}
}

func TestStreamThatEnds(t *testing.T) {
	for _, tt := range []struct {
		name, last string
		result     bool
		text       string
	}{
		{"cleanly", "", false, "the server ended the event stream"},
		{"B071 in an event", `data: {"jsonrpc":"2.0","id":2,"resu`, false, "truncated"},
		{"B071 in an event of a question", `data: {"jsonrpc":"2.0","id":2,"method":"ping"}`, false, "truncated"},
		{"B071 in the end of a response", `data: {"jsonrpc":"2.0","id":2,"result":{"content":[]}}`, true, "truncated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newOldServer(t, endpointIs("/m"), atCalls(func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
				w.WriteHeader(http.StatusAccepted)
				s.stream <- tt.last
				close(s.stream)
			}))
			c := dialSSE(t, s.url, nil)
			_, err := call(t, c, mcp.NoCaller{})
			e, ok := errors.AsType[*mcp.CallError](err)
			if tt.result && err != nil || !tt.result && (!ok || e.Kind != mcp.ConnectionLost || e.Outcome != mcp.MaybeExecuted) {
				t.Errorf("B071: %v", err)
			}
			await(t, c.Done())
			if !strings.Contains(c.Err().Error(), tt.text) {
				t.Errorf("the connection ended with %v", c.Err())
			}
			if _, err := call(t, c, mcp.NoCaller{}); mcp.OutcomeOf(err) != mcp.NotSent {
				t.Errorf("a call after the end: %v", err)
			}
		})
	}
}

// TestEventsOfNoUse are passed over; the connection goes on.
func TestEventsOfNoUse(t *testing.T) {
	second := newPeer(t, justAnswer)
	var log journal
	opts := knownEra(mcp.Legacy)
	opts.Logger, opts.MaxBody = log.logger(), 64<<10
	s := newOldServer(t, endpointIs("/m"), nil)
	c := dialSSE(t, s.url, opts)
	for _, text := range []string{
		endpointIs("/elsewhere"), endpointIs(second.url), "event: heartbeat\ndata: {}\n\n", "data:\n\n", ": comment\n\n", "data: garbage\n\n",
		event(`{"jsonrpc":"2.0","id":99,"result":{}}`), event(`{"x":"` + strings.Repeat("x", 100<<10) + `"}`), "data: the last garbage\n\n",
	} {
		s.stream <- text
	}
	s.stream <- strings.Repeat(endpointIs("/elsewhere"), 500)
	// The long event fails what is in flight, since it may have been the answer:
	// the call comes after the garbage behind it.
	eventually(t, func() bool { return strings.Contains(log.String(), "MaxBody") && c.Noise() >= 3 })
	mustCall(t, c)
	for _, p := range s.seen("POST") {
		if p.url != "/m" {
			t.Errorf("B077: posted to %s", p.url)
		}
	}
	if n := strings.Count(log.String(), "a further endpoint was passed over"); len(second.seen("")) > 0 || n < 2 || n > 10 {
		t.Errorf("the second origin got %q; the log is %s", second.order(), log.String())
	}
}

func TestPostingIsBounded_TK1(t *testing.T) {
	release := make(chan struct{})
	s := newOldServer(t, endpointIs("/m"), atCalls(func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
		if string(m.Method) == "tools/call" {
			<-release
		}
		s.take(w, m)
	}))
	c := dialSSE(t, s.url, nil)
	ended := make(chan error, streamable.MaxPosting)
	for range streamable.MaxPosting {
		go func() {
			_, err := call(t, c, mcp.NoCaller{})
			ended <- err
		}()
	}
	s.await(t, "tools/call", streamable.MaxPosting)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := callWithin(ctx, c, mcp.NoCaller{})
	if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.TimedOut || e.Outcome != mcp.NotSent || !strings.Contains(err.Error(), fmt.Sprintf("%d messages wait", streamable.MaxPosting)) {
		t.Errorf("one more: %v", err)
	}
	// What is no call has slots of its own.
	if _, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.NotificationRootsListChanged, Notification: true}, mcp.NoCaller{}); err != nil {
		t.Errorf("a notification: %v", err)
	}
	s.await(t, string(mcp.NotificationRootsListChanged), 1)
	close(release)
	for range streamable.MaxPosting {
		if err := await(t, ended); err != nil {
			t.Error(err)
		}
	}
	mustCall(t, c)
}

func TestTapOfHTTPWithSSE(t *testing.T) {
	var log journal
	opts := knownEra(mcp.Legacy)
	opts.Tap = func(outgoing bool, message []byte) { _, _ = fmt.Fprintf(&log, "%v %s\n", outgoing, message) }
	s := newOldServer(t, endpointIs("/m"), nil)
	mustCall(t, dialSSE(t, s.url, opts))
	for _, want := range []string{
		`true {"jsonrpc":"2.0","id":1,"method":"initialize"`, `false {"jsonrpc":"2.0","id":1,"result":`, `true {"jsonrpc":"2.0","method":"notifications/initialized"`,
		`true {"jsonrpc":"2.0","id":2,"method":"tools/call"`, `false {"jsonrpc":"2.0","id":2,"result":{"content":[]}}`,
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%s is missing in\n%s", want, log.String())
		}
	}
}

// TestPoolConnectsAnewToAnOldServer: a server that has lost the session has not
// executed the call.
func TestPoolConnectsAnewToAnOldServer_B097(t *testing.T) {
	lost := false
	s := newOldServer(t, endpointIs("/m"), atCalls(func(s *oldServer, w http.ResponseWriter, m *jsonrpc.Message) {
		if !lost {
			lost = true
			http.Error(w, "Session not found", http.StatusNotFound)
			return
		}
		s.take(w, m)
	}))
	pool := transport.NewPool(func(ctx context.Context, _ *mcp.Metadata) (transport.Edge, error) {
		return streamable.DialSSE(ctx, s.url, nil)
	}, transport.PoolOptions{Logger: logger})
	defer func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}()
	mustCall(t, pool)
	if n := len(s.seen("GET")); n != 2 {
		t.Errorf("%d connections", n)
	}
}
