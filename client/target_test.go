package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestOldServer_B134_S128: a URL is that of a server of HTTP with SSE, which is
// found out or known, and is connected to again when its stream has ended.
func TestOldServer_B134_S128(t *testing.T) {
	handler := streamable.NewSSEHandler(demo.New("1"), nil)
	listener := httptest.NewServer(handler)
	t.Cleanup(func() {
		listener.Close()
		handler.Close()
	})
	known := client.URL(listener.URL + "/sse")
	known.Options.Binding = streamable.HTTPWithSSE
	for name, target := range map[string]client.Target{"found out": client.URL(listener.URL + "/sse"), "known": known} {
		t.Run(name, func(t *testing.T) {
			left := make(chan error, 100)
			c, err := client.Connect(t.Context(), target, &client.Options{State: func(_ client.State, err error) {
				if err != nil {
					left <- err
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			if era := c.Verdict().Era; era != mcp.Legacy {
				t.Errorf("taken for %s", era)
			}
			for range 2 {
				result, err := c.CallTool(t.Context(), "echo", map[string]string{"text": "hello"}, nil)
				if err != nil || result.Content[0].(*mcp.Text).Text != "hello" {
					t.Fatalf("%v, %v", result, err)
				}
				listener.CloseClientConnections()
				<-left // so that the next call does not find the stream that has ended
			}
		})
	}
}

// TestServerInProcessFailsAsModernOne: whoever is told that the server speaks
// 2026-07-28 gets the errors of that revision, also where no wire is between.
func TestServerInProcessFailsAsModernOne(t *testing.T) {
	handler := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			return mcp.RawResult([]byte(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`)), nil
		}
		return mcp.Result{}, fmt.Errorf("reading: %w", jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "Resource not found"))
	})
	c, err := client.Connect(t.Context(), client.Handler(handler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, err = c.ReadResource(t.Context(), "memo://none", nil)
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || wire.Code != jsonrpc.CodeInvalidParams || string(wire.Data.Raw()) != `{"uri":"memo://none"}` {
		t.Errorf("a missing resource is answered with %v", err)
	}
	if _, err = c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "")) {
		t.Errorf("another error became %v", err)
	}
}

// TestServerInProcessIsHeardAsFarAsItIsWanted: log messages and progress that a call
// has not asked for do not come, as they do not from an edge, whatever the handler
// sends.
func TestServerInProcessIsHeardAsFarAsItIsWanted(t *testing.T) {
	handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			return mcp.RawResult([]byte(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`)), nil
		}
		for _, n := range []*mcp.Notification{
			{Method: mcp.NotificationMessage, Params: jsonrpc.Trusted([]byte(`{"level":"info","data":1}`))},
			{Method: mcp.NotificationMessage, Params: jsonrpc.Trusted([]byte(`{"level":"error","data":2}`))},
			{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(`{"progressToken":"t","progress":1}`))},
		} {
			if err := caller.Notify(ctx, n); err != nil {
				return mcp.Result{}, err
			}
		}
		return mcp.RawResult([]byte(`{}`)), nil
	})
	edge, err := client.Handler(handler).Dial(t.Context(), transport.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		meta mcp.Metadata
		want string
	}{
		{"nothing", mcp.Metadata{}, ""},
		{"errors", mcp.Metadata{LogLevel: "error"}, "2"},
		{"all and progress", mcp.Metadata{LogLevel: "debug", ProgressToken: jsonrpc.StringID("t")}, "1 2 progress"},
		{"what a legacy client is sent", mcp.Metadata{Revision: mcp.NewestLegacy}, "1 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var heard hearing
			if _, err := edge.Handle(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Meta: tt.meta}, &heard); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(heard.said, " "); got != tt.want {
				t.Errorf("heard %q, want %q", got, tt.want)
			}
		})
	}
}

// A hearing is a Caller that keeps what it is told.
type hearing struct {
	mcp.NoCaller
	said []string
}

// Notify implements [mcp.Caller].
func (h *hearing) Notify(_ context.Context, n *mcp.Notification) error {
	said := "progress"
	if n.Method == mcp.NotificationMessage {
		data, _ := n.Params.Lookup("data")
		said = string(data)
	}
	h.said = append(h.said, said)
	return nil
}

// A convertible is a server that changes its binding.
type convertible struct {
	*httptest.Server

	mu       sync.Mutex
	handler  http.Handler   // guarded by mu
	requests map[string]int // to the address of the server, by method
}

func newConvertible(t *testing.T) *convertible {
	c := &convertible{requests: make(map[string]int)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		handler := c.handler
		if r.URL.Path == "/sse" {
			c.requests[r.Method]++
		}
		c.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// become changes the binding, and forgets what was asked for.
func (c *convertible) become(t *testing.T, binding streamable.Binding) {
	t.Helper()
	var handler interface {
		http.Handler
		Close()
	} = streamable.NewSSEHandler(demo.New("1"), nil)
	if binding == streamable.StreamableHTTP {
		handler = streamable.NewHandler(demo.New("1"), nil)
	}
	t.Cleanup(handler.Close)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler = handler
	clear(c.requests)
	c.CloseClientConnections()
}

func (c *convertible) asked(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[method]
}

// echoes calls until a call succeeds.
func echoes(t *testing.T, c *client.Client) {
	t.Helper()
	eventuallySo(t, "a call succeeds", func() bool {
		_, err := c.CallTool(t.Context(), "echo", map[string]string{"text": "hello"}, nil)
		return err == nil
	})
}

// TestBindingIsKept: what a server speaks is found out once, and again when it
// speaks it no more.
func TestBindingIsKept(t *testing.T) {
	s := newConvertible(t)
	for _, era := range []mcp.Era{mcp.NoEra, mcp.Legacy} {
		t.Run("era "+era.String(), func(t *testing.T) {
			s.become(t, streamable.HTTPWithSSE)
			target := client.URL(s.URL + "/sse")
			c := connect(t, target, &client.Options{Era: era, Healing: healsFast().Healing})
			if got := c.Verdict().Binding; got != streamable.HTTPWithSSE || s.asked(http.MethodPost) == 0 {
				t.Errorf("the binding is %q, after %d POSTs", got, s.asked(http.MethodPost))
			}
			echoes(t, c)
			s.become(t, streamable.HTTPWithSSE)
			echoes(t, c)
			if n := s.asked(http.MethodPost); n > 0 {
				t.Errorf("the next connection tried %d POSTs", n)
			}

			prior := c.Verdict()
			s.become(t, streamable.HTTPWithSSE)
			echoes(t, connect(t, target, &client.Options{Era: era, Prior: &prior}))
			if n := s.asked(http.MethodPost); n > 0 {
				t.Errorf("a client that was told tried %d POSTs", n)
			}

			s.become(t, streamable.StreamableHTTP)
			echoes(t, connect(t, target, &client.Options{Era: era, Prior: &prior}))
			echoes(t, c)
			if got := c.Verdict().Binding; got != streamable.StreamableHTTP {
				t.Errorf("then the binding is %q", got)
			}
			prior = c.Verdict()
			prior.Era, prior.Revision = mcp.Legacy, "" // a modern one is not asked before it is called
			s.become(t, streamable.HTTPWithSSE)
			back := connect(t, target, &client.Options{Era: era, Prior: &prior})
			echoes(t, back)
			if got := back.Verdict().Binding; got != streamable.HTTPWithSSE {
				t.Errorf("at last the binding is %q", got)
			}
			echoes(t, c) // whose connection has not ended
			if got := c.Verdict().Binding; got != streamable.HTTPWithSSE {
				t.Errorf("for who was connected the binding is %q", got)
			}
		})
	}
}
