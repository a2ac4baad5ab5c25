package streamable_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// splitGet has get answer GETs and post POSTs.
func splitGet(get, post answerer) answerer {
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if r.Method == "GET" {
			get(w, r, m)
			return
		}
		post(w, r, m)
	}
}

func justAnswer(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	if m.Kind == jsonrpc.Request {
		writeResult(w, m, `{}`)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// TestGetThatIsNoStream refuses the GET stream in many ways, none of which harms
// anything.
func TestGetThatIsNoStream(t *testing.T) {
	for _, tt := range []struct {
		name  string
		get   answerer
		level string
	}{
		{"B086 S1.97 405", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { w.WriteHeader(405) }, "DEBUG"},
		{"B086 404", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { http.NotFound(w, r) }, "INFO"},
		{"B086 406", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { w.WriteHeader(406) }, "INFO"},
		{"B086 400", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { w.WriteHeader(400) }, "INFO"},
		{"B086 501", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { w.WriteHeader(501) }, "DEBUG"},
		{"B086 HTML", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { _, _ = io.WriteString(w, "<html>") }, "INFO"},
		{"D1.23 401", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { w.WriteHeader(401) }, "WARN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log journal
			p := newPeer(t, legacyPeer("2025-11-25", "s", splitGet(tt.get, justAnswer)))
			opts := knownEra(mcp.Legacy)
			opts.Logger = log.logger()
			c := dial(t, p.url, opts)
			p.await(t, "GET", 1)
			for range 3 {
				if _, err := call(t, c, mcp.NoCaller{}); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, func() bool { return strings.Contains(log.String(), "offers no stream") })
			closeSoon(t, c)
			if n := len(p.seen("GET")); n != 1 {
				t.Errorf("B086: %d GETs", n)
			}
			if n := strings.Count(log.String(), "offers no stream"); n != 1 || !strings.Contains(log.String(), "level="+tt.level+` msg="the server offers`) {
				t.Errorf("B086: the log is %s", log.String())
			}
			if n := len(p.seen("DELETE")); n != 1 {
				t.Errorf("%d DELETEs", n)
			}
		})
	}
}

// TestGetThatIsNotMadeAgain_S197_B086: in a day, after a refusal that speaks of the
// stream; one that speaks of the moment is no such refusal.
func TestGetThatIsNotMadeAgain_S197_B086(t *testing.T) {
	for status, again := range map[int]bool{
		405: false, 404: false, 400: false, 401: false, 406: false, 501: false, 200: false, 429: true, 500: true, 503: true,
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &refusingServer{silentServer: silentServer{t: t}, status: status}
				opts := knownEra(mcp.Legacy)
				opts.Transport = s
				c, err := streamable.Dial(t.Context(), "http://refusing.example", opts)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(24 * time.Hour)
				if n := s.asked.Load(); (n > 1) != again || n == 0 {
					t.Errorf("the stream was asked for %d times", n)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A refusingServer is a server in this process that has no stream outside calls.
type refusingServer struct {
	silentServer
	status int // of the reply to GET
	asked  atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (s *refusingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return s.silentServer.RoundTrip(r)
	}
	s.asked.Add(1)
	return &http.Response{StatusCode: s.status, Header: make(http.Header), Request: r, Body: http.NoBody}, nil
}

func TestGetThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	p := newPeer(t, legacyPeer("2025-11-25", "s", splitGet(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		<-r.Context().Done()
	}, justAnswer)))
	began := time.Now()
	opts := knownEra(mcp.Legacy)
	opts.Capabilities = []byte(capabilities) // it could be asked something
	c := dial(t, p.url, opts)
	if _, err := call(t, c, mcp.NoCaller{}); err != nil {
		t.Error(err)
	}
	closeSoon(t, c)
	if took := time.Since(began); took > patience {
		t.Errorf("B086: it took %v", took)
	}
}

func TestListenerReopensItsStream(t *testing.T) {
	var opened atomic.Int64
	times := make(chan time.Time, 10)
	p := newPeer(t, legacyPeer("2025-11-25", "s", splitGet(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		times <- time.Now()
		switch opened.Add(1) {
		case 1:
			writeStream(w, "retry: 150\nid: g-0\ndata:\n\n", "id: g-1\n"+event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`), "data: keepalive\n\n", "data: cut off")
		case 2:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			writeStream(w, event(strings.Repeat("x", 3<<10)), event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
			<-r.Context().Done()
		}
	}, justAnswer)))
	var log journal
	opts := knownEra(mcp.Legacy)
	opts.MaxBody, opts.Logger = 2<<10, log.logger()
	c := dial(t, p.url, opts)
	ctx, cancel := context.WithCancel(t.Context())
	r := newRecorder()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Handle(ctx, &mcp.Request{Method: mcp.MethodListen, Params: jsonrpc.Trusted([]byte(`{"notifications":{"toolsListChanged":true}}`))}, r)
		ended <- err
	}()
	// What comes before the acknowledgement waits for it.
	if got := await(t, r.signal); !strings.HasPrefix(got, "notifications/subscriptions/acknowledged") {
		t.Errorf("B121: first came %s", got)
	}
	gets := p.await(t, "GET", 3)
	// "data: keepalive" and the event over the limit.
	eventually(t, func() bool { return c.Noise() == 2 })
	if got := await(t, r.signal); !strings.HasPrefix(got, "notifications/tools/list_changed") {
		t.Errorf("after that came %s", got)
	}
	if c.Err() != nil {
		t.Errorf("S1.77, S1.100, D1.28: the connection ended with its stream: %v", c.Err())
	}
	if n := strings.Count(log.String(), `level=WARN msg="the stream outside calls has ended" err="HTTP 503`); n != 1 {
		t.Errorf("S1.97: the log is %s", log.String())
	}
	cancel()
	await(t, ended)
	first, second, third := await(t, times), await(t, times), await(t, times)
	if second.Sub(first) < 140*time.Millisecond || third.Sub(second) < 1900*time.Millisecond {
		t.Errorf("S1.101: reopened after %v and %v", second.Sub(first), third.Sub(second))
	}
	for i, want := range []string{"", "g-1", "g-1"} {
		if got := gets[i].header.Get("Last-Event-Id"); got != want {
			t.Errorf("S1.101: GET %d goes on after %q, want %q", i, got, want)
		}
		if gets[i].header.Get("Accept") != "text/event-stream" || gets[i].header.Get("Content-Type") != "" {
			t.Errorf("B085: GET has the headers %v", gets[i].header)
		}
	}
}

// TestListenerForgetsAnIDThatIsRefused_B109 meets a server that does not keep what
// came after the last event.
func TestListenerForgetsAnIDThatIsRefused_B109(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusGone} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int64
			p := newPeer(t, legacyPeer("2025-11-25", "s", splitGet(func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
				switch opened.Add(1) {
				case 1:
					writeStream(w, "retry: 100\nid: g-0\ndata:\n\n")
				case 2:
					w.WriteHeader(status)
				case 3:
					writeStream(w, ":\n\n")
					<-r.Context().Done()
				}
			}, justAnswer)))
			c := dial(t, p.url, knownEra(mcp.Legacy))
			for i, get := range p.await(t, "GET", 3) {
				if got, want := get.header.Get("Last-Event-Id"), []string{"", "g-0", ""}[i]; got != want {
					t.Errorf("GET %d goes on after %q, want %q", i, got, want)
				}
			}
			if c.Err() != nil {
				t.Errorf("the connection ended: %v", c.Err())
			}
		})
	}
}

// TestQuestions has a server ask in the two ways that there are, and checks that
// its call goes on.
func TestQuestions(t *testing.T) {
	const soon = 20 * time.Millisecond
	const ask = `{"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":` + question + `}`
	for _, tt := range []struct {
		name         string
		onGet        bool
		opening      time.Duration // of the GET stream
		capabilities string
		want         string
	}{
		{"on the stream of the call", false, soon, capabilities, `"result":{"action":"accept","content":{"name":"Ada"}}`},
		{"on the GET stream", true, soon, capabilities, `"result":{"action":"accept","content":{"name":"Ada"}}`},
		{"on the GET stream of a server that is far away", true, 600 * time.Millisecond, capabilities, `"result":{"action":"accept","content":{"name":"Ada"}}`},
		{"B044 what the client did not declare, on the stream of the call", false, soon, `{}`, `"error":{"code":-32601`},
		{"B044 what the client did not declare, on the GET stream", true, soon, `{}`, `"error":{"code":-32601`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onGet, answered := make(chan string), make(chan string, 1)
			var open atomic.Bool
			p := newPeer(t, legacyPeer("2025-11-25", "s", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case r.Method == "GET":
					<-time.After(tt.opening)
					open.Store(true)
					writeStream(w, ":\n\n")
					select {
					case text := <-onGet:
						writeMore(w, event(text))
					case <-r.Context().Done():
					}
					<-r.Context().Done()
				case m.Kind == jsonrpc.Response:
					// Slowly, as over a long way.
					<-time.After(150 * time.Millisecond)
					if r.Context().Err() != nil {
						t.Error("the answer was not awaited")
					}
					w.WriteHeader(http.StatusAccepted)
					answered <- string(m.Body.Raw())
				case string(m.Method) != "tools/call":
					justAnswer(w, r, m)
				case tt.onGet:
					if !open.Load() {
						t.Error("S1.96: the call came before there was a GET stream")
					}
					onGet <- ask
					writeStream(w, resultEvent(m, `{"answer":`+await(t, answered)+`}`))
				default:
					writeStream(w, event(ask), event(`{"jsonrpc":"2.0","id":"p","method":"ping"}`))
					await(t, answered)
					writeMore(w, resultEvent(m, `{"answer":`+await(t, answered)+`}`))
				}
			}))
			opts := knownEra(mcp.Legacy)
			opts.Capabilities = []byte(tt.capabilities)
			c := dial(t, p.url, opts)
			if tt.onGet && tt.capabilities == "{}" { // for which nobody waits
				eventually(t, open.Load)
			}
			var caller mcp.Caller = newRecorder()
			if tt.capabilities == "{}" {
				caller = mcp.NoCaller{}
			}
			if _, err := call(t, c, caller); err != nil {
				t.Fatal(err)
			}
			found := false
			for _, s := range p.seen("POST") {
				if strings.Contains(s.body, `"id":"q-1"`) {
					found = found || strings.Contains(s.body, tt.want)
				}
				if strings.Contains(s.body, `"id":"p"`) && s.body != `{"jsonrpc":"2.0","id":"p","result":{}}` {
					t.Errorf("B041: the ping was answered with %s", s.body)
				}
			}
			if !found {
				t.Errorf("the question was not answered with %s: %q", tt.want, p.seen("POST"))
			}
		})
	}
}

// TestServerSpeaksDuringInitialize writes much before the result of initialize.
func TestServerSpeaksDuringInitialize(t *testing.T) {
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case string(m.Method) == "initialize":
			writeStream(w, event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}`),
				event(`{"jsonrpc":"2.0","id":"s1","method":"ping"}`), event(`{"jsonrpc":"2.0","id":"s2","method":"roots/list"}`),
				event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`),
				resultEvent(m, `{"protocolVersion":"2025-11-25","capabilities":{}}`))
		case m.Kind == jsonrpc.Response:
			w.WriteHeader(http.StatusAccepted)
		default:
			legacyPeer("2025-11-25", "", nil)(w, r, m)
		}
	})
	c := dial(t, p.url, knownEra(mcp.Legacy))
	// B041: both are answered.
	eventually(t, func() bool {
		var said strings.Builder
		for _, s := range p.seen("POST") {
			said.WriteString(s.body)
		}
		return strings.Contains(said.String(), `{"jsonrpc":"2.0","id":"s1","result":{}}`) && strings.Contains(said.String(), `"id":"s2","error":{"code":-32601`)
	})
	if _, err := call(t, c, mcp.NoCaller{}); err != nil {
		t.Error(err)
	}
}

func TestAnswerOnTheGetStream(t *testing.T) {
	calls, hungUp := make(chan string, 1), make(chan bool, 1)
	p := newPeer(t, legacyPeer("2025-11-25", "s", splitGet(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		writeStream(w, ":\n\n")
		select {
		case id := <-calls:
			writeMore(w, event(`{"jsonrpc":"2.0","id":`+id+`,"result":{"by":"GET"}}`))
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	}, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "tools/call" {
			calls <- m.ID.String()
			<-r.Context().Done()
			hungUp <- true
			return
		}
		justAnswer(w, r, m)
	})))
	c := dial(t, p.url, knownEra(mcp.Legacy))
	if got, err := call(t, c, mcp.NoCaller{}); err != nil || got != `{"by":"GET"}` {
		t.Errorf("%s, %v", got, err)
	}
	await(t, hungUp) // nobody waits for the reply to the POST any more
}

// TestErrorOfNobodyOnTheGetStream: an error without an id is not that of the call in
// flight, whose POST has a reply of its own.
func TestErrorOfNobodyOnTheGetStream(t *testing.T) {
	for _, id := range []string{"", `"id":null,`} {
		toGet, heard := make(chan string), make(chan struct{})
		p := newPeer(t, legacyPeer("2025-11-25", "s", splitGet(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			writeStream(w, ":\n\n")
			select {
			case text := <-toGet:
				writeMore(w, text)
				<-r.Context().Done()
			case <-r.Context().Done():
			}
		}, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if string(m.Method) != "tools/call" {
				justAnswer(w, r, m)
				return
			}
			token := m.Meta.Get("progressToken")
			toGet <- event(`{"jsonrpc":"2.0",`+id+`"error":{"code":-32600,"message":"what was that?"}}`) +
				event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+string(token.Raw())+`,"progress":1}}`)
			select {
			case <-heard:
			case <-r.Context().Done():
			}
			writeResult(w, m, `{}`)
		})))
		c := dial(t, p.url, &streamable.DialOptions{DialOptions: transport.DialOptions{Era: mcp.Legacy}})
		r := newRecorder()
		req := toolRequest("t", "{}")
		req.Meta.ProgressToken = jsonrpc.StringID("mine")
		go func() {
			defer close(heard)
			select {
			case <-r.signal:
			case <-t.Context().Done():
			}
		}()
		if _, err := c.Handle(t.Context(), req, r); err != nil {
			t.Errorf("an error %q ended the call: %v", id, err)
		}
	}
}

func TestCloseIsBounded(t *testing.T) {
	for name, onDelete := range map[string]answerer{
		"D1.22 DELETE hangs": func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { <-r.Context().Done() },
		"S1.74 405":          func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { w.WriteHeader(405) },
		"S1.80 500 and a lot": func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			http.Error(w, strings.Repeat("x", 1<<20), 500)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch r.Method {
				case "DELETE":
					onDelete(w, r, m)
				case "GET":
					writeStream(w, ":\n\n")
					<-r.Context().Done()
				default:
					legacyPeer("2025-11-25", "s", nil)(w, r, m)
				}
			})
			c := dial(t, p.url, knownEra(mcp.Legacy))
			p.await(t, "GET", 1)
			began := time.Now()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > patience {
				t.Errorf("D1.22: it took %v", took)
			}
			// S1.75, S1.76
			await(t, c.Done())
			if !errors.Is(c.Err(), mcp.ErrClosed) {
				t.Errorf("S1.76: the connection ended with %v", c.Err())
			}
			s := p.seen("DELETE")
			if len(s) != 1 || s[0].header.Get("Mcp-Session-Id") != "s" || s[0].header.Get("Mcp-Protocol-Version") != "2025-11-25" {
				t.Errorf("S1.80: %v", s)
			}
		})
	}
	// Without a session there is nothing to end.
	p := newPeer(t, legacyPeer("2025-11-25", "", nil))
	closeSoon(t, dial(t, p.url, knownEra(mcp.Legacy)))
	m := newPeer(t, modernPeer(nil))
	closeSoon(t, dial(t, m.url, nil))
	if len(p.seen("DELETE"))+len(m.seen("DELETE")) != 0 {
		t.Error("a DELETE without a session")
	}
}

func TestProgressThroughBothStreams(t *testing.T) {
	for _, onGet := range []bool{false, true} {
		toGet, heard := make(chan string), make(chan struct{})
		p := newPeer(t, legacyPeer("2025-11-25", "s", splitGet(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			writeStream(w, ":\n\n")
			for {
				select {
				case text := <-toGet:
					writeMore(w, event(text))
				case <-r.Context().Done():
					return
				}
			}
		}, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if string(m.Method) != "tools/call" {
				justAnswer(w, r, m)
				return
			}
			writeStream(w)
			token := m.Meta.Get("progressToken")
			for _, t := range []string{`"unknown"`, string(token.Raw())} {
				text := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + t + `,"progress":1}}`
				if onGet {
					toGet <- text
				} else {
					writeMore(w, event(text))
				}
			}
			if onGet {
				<-heard
			}
			writeMore(w, resultEvent(m, `{}`))
		})))
		c := dial(t, p.url, &streamable.DialOptions{DialOptions: transport.DialOptions{Era: mcp.Legacy}})
		r := newRecorder()
		req := toolRequest("t", "{}")
		req.Meta.ProgressToken = jsonrpc.StringID("mine")
		ended := make(chan error, 1)
		go func() {
			_, err := c.Handle(t.Context(), req, r)
			ended <- err
		}()
		// B139: with the caller's own token, and none for an unknown one.
		if got := await(t, r.signal); got != `notifications/progress {"progressToken":"mine","progress":1}` {
			t.Errorf("B139: on the GET stream %v: %s", onGet, got)
		}
		if onGet {
			heard <- struct{}{}
		}
		if err := await(t, ended); err != nil || len(r.lines()) != 1 {
			t.Errorf("%v, %q", err, r.lines())
		}
	}
}

// TestListenerFindsOutThatTheSessionIsLost_B098: a client that only listens learns
// of it too.
func TestListenerFindsOutThatTheSessionIsLost_B098(t *testing.T) {
	for name, refuse := range map[string]http.HandlerFunc{
		"404": http.NotFound,
		"400": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		},
		"404 with a body that does not come to its end": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			writeMore(w, "Not")
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var opened atomic.Int64
			p := newPeer(t, legacyPeer("2025-11-25", "s", splitGet(func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
				if opened.Add(1) > 1 {
					refuse(w, r)
					return
				}
				writeStream(w, "retry: 100\nid: g-0\ndata:\n\n")
			}, justAnswer)))
			c := dial(t, p.url, knownEra(mcp.Legacy))
			await(t, c.Done())
			if !errors.Is(c.Err(), streamable.ErrSessionLost) {
				t.Errorf("the connection ended with %v", c.Err())
			}
		})
	}
}

// TestKnownModernServerIsNotAsked makes a connection without a round trip.
func TestKnownModernServerIsNotAsked(t *testing.T) {
	p := newPeer(t, justAnswer)
	opts := knownEra(mcp.Modern)
	opts.Revision = mcp.NewestModern
	c := dial(t, p.url, opts)
	if n := len(p.seen("POST")); n != 0 {
		t.Errorf("connecting took %d requests", n)
	}
	if info := c.Server(); info.Era != mcp.Modern || info.Revision != mcp.NewestModern || !info.Discover.IsZero() {
		t.Errorf("the server is %+v", info)
	}
	if _, err := call(t, c, mcp.NoCaller{}); err != nil {
		t.Error(err)
	}
}
