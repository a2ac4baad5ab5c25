package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"

	"github.com/google/go-cmp/cmp"
)

// A rich Caller can do all that Callers may do, and keeps what was done.
type rich struct {
	mcp.NoCaller
	done []string
}

func (r *rich) Notify(_ context.Context, n *mcp.Notification) error {
	r.done = append(r.done, n.Method)
	return nil
}

func (r *rich) NotifyAll(_ context.Context, list []*mcp.Notification) error {
	for _, n := range list {
		r.done = append(r.done, "all "+n.Method)
	}
	return nil
}

func (r *rich) Release(_ context.Context, retry time.Duration) error {
	r.done = append(r.done, "release "+retry.String())
	return nil
}

func (r *rich) Lend(func()) { r.done = append(r.done, "lend") }

// TestCallerKeepsItsAbilities: whatever the gateway has to know of what is done with it.
func TestCallerKeepsItsAbilities(t *testing.T) {
	use := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		log := &mcp.Notification{Method: mcp.NotificationMessage}
		if err := mcp.NotifyAll(ctx, caller, []*mcp.Notification{log}); err != nil {
			return mcp.Result{}, err
		}
		if err := mcp.Release(ctx, caller, time.Second); err != nil {
			return mcp.Result{}, err
		}
		transport.Lend(caller, make([]byte, 1<<20), func([]byte) {})
		return mcp.RawResult([]byte(`{"contents":[]}`)), nil
	}
	want := []string{"all " + mcp.NotificationMessage, "release 1s", "lend"}
	a, b := library("a", "q:/{name}"), library("b", "q:/{name}")
	for _, backend := range []*fake{a, b} {
		backend.setTools("x")
		backend.handle(mcp.MethodCallTool, use)
		backend.handle(mcp.MethodReadResource, use)
	}
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": a, "b": b})
	for _, capabilities := range []string{`{}`, `{"elicitation":{}}`} {
		for method, params := range map[string]string{mcp.MethodCallTool: `{"name":"a__x"}`, mcp.MethodReadResource: `{"uri":"x:1"}`} {
			req := request(method, params)
			req.Meta.Capabilities = []byte(capabilities)
			r := new(rich)
			if _, err := g.Handle(t.Context(), req, r); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, r.done); diff != "" {
				t.Errorf("%s of a client with %s (-want +got):\n%s", method, capabilities, diff)
			}
			// One that can do nothing of this is not harmed.
			if _, err := g.Handle(t.Context(), req, mcp.NoCaller{}); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestLogMessagesEndNoSearch: they may come from several backends, progress may not.
func TestLogMessagesEndNoSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for method, want := range map[string]int{mcp.NotificationMessage: 1, mcp.NotificationProgress: 0} {
			for _, all := range []bool{false, true} {
				a, b := library("a", "q:/{name}"), library("b", "q:/{name}", "x:1")
				a.handle(mcp.MethodReadResource, func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
					n := &mcp.Notification{Method: method}
					var err error
					if !all {
						err = caller.Notify(ctx, n)
					} else {
						err = mcp.NotifyAll(ctx, caller, []*mcp.Notification{{Method: mcp.NotificationMessage}, n})
					}
					if err != nil {
						return mcp.Result{}, err
					}
					return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "a has none")
				})
				g := newGateway(t, hurried, map[string]mcp.Handler{"a": a, "b": b})
				r := new(rich)
				_, err := g.Handle(t.Context(), request(mcp.MethodReadResource, `{"uri":"x:1"}`), r)
				if n := b.times(mcp.MethodReadResource); n != want || (err == nil) != (want == 1) || !slices.ContainsFunc(r.done, func(done string) bool { return strings.HasSuffix(done, method) }) {
					t.Errorf("after %s the other one is asked %d times: %v, %q", method, n, err, r.done)
				}
			}
		}
	})
}
