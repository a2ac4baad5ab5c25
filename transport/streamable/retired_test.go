package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
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

// TestRetiredConnectionThatIsClosed: its calls end at once, also between two requests.
func TestRetiredConnectionThatIsClosed_P7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowServer(map[string]late{
			"initialize":       {after: 1, status: 200, session: "s", body: `"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{}}}`},
			"logging/setLevel": {after: time.Second, status: 200, body: `"result":{}`},
			"tools/call":       {after: 1, status: 200, body: `"result":{}`},
		})
		opts := &streamable.DialOptions{Transport: s, DialOptions: transport.DialOptions{Era: mcp.Legacy}}
		c, err := streamable.Dial(t.Context(), "http://h/mcp", opts)
		if err != nil {
			t.Fatal(err)
		}
		ended, retired := make(chan error, 1), make(chan error, 1)
		go func() {
			req := toolRequest("t", `{}`)
			req.Meta.LogLevel = "debug"
			_, err := c.Handle(context.Background(), req, mcp.NoCaller{})
			ended <- err
		}()
		synctest.Wait()
		go func() { retired <- c.Retire(context.Background()) }()
		synctest.Wait()
		closed := c.Close()
		if failure, ok := errors.AsType[*mcp.CallError](<-ended); !ok || failure.Kind != mcp.ConnectionLost {
			t.Errorf("the call: %v", failure)
		}
		if err := errors.Join(closed, <-retired); err != nil || time.Since(s.began) > time.Second/2 {
			t.Errorf("%v after %v", err, time.Since(s.began))
		}
		if got, want := sorted(s.seen()), "DELETE of s at 0s, initialize at 0s, logging/setLevel of s at 0s, logging/setLevel of s hung up at 0s, notifications/initialized of s at 0s"; got != want {
			t.Errorf("asked for %s", got)
		}
	})
}
