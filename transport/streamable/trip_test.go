package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestStaleConnection has a server close a connection that it said it would
// keep, at each moment that it can.
func TestStaleConnection(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after bool // the request has been read
	}{
		{"B097 before the next request", false},
		{"B097 after the next request was read", true},
	} {
		for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
			t.Run(tt.name+" "+era.String(), func(t *testing.T) {
				var calls atomic.Int64
				closed := make(chan struct{}, 10)
				url, _ := wireServer(t, func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
					if string(m.Method) != "tools/call" {
						ok := handshakeOnWire(conn, m)
						return ok
					}
					switch n := calls.Add(1); {
					case n == 1 && !tt.after:
						// An answer, and the end of a connection that was to
						// be kept.
						wholeOnWire(conn, "200 OK", "", `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{}}`)
						_ = conn.Close()
						closed <- struct{}{}
						return false
					case n == 2 && tt.after:
						return false
					}
					return wholeOnWire(conn, "200 OK", "", `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{}}`)
				})
				opts := knownEra(era)
				// An idempotency key would have net/http send calls again.
				opts.Header = http.Header{"Idempotency-Key": {"k"}, "x-idempotency-key": {"k"}}
				c := dial(t, url, opts)
				if _, err := call(t, c, mcp.NoCaller{}); err != nil {
					t.Fatal(err)
				}
				if !tt.after {
					<-closed
				}
				_, err := call(t, c, mcp.NoCaller{})
				if err == nil && !tt.after {
					if calls.Load() != 2 {
						t.Errorf("B097: %d calls", calls.Load())
					}
					return
				}
				// At most once: nobody knows whether the tool has run. That is
				// so too if the client has not yet seen that the connection
				// has gone.
				most := int64(1)
				if tt.after {
					most = 2
				}
				e, ok := errors.AsType[*mcp.CallError](err)
				if !ok || e.Kind != mcp.ConnectionLost || e.Outcome != mcp.MaybeExecuted || calls.Load() > most {
					t.Errorf("B097, D1.29: %v after %d calls", err, calls.Load())
				}
			})
		}
	}
}

// TestConnectionsAreUsedAgain makes many calls whose replies have rests of all
// kinds, one after the other, and counts connections.
func TestConnectionsAreUsedAgain(t *testing.T) {
	rests := map[string]func(w http.ResponseWriter, m *jsonrpc.Message){
		"nothing": func(w http.ResponseWriter, m *jsonrpc.Message) { writeResult(w, m, `{}`) },
		"a stream's rest": func(w http.ResponseWriter, m *jsonrpc.Message) {
			writeStream(w, resultEvent(m, `{}`), ":\n\n", event("{}"))
		},
		"an error's body": func(w http.ResponseWriter, m *jsonrpc.Message) {
			http.Error(w, strings.Repeat("x", 10_000), http.StatusBadGateway)
		},
		"an error and a body": func(w http.ResponseWriter, m *jsonrpc.Message) {
			http.Error(w, strings.Repeat("x", 10_000), http.StatusUnauthorized)
		},
		"a reply of no type": func(w http.ResponseWriter, m *jsonrpc.Message) { _, _ = io.WriteString(w, strings.Repeat("<p>", 1000)) },
		"a body over the limit": func(w http.ResponseWriter, m *jsonrpc.Message) {
			writeResult(w, m, `{"x":"`+strings.Repeat("x", 1<<15)+`"}`)
		},
	}
	for name, rest := range rests {
		t.Run("D1.21 "+name, func(t *testing.T) {
			p := newPeer(t, legacyPeer("2025-11-25", "s", onPost(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if m.Kind == jsonrpc.Notification {
					http.Error(w, strings.Repeat("x", 10_000), 200)
					return
				}
				rest(w, m)
			})))
			opts := knownEra(mcp.Legacy)
			opts.MaxBody = 1 << 15
			c := dial(t, p.url, opts)
			p.await(t, "GET", 1)
			for range 50 {
				_, _ = call(t, c, mcp.NoCaller{})
				if _, err := c.Handle(t.Context(), &mcp.Request{Method: "notifications/roots/list_changed", Notification: true}, mcp.NoCaller{}); err != nil {
					t.Errorf("B079: %v", err)
				}
			}
			// One for calls, one for the GET, and some that were in use while
			// a rest was still being read.
			if n := p.conns.Load(); n > 15 {
				t.Errorf("D1.21: %d connections for 100 requests", n)
			}
		})
	}
}

func TestRestOfAReplyIsBounded(t *testing.T) {
	gone := make(chan struct{}, 2)
	p := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "tools/list" {
			writeResult(w, m, `{"tools":[]}`)
			return
		}
		writeStream(w, resultEvent(m, `{}`))
		if name, _ := m.Body.LookupString("name"); name == "flood" {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, ":"+strings.Repeat("x", 1<<16)+"\n"); err != nil {
					break
				}
			}
		}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	c := dial(t, p.url, nil)
	for _, tool := range []string{"silent", "flood"} {
		began := time.Now()
		if _, err := c.Handle(t.Context(), toolRequest(tool, "{}"), mcp.NoCaller{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("B073: the call took %v", took)
		}
		await(t, gone) // D1.27: the stream is given up
	}
}

func TestNotificationReplies(t *testing.T) {
	for _, tt := range []struct {
		name, kind, body string
		status           int
		ok               bool
	}{
		{"B079 202", "", "", 202, true},
		{"B079 202 with text", "text/plain", "Accepted", 202, true},
		{"B079 204", "", "", 204, true},
		{"B079 200 and nothing", "", "", 200, true},
		{"B079 200 and null", "application/json", "null", 200, true},
		{"B079 200 and an object", "application/json", "{}", 200, true},
		{"B079 200 and a stream", "text/event-stream", "", 200, true},
		{"B079 400", "application/json", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}`, 400, false},
		{"B079 500", "text/plain", "oops", 500, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if string(m.Method) != "notifications/initialized" {
					legacyPeer("2025-11-25", "", nil)(w, r, m)
					return
				}
				w.Header()["Content-Type"] = nil
				if tt.kind != "" {
					w.Header().Set("Content-Type", tt.kind)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			c, err := streamable.Dial(t.Context(), p.url, knownEra(mcp.Legacy))
			if tt.ok != (err == nil) {
				t.Fatalf("%v", err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), fmt.Sprint(tt.status)) {
					t.Errorf("%v", err)
				}
				return
			}
			closeSoon(t, c)
		})
	}
}

// A forgetful server forgets its sessions when it is told to.
type forgetful struct {
	mu       sync.Mutex
	sessions int
	current  string
	refusal  string // body of the 404, or of the 400 if that is set
	bad      bool   // answers with 400
	ran      int    // calls that were executed
}

func (f *forgetful) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = "none"
}

func (f *forgetful) answer(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch id := r.Header.Get("Mcp-Session-Id"); {
	case string(m.Method) == "initialize":
		f.sessions++
		f.current = fmt.Sprintf("s-%d", f.sessions)
		legacyPeer("2025-11-25", f.current, nil)(w, r, m)
	case id != f.current && string(m.Method) != "server/discover":
		w.Header().Set("Content-Type", "application/json")
		if f.bad {
			w.WriteHeader(http.StatusBadRequest)
		} else {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(f.refusal, "$", m.ID.String()))
	default:
		if string(m.Method) == "tools/call" {
			f.ran++
		}
		legacyPeer("2025-11-25", f.current, nil)(w, r, m)
	}
}

func TestLostSession(t *testing.T) {
	for name, refusal := range map[string]string{
		"B098 400 as the TypeScript examples have it": `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`,
		"B098 400 as Python had it":                   `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: No valid session ID provided"}}`,
		"B098 a JSON-RPC error":                       `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`,
		"B098 a JSON-RPC error with the id":           `{"jsonrpc":"2.0","id":$,"error":{"code":-32600,"message":"Session not found"}}`,
		"B098 nothing":                                ``,
		"B098 HTML":                                   `<html>`,
	} {
		t.Run(name, func(t *testing.T) {
			f := &forgetful{refusal: refusal, bad: strings.Contains(name, " 400 ")}
			p := newPeer(t, f.answer)
			pool := transport.NewPool(func(ctx context.Context, _ *mcp.Metadata) (transport.Edge, error) {
				c, err := streamable.Dial(ctx, p.url, nil)
				if err != nil {
					return nil, err
				}
				return c, nil
			}, transport.PoolOptions{})
			defer pool.Close()
			if _, err := call(t, pool, mcp.NoCaller{}); err != nil {
				t.Fatal(err)
			}
			p.await(t, "GET", 1)
			f.forget()
			// Many at once: each is made again, in one new session.
			const calls = 8
			var calling sync.WaitGroup
			for range calls {
				calling.Go(func() {
					if _, err := call(t, pool, mcp.NoCaller{}); err != nil {
						t.Errorf("B098: %v", err)
					}
				})
			}
			calling.Wait()
			if n := len(p.seen("initialize")); n != 2 || f.ran != 1+calls {
				t.Errorf("B098: %d times initialize, %d calls executed", n, f.ran)
			}
			for _, s := range p.seen("initialize") {
				if s.header.Get("Mcp-Session-Id") != "" {
					t.Error("B098: initialize names a session")
				}
			}
			if n := len(p.seen("notifications/initialized")); n != 2 {
				t.Errorf("B098: %d times initialized", n)
			}
			p.await(t, "GET", 2) // the GET stream is opened anew
		})
	}
}

func TestLostSessionEndsTheConnection(t *testing.T) {
	f := &forgetful{refusal: ""}
	p := newPeer(t, f.answer)
	c := dial(t, p.url, nil)
	f.forget()
	_, err := call(t, c, mcp.NoCaller{})
	if !errors.Is(err, streamable.ErrSessionLost) || mcp.OutcomeOf(err) != mcp.NotSent {
		t.Errorf("B098: %v", err)
	}
	await(t, c.Done())
	if !errors.Is(c.Err(), streamable.ErrSessionLost) {
		t.Errorf("the connection ended with %v", c.Err())
	}
	before := len(p.seen("tools/call"))
	if _, err := call(t, c, mcp.NoCaller{}); !errors.Is(err, streamable.ErrSessionLost) || mcp.OutcomeOf(err) != mcp.NotSent || len(p.seen("tools/call")) != before {
		t.Errorf("afterwards: %v", err)
	}
	closeSoon(t, c)
	if n := len(p.seen("DELETE")); n != 0 {
		t.Errorf("a session that is gone was ended %d times", n)
	}
	// So does one that a notification finds lost.
	f2 := &forgetful{}
	c2 := dial(t, newPeer(t, f2.answer).url, nil)
	f2.forget()
	_, err = c2.Handle(t.Context(), &mcp.Request{Method: "notifications/roots/list_changed", Notification: true}, mcp.NoCaller{})
	if !errors.Is(err, streamable.ErrSessionLost) {
		t.Errorf("B098: a notification: %v", err)
	}
	await(t, c2.Done())
}

func TestNotFoundIsNotAlwaysALostSession(t *testing.T) {
	p := newPeer(t, legacyPeer("2025-11-25", "s", onPost(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		writeError(w, http.StatusNotFound, m, jsonrpc.CodeMethodNotFound, "Method not found")
	})))
	c := dial(t, p.url, nil)
	_, err := call(t, c, mcp.NoCaller{})
	checkFailure(t, "an unknown method", err, "", jsonrpc.CodeMethodNotFound)
	if c.Err() != nil {
		t.Errorf("the connection ended: %v", c.Err())
	}
	// Nor is a bad request.
	for _, refusal := range []string{
		`{"jsonrpc":"2.0","id":$,"error":{"code":-32602,"message":"Invalid params: no valid session name"}}`,
		`{"jsonrpc":"2.0","id":$,"error":{"code":-32000,"message":"bad luck"}}`,
	} {
		f := &forgetful{refusal: refusal, bad: true}
		c := dial(t, newPeer(t, f.answer).url, nil)
		f.forget()
		if _, err := call(t, c, mcp.NoCaller{}); !jsonrpc.FromPeer(err) || c.Err() != nil {
			t.Errorf("B098: %v, and the connection: %v", err, c.Err())
		}
	}
	// Before any session it is a wrong address, and no reason to go on.
	p = newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { http.NotFound(w, r) })
	if _, err := streamable.Dial(t.Context(), p.url, nil); err == nil || errors.Is(err, streamable.ErrSessionLost) || len(p.seen("")) != 2 {
		t.Errorf("B098: %v after %q", err, p.order())
	}
}

// TestMethodNotAllowedIsNoAnswer: that an address takes no POST is not said of the call,
// though many servers put it into an error of JSON-RPC.
func TestMethodNotAllowedIsNoAnswer(t *testing.T) {
	p := newPeer(t, legacyPeer("2025-11-25", "s", onPost(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		writeError(w, http.StatusMethodNotAllowed, m, jsonrpc.CodeInvalidRequest, "use GET")
	})))
	c := dial(t, p.url, nil)
	_, err := call(t, c, mcp.NoCaller{})
	status, ok := errors.AsType[*streamable.StatusError](err)
	if !ok || status.Status != http.StatusMethodNotAllowed || mcp.OutcomeOf(err) != mcp.Answered || !strings.Contains(err.Error(), "use GET") {
		t.Errorf("got %v", err)
	}
	if c.Err() != nil {
		t.Errorf("the connection ended: %v", c.Err())
	}
}

func TestAbandonedCallsAreCancelled(t *testing.T) {
	inCall := make(chan string, 10)
	gone := make(chan string, 10)
	answer := func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) != "tools/call" {
			if m.Kind == jsonrpc.Request {
				writeResult(w, m, `{"tools":[]}`)
			}
			return
		}
		inCall <- m.ID.String()
		<-r.Context().Done()
		gone <- m.ID.String()
	}
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		peer := modernPeer(answer)
		if era == mcp.Legacy {
			peer = legacyPeer("2025-11-25", "s", onPost(answer))
		}
		p := newPeer(t, peer)
		c := dial(t, p.url, knownEra(era))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			await(t, inCall)
			cancel()
		}()
		began := time.Now()
		_, err := callWithin(ctx, c, mcp.NoCaller{})
		checkFailure(t, "B136", err, mcp.Cancelled, 0)
		id := await(t, gone) // the stream is closed in both eras
		if took := time.Since(began); took > patience {
			t.Errorf("B095: the server knew after %v", took)
		}
		if era == mcp.Modern {
			if n := len(p.seen("notifications/cancelled")); n != 0 {
				t.Errorf("B136: %d cancellations", n)
			}
			continue
		}
		sent := p.await(t, "notifications/cancelled", 1)
		if !strings.Contains(sent[0].body, `"requestId":`+id+`}`) || len(sent) != 1 {
			t.Errorf("B136: the cancellation is %s", sent[0].body)
		}
	}
}
