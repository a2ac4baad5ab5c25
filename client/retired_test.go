package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// TestChildThatBecomesAnotherServer: a launcher that starts the server behind its streams
// anew, or a bridge, can change what it is while it runs. The call that shows it is made
// on the next child; the others end on the one that took them, which ends then.
func TestChildThatBecomesAnotherServer(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		const refusal = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"v","data":{"supported":["2030-01-01"],"requested":"x"}}}` + "\n"
		// The client's own subscription may have the id 2 or 3, and has ended by then.
		const result = `,"result":{"resultType":"complete","content":[{"type":"text","text":"late"}]}}` + "\n"
		const late = `{"jsonrpc":"2.0","id":2` + result + `{"jsonrpc":"2.0","id":3` + result
		b := brittleOf(t, era, healsFast(),
			faulttest.Script{
				faulttest.Handshake(), faulttest.Expect(mcp.MethodCallTool), faulttest.Write(progressNow),
				faulttest.Expect(mcp.MethodCallTool), faulttest.Write(refusal),
				faulttest.Pause(300 * time.Millisecond), // in which it would have been closed
				faulttest.Write(late), faulttest.Drain(),
			},
			faulttest.Script{faulttest.Serve()})
		begun := make(chan struct{})
		type end struct {
			result *mcp.CallToolResult
			err    error
		}
		first := make(chan end, 1)
		go func() {
			result, err := b.CallTool(t.Context(), "work", nil, &client.CallOptions{Progress: func(*mcp.ProgressParams) { close(begun) }})
			first <- end{result, err}
		}()
		select {
		case <-begun:
		case <-time.After(soon):
			t.Fatal("the call has not begun")
		}
		b.works(t)
		got := <-first
		if got.err != nil {
			t.Fatalf("the call that was in flight: %v", got.err)
		}
		if text, ok := got.result.Content[0].(*mcp.Text); !ok || text.Text != "late" {
			t.Errorf("the call that was in flight returned %v", got.result.Content)
		}
		if n := b.child.Starts(); n != 2 {
			t.Errorf("it was started %d times", n)
		}
	})
}

// A reluctant is a Target whose connections are retired by the dozen.
type reluctant struct{ puppet }

// Dial implements client.Target.
func (r *reluctant) Dial(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
	edge, err := r.puppet.Dial(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &retiring{edge.(*fakeEdge)}, nil
}

// A retiring is an edge whose calls go on for as long as they may.
type retiring struct{ *fakeEdge }

// Retire implements what a client looks for.
func (r *retiring) Retire(ctx context.Context) error {
	<-ctx.Done()
	return r.Close()
}

// TestRetiredConnectionsAreBounded: in number and in time.
func TestRetiredConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, more = 8, 3
		r := &reluctant{}
		refuses := true
		r.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool && refuses {
				return mcp.Result{}, peerError(`{"code":-32022,"message":"v","data":{"supported":["2030-01-01"]}}`)
			}
			return mcp.Result{}, errUsual
		}
		c := connect(t, r, healsFast())
		for r.count() <= limit+more {
			if err := call(t, c); err == nil {
				t.Fatal("the call succeeded")
			}
		}
		refuses = false
		if err := call(t, c); err != nil {
			t.Error(err)
		}
		open := func() (n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, e := range r.edges {
				if e.Err() == nil {
					n++
				}
			}
			return n
		}
		if n := open(); n != limit+1 {
			t.Errorf("%d connections are open", n)
		}
		time.Sleep(transport.DefaultMaxCall)
		synctest.Wait()
		if n := open(); n != 1 {
			t.Errorf("%d connections are open after a while", n)
		}
	})
}

// TestHandlerThatBecomesAnotherServer: as one that is a connection to elsewhere may.
func TestHandlerThatBecomesAnotherServer(t *testing.T) {
	held, release := make(chan struct{}), make(chan struct{})
	refuses := true
	handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		name, _ := req.Params.LookupString("name")
		switch {
		case req.Method == mcp.MethodDiscover:
			return mcp.RawResult([]byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`)), nil
		case name == "slow":
			close(held)
			select {
			case <-release:
			case <-ctx.Done():
				return mcp.Result{}, context.Cause(ctx)
			}
		case refuses:
			refuses = false
			return mcp.Result{}, peerError(`{"code":-32022,"message":"v","data":{"supported":["2030-01-01"]}}`)
		}
		return mcp.RawResult([]byte(`{"content":[]}`)), nil
	})
	c := connect(t, client.Handler(handler), healsFast())
	slow := make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), "slow", nil, nil)
		slow <- err
	}()
	<-held
	if err := call(t, c); err != nil {
		t.Errorf("the call that was refused: %v", err)
	}
	close(release)
	if err := <-slow; err != nil {
		t.Errorf("the call that was in flight: %v", err)
	}
}
