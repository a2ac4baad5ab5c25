package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A counting is a server over HTTP that counts how often each tool is called. The
// names of its tools are those of calls.
type counting struct {
	*httptest.Server

	modern bool
	closes atomic.Bool // each connection after one request
	// reply replies to the call of a tool.
	reply func(w http.ResponseWriter, r *http.Request, response string)

	mu       sync.Mutex
	executed map[string]int // guarded by mu
	streams  int            // that were asked for, and refused
	told     int            // of calls that nobody waits for any more
}

func newCounting(t *testing.T, era mcp.Era, reply func(w http.ResponseWriter, r *http.Request, response string)) *counting {
	t.Helper()
	s := &counting{modern: era == mcp.Modern, reply: reply, executed: make(map[string]int)}
	if reply == nil {
		s.reply = asJSON
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Server.Close)
	return s
}

// closing has the server close each connection after its reply.
func (s *counting) closing() *counting {
	s.closes.Store(true)
	return s
}

func asJSON(w http.ResponseWriter, _ *http.Request, response string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, response)
}

// asEvents replies with a notification and the response.
func asEvents(w http.ResponseWriter, _ *http.Request, response string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/vendor/x\"}\n\n")
	_ = http.NewResponseController(w).Flush()
	_, _ = io.WriteString(w, "data: "+response+"\n\n")
}

// ServeHTTP implements http.Handler.
func (s *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.closes.Load() {
		w.Header().Set("Connection", "close")
	}
	body, err := io.ReadAll(r.Body)
	var m jsonrpc.Message
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		s.mu.Lock()
		s.streams++
		s.mu.Unlock()
		return
	case err != nil || jsonrpc.Scan(body, &m) != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	case m.Kind != jsonrpc.Request:
		w.WriteHeader(http.StatusAccepted)
		if string(m.Method) == mcp.NotificationCancelled {
			s.mu.Lock()
			s.told++
			s.mu.Unlock()
		}
		return
	}
	answer := func(result string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID.Raw(), result)
	}
	switch method := string(m.Method); {
	case method == mcp.MethodDiscover && s.modern:
		asJSON(w, r, answer(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`))
	case method == mcp.MethodInitialize && !s.modern:
		asJSON(w, r, answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`))
	case method == mcp.MethodListTools:
		asJSON(w, r, answer(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}`))
	case method == mcp.MethodCallTool:
		name, _ := m.Body.LookupString("name")
		s.mu.Lock()
		s.executed[name]++
		s.mu.Unlock()
		s.reply(w, r, answer(`{"resultType":"complete","content":[{"type":"text","text":"`+name+`"}]}`))
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// settled reports whether a client makes no requests of its own any more: that of a
// legacy server asks for a stream.
func (s *counting) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.modern || s.streams > 0
}

// cancellations returns how many calls the server was told to leave.
func (s *counting) cancellations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
}

func (s *counting) executions(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.executed[name]
}

// A shaky is a client of a counting server behind a proxy.
type shaky struct {
	*client.Client

	server *counting
	proxy  *faulttest.Proxy
	next   chan faulttest.Faults // of the next connection; none if it is empty
	calls  int
	lost   int // calls of which the server is told, by requests of their own
}

// shakyOf connects to a server through a proxy without faults.
func shakyOf(t *testing.T, server *counting, era mcp.Era, dial streamable.DialOptions) *shaky {
	t.Helper()
	s := &shaky{server: server, next: make(chan faulttest.Faults, 1)}
	var err error
	s.proxy, err = faulttest.NewProxy(server.Listener.Addr().String(), func(int) faulttest.Faults {
		select {
		case f := <-s.next:
			return f
		default:
			return faulttest.Faults{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.proxy.Close() })
	opts := healsFast()
	opts.Era = era
	s.Client = connect(t, &client.URLTarget{URL: "http://" + s.proxy.Addr() + "/mcp", Options: dial}, opts)
	eventuallySo(t, "the client's own requests", server.settled)
	return s
}

// call calls a tool of a new name with arguments of a size, and checks that the end
// of the call is true.
func (s *shaky) call(t *testing.T, timeout time.Duration, size int) error {
	t.Helper()
	s.calls++
	name := fmt.Sprintf("call%d", s.calls)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	result, err := s.CallTool(ctx, name, map[string]string{"text": strings.Repeat("x", size)}, &client.CallOptions{Timeout: timeout})
	n := s.server.executions(name)
	if err == nil && (n != 1 || result.Content[0].(*mcp.Text).Text != name) {
		t.Errorf("%s has the result %v, and was executed %d times", name, result.Content, n)
	}
	_, known := outcome(err)
	if err != nil && (n > 1 || n == 1 && known == mcp.NotSent) {
		t.Errorf("%s was executed %d times: %v", name, n, err)
	}
	if err != nil && known == mcp.MaybeExecuted && !s.server.modern {
		s.lost++
		eventuallySo(t, "the cancellation of "+name, func() bool { return s.server.cancellations() == s.lost })
	}
	return err
}

func (s *shaky) works(t *testing.T) {
	t.Helper()
	if err := s.call(t, soon, 0); err != nil {
		t.Errorf("the next call failed: %v", err)
	}
}

func down(trouble faulttest.Trouble, at int64) faulttest.Faults {
	return faulttest.Faults{Down: []faulttest.Fault{{Trouble: trouble, At: at, Late: true}}}
}

func up(trouble faulttest.Trouble, at int64) faulttest.Faults {
	return faulttest.Faults{Up: []faulttest.Fault{{Trouble: trouble, At: at, Late: true}}}
}

func TestFaultsOfLines(t *testing.T) {
	const brief = 300 * time.Millisecond
	for _, tt := range []struct {
		name     string
		faults   faulttest.Faults // of the connection of the first call
		size     int              // of its arguments
		timeout  time.Duration
		kind     mcp.FailureKind // of its failure; "" for success
		executed int
	}{
		{"R6 the server is gone when the reply comes", down(faulttest.Freeze, 0), 0, brief, mcp.TimedOut, 1},
		{"R6 the server is gone in the middle of the reply", down(faulttest.Freeze, 150), 0, brief, mcp.TimedOut, 1},
		{"R6 the server is gone in the middle of the request", up(faulttest.Freeze, 1000), 100_000, brief, mcp.TimedOut, 0},
		{"R6 the reply stalls", down(faulttest.Stall, 150), 0, brief, mcp.TimedOut, 1},
		{"R7 accepted, and nothing is read", up(faulttest.Stall, 0), 0, brief, mcp.TimedOut, 0},
		{"R7 accepted, nothing is read, and the request fills all buffers", up(faulttest.Stall, 0), 8 << 20, time.Second, mcp.TimedOut, 0},
		{"R8 reset before the request is read", up(faulttest.Reset, 0), 0, soon, mcp.ConnectionLost, 0},
		{"R8 reset in the middle of the request", up(faulttest.Reset, 1000), 100_000, soon, mcp.ConnectionLost, 0},
		{"R8 reset before the reply", down(faulttest.Reset, 0), 0, soon, mcp.ConnectionLost, 1},
		{"R8 reset in the middle of the reply", down(faulttest.Reset, 150), 0, soon, mcp.ConnectionLost, 1},
		{"closed before the reply", down(faulttest.Sever, 0), 0, soon, mcp.ConnectionLost, 1},
		{"half-closed before the reply", down(faulttest.HalfClose, 0), 0, soon, mcp.ConnectionLost, 1},
		{"a slow line", faulttest.Faults{
			Up:   []faulttest.Fault{{Trouble: faulttest.Trickle, Wait: time.Microsecond}},
			Down: []faulttest.Fault{{Trouble: faulttest.Trickle, Wait: time.Microsecond}},
		}, 0, soon, "", 1},
		{"a late reply", faulttest.Faults{Down: []faulttest.Fault{{Trouble: faulttest.Delay, Wait: 50 * time.Millisecond}}}, 0, soon, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bothEras(t, func(t *testing.T, era mcp.Era) {
				replies := map[string]func(http.ResponseWriter, *http.Request, string){"JSON": asJSON}
				if tt.executed > 0 {
					replies["events"] = asEvents
				}
				for name, reply := range replies {
					t.Run(name, func(t *testing.T) {
						t.Parallel() // most of them wait
						// On a busy machine the server may get the call later than in brief.
						for timeout := tt.timeout; ; timeout *= 8 {
							s := shakyOf(t, newCounting(t, era, reply).closing(), era, streamable.DialOptions{})
							s.works(t)
							s.next <- tt.faults
							err := s.call(t, timeout, tt.size)
							n := s.server.executions("call2")
							if n < tt.executed && timeout < time.Second {
								continue
							}
							if kind, known := outcome(err); kind != tt.kind || err != nil && known != mcp.MaybeExecuted {
								t.Errorf("got %v, want %s", err, tt.kind)
							}
							if n != tt.executed {
								t.Errorf("executed %d times, want %d", n, tt.executed)
							}
							s.works(t)
							return
						}
					})
				}
			})
		})
	}
}

// A connection that ended while nobody used it is found out with the next call.
func TestConnectionThatEndsInBetween_R8(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		s := shakyOf(t, newCounting(t, era, nil), era, streamable.DialOptions{})
		failed := 0
		for range 50 {
			s.works(t)
			s.proxy.Reset()
			if err := s.call(t, soon, 0); err != nil {
				failed++ // the request was written before the end was seen
			}
		}
		t.Logf("%d of 50 calls failed", failed)
		s.works(t)
	})
}

func TestIdleConnectionThatIsHalfOpen_R6(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		s := shakyOf(t, newCounting(t, era, nil), era, streamable.DialOptions{})
		s.proxy.Reset()
		// Long enough for one call, not for two.
		s.next <- faulttest.Faults{Up: []faulttest.Fault{{Trouble: faulttest.Freeze, At: 1200, Late: true}}}
		var err error
		for range 10 {
			if err = s.call(t, time.Second, 0); err != nil {
				break
			}
		}
		if kind, known := outcome(err); kind != mcp.TimedOut || known != mcp.MaybeExecuted {
			t.Errorf("got %v", err)
		}
		s.works(t)
	})
}

func TestFloodsOfReplies_R14(t *testing.T) {
	const limit = 1 << 20
	flood := func(head, text string, n int64) func(http.ResponseWriter, *http.Request, string) {
		return func(w http.ResponseWriter, r *http.Request, response string) {
			if !strings.Contains(response, "call1") {
				asJSON(w, r, response)
				return
			}
			w.Header().Set("Content-Type", head)
			for chunk := strings.Repeat(text, 1+(32<<10)/len(text)); n > 0; n -= int64(len(chunk)) {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, "\n\ndata: "+response+"\n\n")
		}
	}
	const events, endless = "text/event-stream", 1 << 40
	for i, tt := range []struct {
		name    string
		reply   func(http.ResponseWriter, *http.Request, string)
		timeout time.Duration
		kind    mcp.FailureKind
	}{
		{"R14 an event without end", flood(events, "data: xxxxxxxx\n", endless), soon, mcp.LimitExceeded},
		{"R14 a line without end", flood(events, "data: x", endless), soon, mcp.LimitExceeded},
		{"R14 a comment without end", flood(events, ":", endless), 5 * time.Second, mcp.LimitExceeded},
		{"R14 comments without end", flood(events, ": x\n", endless), soon, mcp.LimitExceeded},
		{"R14 empty events without end", flood(events, "data:\n\n", endless), soon, mcp.LimitExceeded},
		{"R14 a hundred thousand empty events", flood(events, "data:\n\n", 700_000), soon, ""},
		{"R14 a JSON reply without end", flood("application/json", "[", endless), soon, mcp.LimitExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			era := []mcp.Era{mcp.Legacy, mcp.Modern}[i%2] // they read replies in one way
			s := shakyOf(t, newCounting(t, era, tt.reply), era, streamable.DialOptions{MaxBody: limit})
			err := s.call(t, tt.timeout, 0)
			if kind, _ := outcome(err); kind != tt.kind {
				t.Errorf("got %v, want %s", err, tt.kind)
			}
			s.works(t)
		})
	}
}
