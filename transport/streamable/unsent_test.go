package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A held is a client of HTTP with SSE in this process, for bubbles. It reads the first
// event, and the others when it is told to.
type held struct {
	handler http.Handler
	ctx     context.Context
	leave   func()
	post    string        // where messages are posted
	listen  chan struct{} // closed when it reads
	once    chan struct{} // has it read what is being written
	ended   chan struct{} // closed when its stream has ended

	mu   sync.Mutex
	read strings.Builder // guarded by mu
}

func newHeld(t *testing.T, h http.Handler) *held {
	t.Helper()
	c := &held{handler: h, listen: make(chan struct{}), once: make(chan struct{}), ended: make(chan struct{})}
	c.ctx, c.leave = context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(c.ctx, http.MethodGet, "http://127.0.0.1/sse", nil)
	r.Header.Set("Accept", "text/event-stream")
	go func() {
		defer close(c.ended)
		h.ServeHTTP(c, r)
	}()
	synctest.Wait()
	_, c.post, _ = strings.Cut(strings.TrimSpace(c.text()), "data: ")
	c.say(t, initializeRequest("2024-11-05"))
	return c
}

func (c *held) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read.String()
}

// say posts a message and waits until all is still.
func (c *held) say(t *testing.T, message string) {
	t.Helper()
	r := httptest.NewRequestWithContext(c.ctx, http.MethodPost, "http://127.0.0.1"+c.post, strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	if w.Code != http.StatusAccepted {
		t.Errorf("%s is answered with %d %s", message, w.Code, w.Body)
	}
	synctest.Wait()
}

// hangUp ends the stream.
func (c *held) hangUp() {
	c.leave()
	<-c.ended
}

func (c *held) Header() http.Header { return make(http.Header) }
func (c *held) WriteHeader(int)     {}
func (c *held) FlushError() error   { return nil }

// Write implements [http.ResponseWriter].
func (c *held) Write(p []byte) (int, error) {
	if !strings.HasPrefix(string(p), "event: endpoint\n") {
		select {
		case <-c.listen:
		case <-c.once:
		case <-c.ctx.Done():
			return 0, c.ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read.Write(p)
}

// Of a flood, which is what a tool of floods tells before its result.
const (
	floodMessages = 100
	floodSize     = 10_000
	flooding      = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"flood","_meta":{"progressToken":1}}}`
)

// floods returns a handler whose tools tell a flood, and the errors with which they ended.
func floods() (h mcp.Handler, failed chan error) {
	failed = make(chan error, 100)
	rest := newFixture()
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return rest.Handle(ctx, req, caller)
		}
		pad := strings.Repeat("x", floodSize-150)
		for i := range floodMessages {
			params := fmt.Sprintf(`{"progress":%d,"progressToken":1,"pad":"%s"}`, i, pad)
			if err := caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(params))}); err != nil {
				failed <- err
				return mcp.Result{}, err
			}
		}
		return mcp.RawResult([]byte(`{"content":[]}`)), nil
	}), failed
}

// TestSSEClientsThatDoNotReadLeaveRoomForOthers_TK1: the one that came first has to wait,
// not whoever comes.
func TestSSEClientsThatDoNotReadLeaveRoomForOthers_TK1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 40 * floodSize
		handler, _ := floods()
		h := newSSE(t, handler, func(o *streamable.HandlerOptions) {
			o.SSE = streamable.SSEOptions{MaxUnsent: 200 * floodSize, MaxUnsentTotal: total}
		})
		near := func(what string, want int) {
			t.Helper()
			if n := h.Held(); n > want*floodSize || n < (want-3)*floodSize {
				t.Errorf("%s: %d bytes are held, want nearly %d", what, n, want*floodSize)
			}
		}
		first := newHeld(t, h)
		first.say(t, flooding)
		near("one client has three quarters", 30)
		for range 2 { // the answer to initialize, and the first of the flood
			first.once <- struct{}{}
			synctest.Wait()
		}
		near("what is being written counts", 31)
		second := newHeld(t, h)
		second.say(t, flooding)
		near("another one has three quarters of the rest", 38)
		clients := []*held{first, second}
		for range 10 {
			c := newHeld(t, h)
			c.say(t, flooding)
			clients = append(clients, c)
		}
		if n := h.Held(); n > total+len(clients)*floodSize {
			t.Errorf("%d bytes are held, of all clients", n)
		}
		reading := newHeld(t, h)
		close(reading.listen)
		reading.say(t, flooding)
		if got := reading.text(); strings.Count(got, "x\"}") != floodMessages || !strings.Contains(got, `"id":1,"result":{"content":[]`) {
			t.Errorf("who reads gets %d messages, %.80q at the end", strings.Count(got, "x\"}"), got[max(len(got)-80, 0):])
		}
		for _, c := range clients[1:] {
			c.hangUp()
		}
		near("the others have gone", 31)
		close(first.listen)
		synctest.Wait()
		if got := first.text(); strings.Count(got, "x\"}") != floodMessages {
			t.Errorf("who reads later gets %d messages", strings.Count(got, "x\"}"))
		}
		first.hangUp()
		reading.hangUp()
		if n := h.Held(); n != 0 {
			t.Errorf("%d bytes are held of nobody", n)
		}
	})
}

func TestSSELimitsAreNamedToWhoWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		opts streamable.SSEOptions
		want string
	}{
		"one client":  {streamable.SSEOptions{MaxUnsent: 5 * floodSize}, "the limit SSE.MaxUnsent is 50000"},
		"all clients": {streamable.SSEOptions{MaxUnsentTotal: 5 * floodSize}, "the limit SSE.MaxUnsentTotal is 50000"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, failed := floods()
				h := newSSE(t, handler, func(o *streamable.HandlerOptions) { o.SSE = tt.opts })
				c := newHeld(t, h)
				c.say(t, flooding)
				c.say(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
				select {
				case err := <-failed:
					if !strings.Contains(err.Error(), tt.want) {
						t.Errorf("whoever waits is told %v", err)
					}
				default:
					t.Error("nobody waits")
				}
				c.hangUp()
			})
		})
	}
}
