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
