package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A polling server begins its reply to a call with an event's id, breaks it off,
// and goes on at each GET that names the id, as the script says.
type polling struct {
	begin  []string // of the reply to the POST
	resume []func(w http.ResponseWriter, lastID string, m *jsonrpc.Message)

	call    jsonrpc.Message
	resumed int
	times   []time.Time // of the end of the POST and of each GET
	ids     []string
}

func (s *polling) answer(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	lastID := r.Header.Get("Last-Event-Id")
	switch {
	case r.Method == "GET" && lastID == "":
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == "GET":
		s.times, s.ids = append(s.times, time.Now()), append(s.ids, lastID)
		if s.resumed < len(s.resume) {
			s.resumed++
			s.resume[s.resumed-1](w, lastID, &s.call)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	case string(m.Method) == "tools/call":
		s.call = *m
		writeStream(w, s.begin...)
		s.times = append(s.times, time.Now())
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func TestBrokenStreamIsResumed(t *testing.T) {
	result := func(w http.ResponseWriter, _ string, m *jsonrpc.Message) {
		writeStream(w, ":\n\n", "id: s-9\n"+resultEvent(m, `{"resumed":true}`))
	}
	status := func(status int) func(http.ResponseWriter, string, *jsonrpc.Message) {
		return func(w http.ResponseWriter, _ string, _ *jsonrpc.Message) { w.WriteHeader(status) }
	}
	stream := func(texts ...string) func(http.ResponseWriter, string, *jsonrpc.Message) {
		return func(w http.ResponseWriter, _ string, _ *jsonrpc.Message) { writeStream(w, texts...) }
	}
	busy := func(w http.ResponseWriter, _ string, _ *jsonrpc.Message) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	for _, tt := range []struct {
		name     string
		begin    []string
		resume   []func(http.ResponseWriter, string, *jsonrpc.Message)
		ids      []string
		wait     time.Duration // before the first GET
		pause    time.Duration // before the second, at least
		kind     mcp.FailureKind
		contains string
	}{
		{
			name: "B107 retry and id", begin: []string{"id: s-0\nretry: 250\ndata:\n\n"}, resume: []func(http.ResponseWriter, string, *jsonrpc.Message){result},
			ids: []string{"s-0"}, wait: 250 * time.Millisecond,
		},
		{
			name: "S1.101 the last id counts", begin: []string{"id: s-0\nretry: 1\ndata:\n\n", "id: s-1\n" + event(`{"jsonrpc":"2.0","method":"notifications/x"}`)},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){result}, ids: []string{"s-1"},
		},
		{
			name: "a server that breaks off again and again", begin: []string{"id: s-0\nretry: 1\ndata:\n\n"},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){stream("id: s-1\ndata:\n\n"), stream("id: s-2\ndata:\n\n"), stream("id: s-3\ndata:\n\n"), stream("id: s-4\ndata:\n\n"), result},
			ids:    []string{"s-0", "s-1", "s-2", "s-3", "s-4"},
		},
		{
			name: "a resumed stream without ids", begin: []string{"id: s-0\nretry: 1\ndata:\n\n"},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){stream(":\n\n"), result}, ids: []string{"s-0", "s-0"},
		},
		{
			name: "nothing new, too often", begin: []string{"id: s-0\nretry: 1\ndata:\n\n"},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){stream(""), stream(""), stream(""), result}, ids: []string{"s-0", "s-0", "s-0"},
			kind: mcp.ConnectionLost, contains: "ended without a response",
		},
		{
			name: "the server does not resume", begin: []string{"id: s-0\nretry: 1\ndata:\n\n"},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){status(405)}, ids: []string{"s-0"},
			kind: mcp.ConnectionLost, contains: "HTTP 405",
		},
		{
			name: "the server is busy, and resumes later", begin: []string{"id: s-0\nretry: 1\ndata:\n\n"},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){status(409), status(502), result}, ids: []string{"s-0", "s-0", "s-0"},
		},
		{
			name: "it says when", begin: []string{"id: s-0\nretry: 1\ndata:\n\n"},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){busy, result}, ids: []string{"s-0", "s-0"}, pause: time.Second,
		},
		{
			name: "it does not get better", begin: []string{"id: s-0\nretry: 1\ndata:\n\n"},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){status(503), status(500), status(429), result}, ids: []string{"s-0", "s-0", "s-0"},
			kind: mcp.ConnectionLost, contains: "HTTP 429",
		},
		{
			name: "it stays broken", begin: []string{"id: s-0\nretry: 1\ndata:\n\n"},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){status(501)}, ids: []string{"s-0"},
			kind: mcp.ConnectionLost, contains: "HTTP 501",
		},
		{
			name: "the session is lost", begin: []string{"id: s-0\nretry: 1\ndata:\n\n"},
			resume: []func(http.ResponseWriter, string, *jsonrpc.Message){status(404)}, ids: []string{"s-0"},
			kind: mcp.ConnectionLost, contains: streamable.ErrSessionLost.Error(),
		},
		{name: "no id", begin: []string{"retry: 1\ndata:\n\n"}, kind: mcp.ConnectionLost, contains: "ended without a response"},
		{name: "B074 an id that was taken back", begin: []string{"id: s-0\nretry: 1\ndata:\n\n", "id\ndata:\n\n"}, kind: mcp.ConnectionLost},
		{name: "an id that fits into no header", begin: []string{"id: a\x01b\nretry: 1\ndata:\n\n"}, kind: mcp.ConnectionLost},
		{name: "an event over the limit is not asked for again", begin: []string{"id: s-0\nretry: 1\ndata:\n\n", "id: s-1\n" + event(strings.Repeat("x", 2<<10))}, kind: mcp.LimitExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &polling{begin: tt.begin, resume: tt.resume}
			p := newPeer(t, legacyPeer("2025-11-25", "sid", s.answer))
			opts := knownEra(mcp.Legacy)
			opts.MaxBody = 1 << 10
			c := dial(t, p.url, opts)
			got, err := call(t, c, mcp.NoCaller{})
			if tt.kind == "" {
				if err != nil || got != `{"resumed":true}` {
					t.Fatalf("%s, %v", got, err)
				}
			} else {
				checkFailure(t, "the call", err, tt.kind, 0)
				if !strings.Contains(err.Error(), tt.contains) || mcp.OutcomeOf(err) != mcp.MaybeExecuted {
					t.Errorf("%v holds no %q", err, tt.contains)
				}
			}
			if fmt.Sprint(s.ids) != fmt.Sprint(tt.ids) {
				t.Errorf("B107: resumed from %q, want %q", s.ids, tt.ids)
			}
			if tt.wait > 0 && s.times[1].Sub(s.times[0]) < tt.wait-10*time.Millisecond {
				t.Errorf("B107: resumed after %v, want %v", s.times[1].Sub(s.times[0]), tt.wait)
			}
			if tt.pause > 0 && s.times[2].Sub(s.times[1]) < tt.pause-10*time.Millisecond {
				t.Errorf("resumed again after %v, want %v", s.times[2].Sub(s.times[1]), tt.pause)
			}
			for _, g := range p.seen("") {
				id, session, version := g.header.Get("Last-Event-Id"), g.header.Get("Mcp-Session-Id"), g.header.Get("Mcp-Protocol-Version")
				if g.verb == "POST" && id != "" || id != "" && (session != "sid" || version != "2025-11-25" || g.header.Get("Accept") != "text/event-stream") {
					t.Errorf("B107: %s %s with %v", g.verb, g.method, g.header)
				}
			}
			if n := len(p.seen("tools/call")); n != 1 {
				t.Errorf("D1.29: the tool was called %d times", n)
			}
		})
	}
}

func TestResumingEndsWithTheCall(t *testing.T) {
	s := &polling{begin: []string{"id: s-0\nretry: 3600000\ndata:\n\n"}}
	c := dial(t, newPeer(t, legacyPeer("2025-11-25", "sid", s.answer)).url, knownEra(mcp.Legacy))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := callWithin(ctx, c, mcp.NoCaller{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	closeSoon(t, c)
}

func TestModernStreamsAreNotResumed(t *testing.T) {
	p := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		writeStream(w, "id: s-0\nretry: 1\ndata:\n\n")
	}))
	c := dial(t, p.url, nil)
	_, err := call(t, c, mcp.NoCaller{})
	checkFailure(t, "the call", err, mcp.ConnectionLost, 0)
	if n := len(p.seen("GET")); n != 0 {
		t.Errorf("there were %d GETs", n)
	}
}

// TestCallIsPolledForAsLongAsItTakes_B107: a server that wants to be polled need not say
// anything new each time; one that holds no stream has lost the call.
func TestCallIsPolledForAsLongAsItTakes_B107(t *testing.T) {
	for name, tt := range map[string]struct {
		retry string
		hold  time.Duration // how long each stream lasts
		polls int           // at most
		lost  bool
	}{
		"polled":           {"retry: 500\n", 2 * time.Second, 30, false},
		"not to be polled": {"", 2 * time.Second, 3, true},
		"ended at once":    {"retry: 500\n", 0, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				polls := 0
				var id string
				server := newBubbled(t, func(_ context.Context, m *jsonrpc.Message) string {
					id = m.ID.String()
					switch method := string(m.Method); {
					case method == mcp.MethodInitialize:
						return `{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`
					case method == mcp.MethodCallTool:
						return "id: 1\n" + tt.retry + "data:\n\n"
					}
					return ""
				})
				server.stream = nil // of its own
				opts := knownEra(mcp.Legacy)
				opts.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Header.Get("Last-Event-Id") == "" {
						return server.RoundTrip(r)
					}
					text := ":\n\n"
					if polls++; polls == 30 {
						text = event(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]}}`)
					}
					body, stream := io.Pipe()
					go func() {
						_, _ = io.WriteString(stream, text)
						time.AfterFunc(tt.hold, func() { _ = stream.Close() })
					}()
					header := http.Header{"Content-Type": {"text/event-stream"}}
					return &http.Response{StatusCode: 200, Header: header, Body: body, ContentLength: -1, Request: r}, nil
				})
				c, err := streamable.Dial(t.Context(), "http://localhost/mcp", opts)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				result, err := c.Handle(t.Context(), toolRequest("t", "{}"), mcp.NoCaller{})
				if (err != nil) != tt.lost || !tt.lost && string(result.Raw()) != `{"content":[]}` || polls != tt.polls {
					t.Errorf("%s, %v after %d polls", result.Raw(), err, polls)
				}
			})
		})
	}
}
