package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestSessionLostBesideAnothersCall_B098: two clients share a session, which the server
// forgets. The call that finds out is made again in a new one. The other has been with
// the server: its answer is waited for a moment, and then it may have been executed.
func TestSessionLostBesideAnothersCall_B098_P2(t *testing.T) {
	for _, answered := range []bool{true, false} {
		name := map[bool]string{true: "answered after all", false: "never answered"}[answered]
		t.Run(name, func(t *testing.T) {
			f := new(forgetful)
			held, release := make(chan struct{}), make(chan struct{})
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if tool, _ := m.Body.LookupString("name"); tool == "slow" {
					close(held)
					select {
					case <-release:
					case <-r.Context().Done():
						return
					}
					writeResult(w, m, `{"slow":true}`)
					return
				}
				f.answer(w, r, m)
			})
			pool := transport.NewPool(func(ctx context.Context, _ *mcp.Metadata) (transport.Edge, error) {
				c, err := streamable.Dial(ctx, p.url, nil)
				if err != nil {
					return nil, err
				}
				return c, nil
			}, transport.PoolOptions{Isolation: transport.Shared})
			defer pool.Close()
			type end struct {
				result string
				err    error
			}
			other := make(chan end, 1)
			go func() {
				req := toolRequest("slow", `{}`)
				req.Meta.Session = "other"
				result, err := pool.Handle(t.Context(), req, mcp.NoCaller{})
				other <- end{string(result.Raw()), err}
			}()
			await(t, held)
			f.forget()
			if _, err := call(t, pool, mcp.NoCaller{}); err != nil {
				t.Errorf("the call that finds out: %v", err)
			}
			if answered {
				close(release)
			}
			got := await(t, other)
			switch {
			case answered && (got.err != nil || got.result != `{"slow":true}`):
				t.Errorf("the other call: %q, %v", got.result, got.err)
			case !answered && (!errors.Is(got.err, streamable.ErrSessionLost) || mcp.OutcomeOf(got.err) != mcp.MaybeExecuted):
				t.Errorf("the other call: %q, %v", got.result, got.err)
			}
			if n := len(p.seen("initialize")); n != 2 || f.ran != 1 {
				t.Errorf("%d sessions, %d calls executed besides", n, f.ran)
			}
		})
	}
}

// TestSessionThatIsNotUsedIsEnded: a server may begin one and refuse the handshake all
// the same.
func TestSessionThatIsNotUsedIsEnded(t *testing.T) {
	const tools = `{"resultType":"complete","tools":[]}`
	for name, tt := range map[string]struct {
		refused string // method
		modern  bool
	}{
		"by an error, of both eras": {"initialize", true},
		"at its end, of both eras":  {"notifications/initialized", true},
		"by an error, legacy":       {"initialize", false},
		"at its end, legacy":        {"notifications/initialized", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modern := modernPeer(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) { writeResult(w, m, tools) })
			legacy := legacyPeer("2025-11-25", "sid", nil)
			p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch method := string(m.Method); {
				case method == tt.refused && method == "initialize":
					w.Header().Set("Mcp-Session-Id", "sid")
					writeError(w, 200, m, -32603, "not here")
				case method == tt.refused:
					w.WriteHeader(http.StatusBadRequest)
				case tt.modern && m.Kind == jsonrpc.Request && method != "initialize":
					modern(w, r, m)
				default:
					legacy(w, r, m)
				}
			})
			opts := knownEra(mcp.NoEra)
			opts.Prefer = mcp.Legacy
			c, err := streamable.Dial(t.Context(), p.url, opts)
			if (err == nil) != tt.modern {
				t.Fatalf("connected: %v", err)
			}
			if err == nil {
				if _, err := call(t, c, mcp.NoCaller{}); err != nil {
					t.Error(err)
				}
				closeSoon(t, c)
			}
			ended := p.seen("DELETE")
			if len(ended) != 1 || ended[0].header.Get("Mcp-Session-Id") != "sid" {
				t.Errorf("ended by %v after %q", ended, p.order())
			}
		})
	}
}

// TestListenThatIsNotAnsweredEndsWithItsConnection: it keeps no connection that has been
// replaced.
func TestListenThatIsNotAnsweredEndsWithItsConnection(t *testing.T) {
	gone := make(chan string, 1)
	p := newPeer(t, modernPeer(func(_ http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		<-r.Context().Done()
		gone <- string(m.Method)
	}))
	c := dial(t, p.url, knownEra(mcp.Modern))
	failed := make(chan error, 1)
	go func() {
		_, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListen, Params: jsonrpc.Trusted([]byte(`{"notifications":{}}`))}, mcp.NoCaller{})
		failed <- err
	}()
	p.await(t, mcp.MethodListen, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Retire(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("retired: %v, %v", err, ctx.Err())
	}
	err := await(t, failed)
	if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.ConnectionLost {
		t.Errorf("the listen call: %v", err)
	}
	if method := await(t, gone); method != mcp.MethodListen {
		t.Errorf("%s has gone", method)
	}
}
