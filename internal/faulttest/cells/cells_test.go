package cells_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/internal/faulttest/cells"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// How calls end, as failure describes it.
const (
	lost     = "-32603 connection lost, maybe executed"
	refused  = "-32602"
	aResult  = "a result"
	atTheCap = "-32603 limit exceeded, not sent, MaxConns"
)

// TestServerKilledWhileItsClientIsAsked: the failure is kept for the retry, and told a
// legacy client at once. A modern server's own state is gone with it.
func TestServerKilledWhileItsClientIsAsked_B154_P1_P2(t *testing.T) {
	inEachCell(t, fixture{}, func(t *testing.T, f *fixture) {
		c := f.connect(t, "a")
		call := asked(t, c, "1")
		f.backend.Kill()
		if err := f.backend.Restore(); err != nil {
			t.Fatal(err)
		}
		if call.Go() {
			t.Error("the call asks again")
		}
		want := []string{lost}
		if f.server.Era == mcp.Modern {
			want = []string{refused}
		}
		if f.server == (cells.Side{Wire: cells.Stdio, Era: mcp.Modern}) {
			want = append(want, lost) // the retry was written to it while it died
		}
		if got := failure(call.Err); !slices.Contains(want, got) {
			t.Errorf("the call ended with %s, want %q", got, want)
		}
		f.executedOnce(t, "1")
		answered(t, asked(t, c, "2"))
	})
}

// TestClientLeavesBeforeItIsAsked: it has cancelled, and the server sees that.
func TestClientLeavesBeforeItIsAsked_B122_B136(t *testing.T) {
	inEachCell(t, fixture{}, func(t *testing.T, f *fixture) {
		c := f.connect(t, "a")
		ctx, leave := context.WithCancel(t.Context())
		call := c.NewCall(ctx, &cells.Order{ID: "1", Asks: 1, Wait: int(time.Hour.Milliseconds())})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if call.Go() {
				t.Error("a call that was left asks")
			}
		}()
		eventually(t, "the call", func() bool { return f.executed(t, "1") == 1 })
		leave()
		f.abandoned(t, "1")
		<-ended
		answered(t, asked(t, c, "2"))
	})
}

// TestClientLeavesWhileItIsAsked: nothing is cancelled until the life of the state
// ends, or the connection of a client that has one.
func TestClientLeavesWhileItIsAsked_B122(t *testing.T) {
	f := fixture{life: 250 * time.Millisecond}
	inEachCell(t, f, func(t *testing.T, f *fixture) {
		c := f.connect(t, "1")
		call := asked(t, c, "1")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		call.Wait()
		f.abandoned(t, "1")
		other := f.connect(t, "2")
		n := 1
		eventually(t, "room for another parked call", func() bool {
			n++
			return other.NewCall(t.Context(), &cells.Order{ID: fmt.Sprint(n), Asks: 1}).Go()
		})
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		f.abandoned(t, fmt.Sprint(n))
	})
}

// TestBridgeRestartedWhileAClientIsAsked: no state of before is taken up, and the
// servers that the bridge has started are gone. What a modern server keeps over HTTP
// is its own.
func TestBridgeRestartedWhileAClientIsAsked(t *testing.T) {
	inEachCell(t, fixture{}, func(t *testing.T, f *fixture) {
		c := f.connect(t, "a")
		call := asked(t, c, "1")
		f.close(t)
		if f.server.Wire == cells.Stdio && len(f.backend.Processes()) > 0 {
			t.Error("the server is left")
		}
		if f.server.Era == mcp.Legacy || f.server.Wire == cells.Stdio {
			f.abandoned(t, "1")
		}
		f.open(t)
		again := f.connect(t, "a")
		if f.client.Era == mcp.Legacy {
			if call.Go() || call.Err == nil {
				t.Errorf("the call did not end with the bridge: %s", call.Result.Raw())
			}
		} else {
			_, err := call.As(again, call.State())
			want := refused
			if f.server == (cells.Side{Wire: cells.HTTP, Era: mcp.Modern}) {
				want = aResult
			}
			if got := failure(err); got != want {
				t.Errorf("the retry ended with %s, want %s", got, want)
			}
		}
		f.executedOnce(t, "1")
		answered(t, asked(t, again, "2"))
	})
}

// TestPoolAtItsCapWhileAClientIsAsked: a parked call keeps its connection, and whoever
// needs one more is told of the limit. Modern servers have one for all.
func TestPoolAtItsCapWhileAClientIsAsked(t *testing.T) {
	f := fixture{pool: transport.PoolOptions{MaxConns: 1, Isolation: transport.PerClient}}
	inEachCell(t, f, func(t *testing.T, f *fixture) {
		c := f.connect(t, "a")
		call := asked(t, c, "1")
		_, err := f.try(t, "b", &cells.Order{ID: "2"})
		want := atTheCap
		if f.server.Era == mcp.Modern {
			want = aResult
		}
		if got := failure(err); got != want {
			t.Errorf("another client's call ended with %s, want %s", got, want)
		}
		if want == atTheCap && !strings.Contains(err.Error(), "all 1 connections to the server are in use") {
			t.Errorf("the error does not tell what was seen: %v", err)
		}
		answered(t, call)
		// A session listens, and so uses its connection as long as it lasts. One that is
		// idle is closed for the next client.
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, "room for the other client", func() bool {
			_, err := f.try(t, "b", &cells.Order{ID: "3"})
			return err == nil
		})
	})
}

// TestStatesOfAParkedCall: one that was changed, or is another user's, or was used, is
// refused, and harms nothing.
func TestStatesOfAParkedCall_TG2_TG5(t *testing.T) {
	var f fixture
	f.options.Principal = func(r *http.Request) mcp.Principal { return mcp.Principal{Subject: r.Header.Get("X-User")} }
	inEachCell(t, f, func(t *testing.T, f *fixture) {
		if f.client.Era == mcp.Legacy {
			return // has no states
		}
		c := f.connect(t, "a")
		call := c.NewCall(t.Context(), &cells.Order{ID: "1", Asks: 2})
		if !call.Go() {
			t.Fatalf("the call does not ask: %v", call.Err)
		}
		first := call.Retry()
		if !call.Go() {
			t.Fatalf("the call does not ask again: %v", call.Err)
		}
		state := call.State()
		changed := func(at int) string {
			b := []byte(state)
			b[at] = "AB"[b[at]&1] // another letter
			if b[at] == state[at] {
				b[at] = 'C'
			}
			return string(b)
		}
		for what, state := range map[string]string{
			"no state of ours":   changed(0),
			"of another bridge":  changed(len("mcpsplice.") + 1),
			"changed":            changed(len(state) / 2),
			"changed at its end": changed(len(state) - 1),
			"cut":                state[:len(state)-4],
			"empty":              "",
		} {
			if _, err := call.As(c, state); failure(err) != refused {
				t.Errorf("%s: %s", what, failure(err))
			}
		}
		// To a modern server the bridge is one client.
		if f.server.Era == mcp.Legacy {
			if _, err := call.As(f.connect(t, "b"), state); failure(err) != refused {
				t.Errorf("another user's: %s", failure(err))
			}
		}
		if _, err := first(); failure(err) != refused {
			t.Errorf("that of the first question, again: %s", failure(err))
		}
		last := call.Retry()
		answered(t, call)
		if _, err := last(); failure(err) != refused {
			t.Errorf("that of the last question, again: %s", failure(err))
		}
		f.executedOnce(t, "1")
	})
}

// TestLineResetWhileAClientIsAsked: over HTTP the client comes back for the stream on
// which it is asked (Last-Event-ID), a bridge for that of its server, and a parked call
// needs no line at all. The stream of HTTP with SSE is its client.
func TestLineResetWhileAClientIsAsked_B109(t *testing.T) {
	for _, before := range []string{"bridge", "server"} {
		t.Run("before the "+before, func(t *testing.T) {
			inEachCell(t, fixture{}, func(t *testing.T, f *fixture) {
				reset := f.cut(t, before)
				if reset == nil {
					return // there is no such line
				}
				call := asked(t, f.connect(t, "a"), "1")
				reset()
				answered(t, call)
				f.executedOnce(t, "1")
			})
		})
	}
}

// cut puts a proxy before the bridge or the server, and returns what resets the
// connections through it; nil if no HTTP client is there.
func (f *fixture) cut(t *testing.T, before string) (reset func()) {
	t.Helper()
	wire, host, through := f.client.Wire, f.bridge.Host(), f.bridge.Through
	if before == "server" {
		wire, host, through = f.server.Wire, f.backend.Host(), f.backend.Through
	}
	if wire != cells.HTTP {
		return nil
	}
	proxy, err := faulttest.NewProxy(host, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.atEnd = func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}
	through(proxy.Addr())
	return proxy.Reset
}

// failure describes how a call ended: the code, and what is said of a failure of the
// bridge's.
func failure(err error) string {
	if err == nil {
		return aResult
	}
	wire := jsonrpc.ToWire(err)
	text := []string{fmt.Sprint(wire.Code)}
	ours := wire.Data.Get("mcpsplice")
	for _, name := range []string{"kind", "outcome", "limit"} {
		if word, ok := ours.LookupString(name); ok {
			text = append(text, word)
		}
	}
	return strings.Replace(strings.Join(text, ", "), ", ", " ", 1)
}
