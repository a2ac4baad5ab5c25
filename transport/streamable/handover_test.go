package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// beginnings are how far a reply may come before its server asks or is told
// something.
var beginnings = []struct {
	name  string
	begin func(w http.ResponseWriter)
	event bool // the reply is an event stream
}{
	{"before the reply", func(http.ResponseWriter) {}, false},
	{"after a hint", func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) }, false},
	{"in a reply of unknown length", func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, " ")
		_ = http.NewResponseController(w).Flush()
	}, false},
	{"in an event stream", func(w http.ResponseWriter) { writeStream(w, ":\n\n") }, true},
}

// TestLegacyCallIsAskedWhileItWaits: a caller that makes its POST itself answers what
// comes on the GET stream meanwhile, and gets its result all the same.
func TestLegacyCallIsAskedWhileItWaits(t *testing.T) {
	for _, tt := range beginnings {
		t.Run(tt.name, func(t *testing.T) {
			ask, answered := make(chan struct{}), make(chan struct{})
			p := newPeer(t, legacyPeer("2025-11-25", "s", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case r.Method == "GET":
					writeStream(w, ":\n\n")
					select {
					case <-ask:
						writeMore(w, event(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":`+question+`}`))
					case <-r.Context().Done():
					}
					<-r.Context().Done()
				case m.Kind == jsonrpc.Response:
					w.WriteHeader(http.StatusAccepted)
					close(answered)
				case string(m.Method) == mcp.MethodCallTool:
					tt.begin(w)
					<-time.After(5 * time.Millisecond) // so that the client has read it, as a rule
					close(ask)
					<-answered
					if tt.event {
						writeMore(w, resultEvent(m, `{"content":[]}`))
						return
					}
					writeResult(w, m, `{"content":[]}`)
				default:
					justAnswer(w, r, m)
				}
			}))
			opts := knownEra(mcp.Legacy)
			opts.Capabilities = []byte(`{"elicitation":{}}`)
			c := dial(t, p.url, opts)
			list(t, c)
			if result, err := call(t, c, answering("a")); result != `{"content":[]}` {
				t.Errorf("%s, %v", result, err)
			}
			conns := p.conns.Load()
			list(t, c)
			if n := p.conns.Load(); n != conns {
				t.Errorf("%d connections, %d before", n, conns)
			}
		})
	}
}

// TestLegacyStreamIsResumedOnANewConnection: nobody is left then to hand a request over
// to.
func TestLegacyStreamIsResumedOnANewConnection_B109(t *testing.T) {
	p := newPeer(t, legacyPeer("2025-11-25", "s", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == "GET" && r.Header.Get("Last-Event-ID") == "":
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.Method == "GET":
			writeStream(w, "data: "+`{"jsonrpc":"2.0","id":`+r.Header.Get("Last-Event-ID")+`,"result":{"content":[]}}`+"\n\n")
		case string(m.Method) == mcp.MethodCallTool:
			writeStream(w, "id: "+m.ID.String()+"\nretry: 1\ndata:\n\n")
			panic(http.ErrAbortHandler)
		default:
			justAnswer(w, r, m)
		}
	}))
	c := dial(t, p.url, knownEra(mcp.Legacy))
	list(t, c)
	if result, err := call(t, c, mcp.NoCaller{}); result != `{"content":[]}` {
		t.Errorf("%s, %v", result, err)
	}
}

// TestLegacyServerIsToldBeforeItsClientHangsUp, wherever its reply is.
func TestLegacyServerIsToldBeforeItsClientHangsUp(t *testing.T) {
	for _, tt := range beginnings {
		t.Run(tt.name, func(t *testing.T) {
			begun, told, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			p := newPeer(t, legacyPeer("2025-11-25", "s", onPost(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch string(m.Method) {
				case mcp.NotificationCancelled:
					close(told)
					<-done // the client hangs up when it has this reply
					w.WriteHeader(http.StatusAccepted)
				case mcp.MethodCallTool:
					tt.begin(w)
					close(begun)
					select {
					case <-told:
					case <-r.Context().Done():
						t.Error("the client hung up without a word")
					}
					close(done)
					<-r.Context().Done()
				default:
					justAnswer(w, r, m)
				}
			})))
			c := dial(t, p.url, knownEra(mcp.Legacy))
			list(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-begun
				cancel()
			}()
			_, err := callWithin(ctx, c, mcp.NoCaller{})
			checkFailure(t, tt.name, err, mcp.Cancelled, 0)
			await(t, done)
		})
	}
}

// list lists tools, after which there is a connection for the next call.
func list(t *testing.T, h mcp.Handler) {
	t.Helper()
	if _, err := h.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListTools}, mcp.NoCaller{}); err != nil {
		t.Fatal(err)
	}
}

// TestLegacyCallsRaceWithWhatInterruptsThem: whenever something comes for a call, and
// whenever it is given up, it ends once, with its own result or with why it has none.
func TestLegacyCallsRaceWithWhatInterruptsThem_P1(t *testing.T) {
	news := make(chan struct{}, 1)
	p := newPeer(t, legacyPeer("2025-11-25", "s", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == "GET":
			writeStream(w, ":\n\n")
			for {
				select {
				case <-news:
					writeMore(w, event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`))
				case <-r.Context().Done():
					return
				}
			}
		case string(m.Method) == mcp.MethodCallTool:
			select {
			case news <- struct{}{}:
			default:
			}
			name, _ := m.Body.LookupString("name")
			writeResult(w, m, `{"content":[],"name":"`+name+`"}`)
		default:
			justAnswer(w, r, m)
		}
	}))
	c := dial(t, p.url, knownEra(mcp.Legacy))
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if rand.IntN(2) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(500))*time.Microsecond, cancel)
				}
				name := fmt.Sprint(caller, "-", i)
				result, err := c.Handle(ctx, toolRequest(name, `{}`), mcp.NoCaller{})
				if got, _ := result.LookupString("name"); err == nil && got != name || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %s, %v", name, result.Raw(), err)
				}
				cancel()
			}
		})
	}
	callers.Wait()
}

// TestReplyIsReadOnOrHungUpOn: either the caller has read the beginning of a reply in
// time, and the rest of it can be read, or it knows that this cannot be.
func TestReplyIsReadOnOrHungUpOn_B136(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, read := range []time.Duration{0, 99 * time.Millisecond, 100 * time.Millisecond, 101 * time.Millisecond} {
			if goesOn, hungUp := streamable.ReadOn(read); goesOn == hungUp || hungUp != (read > 100*time.Millisecond) && read != 100*time.Millisecond {
				t.Errorf("read for %v: goes on: %v, hung up: %v", read, goesOn, hungUp)
			}
		}
	})
}
