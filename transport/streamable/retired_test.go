package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestRetiredConnectionTellsOfItsCalls_B136: its session goes on for those in flight.
func TestRetiredConnectionTellsOfItsCalls_B136(t *testing.T) {
	held, release := make(chan struct{}), make(chan struct{})
	p := newPeer(t, legacyPeer("2025-11-25", "s", onPost(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "tools/call" {
			writeStream(w, ":\n\n")
			close(held)
			<-release
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})))
	c := dial(t, p.url, knownEra(mcp.Legacy))
	failed := make(chan error, 1)
	go func() {
		_, err := callWithin(t.Context(), c, mcp.NoCaller{})
		failed <- err
	}()
	await(t, held)
	retired := make(chan error, 1)
	go func() { retired <- c.Retire(t.Context()) }()
	await(t, c.Done())
	close(release)
	if err := await(t, failed); mcp.OutcomeOf(err) != mcp.MaybeExecuted {
		t.Errorf("the call: %v", err)
	}
	if err := await(t, retired); err != nil {
		t.Error(err)
	}
	if n := len(p.seen("notifications/cancelled")); n != 1 {
		t.Errorf("told %d times: %q", n, p.order())
	}
}

// TestRetiredConnectionMakesAllRequestsOfACall: one call may take several.
func TestRetiredConnectionMakesAllRequestsOfACall(t *testing.T) {
	release := make(chan struct{})
	p := newPeer(t, legacyPeer("2025-11-25", "s", onPost(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "logging/setLevel" {
			<-release
		}
		writeResult(w, m, `{}`)
	})))
	c := dial(t, p.url, knownEra(mcp.Legacy))
	ended := make(chan error, 1)
	go func() {
		req := toolRequest("t", `{}`)
		req.Meta.LogLevel = "debug"
		_, err := c.Handle(t.Context(), req, mcp.NoCaller{})
		ended <- err
	}()
	p.await(t, "logging/setLevel", 1)
	retired := make(chan error, 1)
	go func() { retired <- c.Retire(t.Context()) }()
	await(t, c.Done())
	if _, err := call(t, c, mcp.NoCaller{}); mcp.OutcomeOf(err) != mcp.NotSent {
		t.Errorf("a call that came after it: %v", err)
	}
	close(release)
	if err := await(t, ended); err != nil {
		t.Errorf("the call: %v", err)
	}
	if err := await(t, retired); err != nil || len(p.seen("tools/call")) != 1 || len(p.seen("DELETE")) != 1 {
		t.Errorf("%v after %q", err, p.order())
	}
}

// TestRetiredConnectionThatIsClosedMakesNoMoreRequests: who closes it waits for those
// that are on their way, and for no others.
func TestRetiredConnectionThatIsClosedMakesNoMoreRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int64
		setting, listing := make(chan struct{}), make(chan struct{})
		s := newBubbled(t, func(_ context.Context, m *jsonrpc.Message) string {
			result := `{}`
			switch string(m.Method) {
			case "initialize":
				result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}}}`
			case "logging/setLevel":
				<-setting
			case "prompts/list":
				<-listing
			case "tools/call":
				called.Add(1)
			}
			if m.Kind != jsonrpc.Request {
				return ""
			}
			return `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + result + `}`
		})
		s.stream = nil
		opts := knownEra(mcp.Legacy)
		opts.Transport = s
		c, err := streamable.Dial(t.Context(), "http://h/mcp", opts)
		if err != nil {
			t.Fatal(err)
		}
		run := func(f func() error) <-chan error {
			ended := make(chan error, 1)
			go func() { ended <- f() }()
			synctest.Wait()
			return ended
		}
		inTwo := run(func() error {
			req := toolRequest("t", `{}`)
			req.Meta.LogLevel = "debug"
			_, err := c.Handle(t.Context(), req, mcp.NoCaller{})
			return err
		})
		inOne := run(func() error {
			_, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListPrompts}, mcp.NoCaller{})
			return err
		})
		retired := run(func() error { return c.Retire(t.Context()) })
		closed := run(c.Close)
		close(setting)
		if err := <-inTwo; err == nil || mcp.OutcomeOf(err) != mcp.NotSent || called.Load() != 0 {
			t.Errorf("the call, made %d times: %v", called.Load(), err)
		}
		close(listing)
		if err := errors.Join(<-inOne, <-retired, <-closed); err != nil {
			t.Error(err)
		}
	})
}
