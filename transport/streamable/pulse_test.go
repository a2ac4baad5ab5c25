package streamable_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A script is what a stream brings: texts, each after a pause. After the last of
// them it is silent, for ever if nobody ends it.
type script []struct {
	after time.Duration
	text  string
}

// A silentStream is the body of a stream whose peer is gone after its script, unless
// it ends it.
type silentStream struct {
	script script
	ends   bool
	closed chan struct{}
	once   sync.Once
}

func newSilentStream(s script) *silentStream {
	return &silentStream{script: s, closed: make(chan struct{})}
}

func (s *silentStream) Read(p []byte) (int, error) {
	var timer <-chan time.Time // never
	if len(s.script) == 0 && s.ends {
		return 0, io.EOF
	}
	if len(s.script) > 0 {
		timer = time.After(s.script[0].after)
	}
	select {
	case <-timer:
		n := copy(p, s.script[0].text)
		s.script = s.script[1:]
		return n, nil
	case <-s.closed:
		return 0, errors.New("closed")
	}
}

func (s *silentStream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// A silentServer is a server in this process whose streams go silent.
type silentServer struct {
	t       *testing.T
	scripts []script // of its streams, in order
	opened  chan time.Duration
	began   time.Time
	refused int  // the status of every second GET, 0 for none
	ends    bool // streams end after their scripts

	streams   string // the method whose reply is a stream
	noOutside bool   // there is no stream outside calls
	maxBody   int    // of the client; 0 for the default

	mu   sync.Mutex // held by RoundTrip
	gets int        // guarded by mu, like scripts
}

// RoundTrip implements [http.RoundTripper].
func (s *silentServer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Request: r, Body: http.NoBody, ContentLength: -1}
	var m jsonrpc.Message
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if err := jsonrpc.Scan(body, &m); err != nil {
			s.t.Error(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := r.Method == http.MethodGet || string(m.Method) == s.streams
	switch {
	case r.Method == http.MethodGet && s.noOutside && r.Header.Get("Last-Event-Id") == "":
		resp.StatusCode = http.StatusMethodNotAllowed
	case streams:
		s.gets++
		if s.refused != 0 && s.gets%2 == 0 {
			resp.StatusCode = s.refused
			return resp, nil
		}
		s.opened <- time.Since(s.began)
		body := newSilentStream(s.scripts[0])
		body.ends = s.ends
		if len(s.scripts) > 1 {
			s.scripts = s.scripts[1:]
		}
		context.AfterFunc(r.Context(), func() { _ = body.Close() })
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.Body = body
	case m.Kind == jsonrpc.Request:
		resp.Header.Set("Content-Type", "application/json")
		resp.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":` + string(m.ID.Raw()) +
			`,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`))
	default:
		resp.StatusCode = http.StatusAccepted
	}
	return resp, nil
}

func (s *silentServer) dial(t *testing.T, era mcp.Era) *streamable.Conn {
	t.Helper()
	s.t, s.began, s.opened = t, time.Now(), make(chan time.Duration, 100)
	opts := knownEra(era)
	opts.Transport, opts.MaxBody = s, s.maxBody
	if era == mcp.Modern {
		opts.Revision = mcp.NewestModern
	}
	c, err := streamable.Dial(t.Context(), "http://silent.example", opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// beats are n comments, a while apart.
func beats(n int, apart time.Duration) script {
	s := make(script, n)
	for i := range s {
		s[i].after, s[i].text = apart, ": ping\n\n"
	}
	return s
}

// TestStreamThatIsHalfOpen_R6: TCP does not notice if a proxy lives and its server
// does not.
func TestStreamThatIsHalfOpen_R6(t *testing.T) {
	const beat = 15 * time.Second
	change := script{{after: time.Second, text: event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)}}
	for _, tt := range []struct {
		name    string
		script  script
		refused int
		again   time.Duration // when it is opened again; 0 for never
	}{
		{name: "kept alive, then silent", script: beats(4, beat), again: 4*beat + 3*beat + time.Second},
		{name: "kept alive between events", script: append(append(beats(2, beat), change...), beats(1, beat)...), again: 3*beat + time.Second + 3*beat + time.Second},
		{name: "often", script: beats(3, time.Second), again: 3*time.Second + 5*time.Second + time.Second},
		{name: "the server has not noticed yet", script: beats(2, beat), refused: http.StatusConflict, again: 5*beat + time.Second + 2*time.Second},
		{name: "never kept alive", script: append(change, change...)},
		{name: "one comment at the beginning", script: beats(1, time.Second)},
		{name: "comments without a pause", script: beats(5, time.Millisecond)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &silentServer{scripts: []script{tt.script, nil}, refused: tt.refused}
				c := s.dial(t, mcp.Legacy)
				s.wantOpened(t, tt.again)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// wantOpened waits for a stream to be opened, and again after so long, never for 0.
func (s *silentServer) wantOpened(t *testing.T, again time.Duration) {
	t.Helper()
	<-s.opened
	select {
	case at := <-s.opened:
		if at != again {
			t.Errorf("the stream was opened again after %v, want %v", at, again)
		}
	case <-time.After(24 * time.Hour):
		if again != 0 {
			t.Error("the stream was never opened again")
		}
	}
}

// TestStreamThatStopsInAnEvent_R6: what has begun does not wait for news. Between lines a
// server may.
func TestStreamThatStopsInAnEvent_R6(t *testing.T) {
	const limit = 1 << 10
	over := script{{text: "data: " + strings.Repeat("x", limit)}, {after: 50 * time.Second, text: "xx"}, {after: 50 * time.Second, text: "xx"}}
	for _, tt := range []struct {
		name   string
		script script
		again  time.Duration // when it is opened again; 0 for never
	}{
		{"over the limit", over, 100*time.Second + time.Minute + time.Second},
		{"over the limit, between its lines", append(over, script{{text: "\ndata: x\n"}}...), 100*time.Second + time.Minute + time.Second},
		{"over the limit, and kept alive before", append(beats(4, 30*time.Second), over[0]), 2*time.Minute + time.Minute + time.Second},
		{"after one over the limit", append(over, script{{text: "\n\n"}}...), 0},
		{"in a line of data", script{{text: "data: x"}}, time.Minute + time.Second},
		{"after a line of data", script{{text: "data: x\n"}}, 0},
		{"after a wait", script{{text: "retry: 1"}}, 0},
		{"in a comment", script{{text: ": x"}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &silentServer{scripts: []script{tt.script, nil}, maxBody: limit}
				c := s.dial(t, mcp.Legacy)
				s.wantOpened(t, tt.again)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestListenThatStopsInAnEvent_R6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acked := event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}`)
		s := &silentServer{streams: mcp.MethodListen, scripts: []script{{{text: acked + `data: {"jsonrpc":`}}}}
		c := s.dial(t, mcp.Modern)
		params := jsonrpc.Trusted([]byte(`{"notifications":{"toolsListChanged":true}}`))
		_, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListen, Params: params}, mcp.NoCaller{})
		if failed, ok := errors.AsType[*mcp.CallError](err); !ok || failed.Kind != mcp.ConnectionLost || time.Since(s.began) != time.Minute {
			t.Fatalf("after %v: %v", time.Since(s.began), err)
		}
		if want := "nothing has come for 1m0s in the middle of an event"; !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want in it %q", err, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestListenThatIsHalfOpen_R6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acked := script{{text: event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}`)}}
		s := &silentServer{streams: mcp.MethodListen, scripts: []script{append(acked, beats(2, 15*time.Second)...)}}
		c := s.dial(t, mcp.Modern)
		params := jsonrpc.Trusted([]byte(`{"notifications":{"toolsListChanged":true}}`))
		_, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListen, Params: params}, mcp.NoCaller{})
		failed, ok := errors.AsType[*mcp.CallError](err)
		if !ok || failed.Kind != mcp.ConnectionLost || time.Since(s.began) != 75*time.Second {
			t.Errorf("after %v: %v", time.Since(s.began), err)
		}
		if want := "nothing has come for 45s on a stream that was kept alive every 15s"; !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want in it %q", err, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestResumedStreamThatIsHalfOpen_R6: what was opened again is watched as well. The
// result of a task may be long in coming.
func TestResumedStreamThatIsHalfOpen_R6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := script{{text: "id: 1\ndata:\n\n"}}
		kept := append(id, beats(2, 15*time.Second)...)
		s := &silentServer{streams: mcp.MethodTaskResult, scripts: []script{nil, kept, kept, nil}}
		c := s.dial(t, mcp.Legacy)
		<-s.opened // outside calls
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			params := jsonrpc.Trusted([]byte(`{"taskId":"t"}`))
			_, err := c.Handle(ctx, &mcp.Request{
				Method: mcp.MethodTaskResult, Params: params, Meta: mcp.Metadata{Revision: mcp.Revision20251125, Session: "a"},
			}, mcp.NoCaller{})
			ended <- err
		}()
		for n := range 3 {
			select {
			case <-s.opened:
			case err := <-ended:
				t.Fatal(err)
			case <-time.After(time.Hour):
				t.Errorf("the stream was opened %d times", n)
			}
		}
		cancel()
		<-ended
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStreamThatIsCutNowAndThen: a proxy cuts what is silent for a minute. As long as
// the stream can be opened again the call goes on, but not if it ends at once.
func TestStreamThatIsCutNowAndThen_B091(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lasts time.Duration
		cuts  int
		ok    bool
	}{
		{"after a minute", time.Minute, 10, true},
		{"at once", 0, 2, true},
		{"at once, and too often", 0, 3, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cut := script{{after: tt.lasts, text: ":\n"}}
				scripts := []script{{{text: "id: 1\ndata:\n\n"}}}
				for range tt.cuts {
					scripts = append(scripts, cut)
				}
				scripts = append(scripts, script{{text: event(`{"jsonrpc":"2.0","id":2,"result":{"done":true}}`)}})
				s := &silentServer{scripts: scripts, ends: true, noOutside: true, streams: mcp.MethodReadResource}
				c := s.dial(t, mcp.Legacy)
				result, err := c.Handle(t.Context(), &mcp.Request{
					Method: mcp.MethodReadResource, Params: jsonrpc.Trusted([]byte(`{"uri":"a:b"}`)),
					Meta: mcp.Metadata{Revision: mcp.Revision20251125, Session: "a"},
				}, mcp.NoCaller{})
				if got := string(result.Raw()); (err == nil) != tt.ok || tt.ok && got != `{"done":true}` {
					t.Errorf("%s, %v", got, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
