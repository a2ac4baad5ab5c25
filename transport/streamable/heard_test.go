package streamable_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestRefusalAfterNews_P2: a call that something has come for is not made again, even if
// what it fails with says that it was not executed. Its caller has seen that.
func TestRefusalAfterNews_P2(t *testing.T) {
	for name, news := range map[string]string{
		"progress":            `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":TOKEN,"progress":1}}`,
		"a log message":       `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`,
		"something else":      `{"jsonrpc":"2.0","method":"notifications/x"}`,
		"nothing":             "",
		"progress of another": `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":999,"progress":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			p := newPeer(t, modernPeer(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
				if string(m.Method) == "tools/list" {
					writeResult(w, m, `{"tools":[]}`)
					return
				}
				if calls++; calls > 1 {
					writeResult(w, m, `{}`)
					return
				}
				writeStream(w)
				if news != "" {
					token := m.ID.String() // is what the edge gives as one
					writeMore(w, event(strings.ReplaceAll(news, "TOKEN", token)))
				}
				writeMore(w, event(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"error":{"code":-32020,"message":"Header mismatch"}}`))
			}))
			c := dial(t, p.url, nil)
			req := toolRequest("t", `{}`)
			req.Meta.ProgressToken = jsonrpc.StringID("p")

			_, err := c.Handle(t.Context(), req, newRecorder())
			want := 1
			if name == "nothing" || name == "progress of another" {
				want = 2
			}
			if calls != want || (err == nil) != (want == 2) || err != nil && jsonrpc.ToWire(err).Code != jsonrpc.CodeHeaderMismatch {
				t.Errorf("%d calls, %v", calls, err)
			}
		})
	}
}

// TestSessionLostAfterNews_P2: nor is it made again by a pool.
func TestSessionLostAfterNews_P2(t *testing.T) {
	for _, speaks := range []bool{true, false} {
		stream := make(chan string, 1)
		calls := 0
		heard := make(chan struct{})
		p := newPeer(t, legacyPeer("2025-11-25", "s", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if r.Method == http.MethodGet {
				writeStream(w, ":\n\n")
				for {
					select {
					case text := <-stream:
						writeMore(w, text)
					case <-r.Context().Done():
						return
					}
				}
			}
			if calls++; calls > 1 {
				writeResult(w, m, `{}`)
				return
			}
			if speaks {
				stream <- event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + m.ID.String() + `,"progress":1}}`)
				<-heard
			}
			w.WriteHeader(http.StatusNotFound)
		}))
		pool := transport.NewPool(func(ctx context.Context, _ *mcp.Metadata) (transport.Edge, error) {
			return streamable.Dial(ctx, p.url, nil)
		}, transport.PoolOptions{})
		req := toolRequest("t", `{}`)
		req.Meta.ProgressToken = jsonrpc.StringID("p")
		_, err := pool.Handle(t.Context(), req, notified(func() { close(heard) }))
		if speaks && (calls != 1 || mcp.OutcomeOf(err) != mcp.MaybeExecuted) || !speaks && (calls != 2 || err != nil) {
			t.Errorf("speaks %v: %d calls, %v", speaks, calls, err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}
}

// notified is a Caller that is told something once.
type notified func()

func (f notified) Notify(context.Context, *mcp.Notification) error {
	f()
	return nil
}

func (notified) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrClosed
}
