package transport_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A fakeEdge is a connection to no server.
type fakeEdge struct {
	era    mcp.Era
	told   *mcp.Metadata
	handle func(ctx context.Context, req *mcp.Request) (mcp.Result, error)

	calls  atomic.Int32
	once   sync.Once
	done   chan struct{}
	closed atomic.Bool
}

func (e *fakeEdge) Handle(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
	e.calls.Add(1)
	if e.handle == nil {
		return mcp.Result{}, nil
	}
	return e.handle(ctx, req)
}

func (e *fakeEdge) Server() transport.ServerInfo { return transport.ServerInfo{Era: e.era} }
func (e *fakeEdge) Done() <-chan struct{}        { return e.done }
func (e *fakeEdge) die()                         { e.once.Do(func() { close(e.done) }) }

func (e *fakeEdge) Err() error {
	if e.closed.Load() {
		return mcp.ErrClosed
	}
	return errors.New("gone")
}

func (e *fakeEdge) Close() error {
	e.closed.Store(true)
	e.die()
	return nil
}

// A farm makes fake edges.
type farm struct {
	era    mcp.Era
	dialed func(n int, e *fakeEdge) error // may change the edge or fail; nil for neither

	mu    sync.Mutex
	edges []*fakeEdge
}

func (f *farm) dial(_ context.Context, meta *mcp.Metadata) (transport.Edge, error) {
	e := &fakeEdge{era: f.era, told: meta, done: make(chan struct{})}
	f.mu.Lock()
	f.edges = append(f.edges, e)
	n := len(f.edges)
	f.mu.Unlock()
	if f.dialed != nil {
		if err := f.dialed(n, e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (f *farm) all() []*fakeEdge {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.edges)
}

func newPool(t *testing.T, f *farm, opts transport.PoolOptions) *transport.Pool {
	t.Helper()
	p := transport.NewPool(f.dial, opts)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		for i, e := range f.all() {
			if !e.closed.Load() && e.calls.Load() > 0 {
				t.Errorf("edge %d is left open", i)
			}
		}
	})
	return p
}

func asking(meta mcp.Metadata, capability string) mcp.Metadata {
	meta.Capabilities = []byte(`{"` + capability + `":{}}`)
	return meta
}

func get(t *testing.T, h mcp.Handler, meta mcp.Metadata) error {
	t.Helper()
	_, err := h.Handle(t.Context(), toolCall(meta), mcp.NoCaller{})
	return err
}

func TestPoolSharesConnections(t *testing.T) {
	subject := func(meta mcp.Metadata, name string) mcp.Metadata {
		meta.Principal.Subject = name
		return meta
	}
	// In modern HTTP a request stands for itself.
	http := func(client string) mcp.Metadata {
		meta := modernMeta(client)
		meta.Session = ""
		return meta
	}
	a, b := legacyMeta("a"), legacyMeta("b")
	for _, tt := range []struct {
		name    string
		era     mcp.Era // of the server
		opts    transport.PoolOptions
		clients []mcp.Metadata
		want    int // connections
	}{
		{"legacy, nothing declared", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{a, b, a}, 1},
		{"legacy, sampling", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{asking(a, "sampling"), asking(b, "sampling"), asking(a, "sampling")}, 2},
		{"legacy, roots", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{asking(a, "roots"), asking(b, "roots")}, 2},
		{"legacy, elicitation", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{asking(a, "elicitation"), b}, 2},
		{"legacy, elicitation, shared", mcp.Legacy, transport.PoolOptions{Isolation: transport.Shared}, []mcp.Metadata{asking(a, "elicitation"), asking(b, "elicitation")}, 1},
		{"legacy, per client", mcp.Legacy, transport.PoolOptions{Isolation: transport.PerClient}, []mcp.Metadata{a, b, a}, 2},
		{"legacy, other capabilities", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{asking(a, "x"), asking(b, "y")}, 2},
		{"legacy, other principals", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{subject(a, "1"), subject(a, "2")}, 2},
		{"legacy, modern clients", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{asking(modernMeta("a"), "roots"), asking(modernMeta("b"), "roots"), asking(modernMeta("b"), "sampling")}, 3},
		{"legacy, modern HTTP, one client", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{asking(http("a"), "roots"), asking(http("a"), "roots")}, 1},
		{"legacy, modern HTTP, two clients", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{asking(http("a"), "roots"), asking(http("b"), "roots")}, 2},
		{"legacy, modern HTTP, two principals", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{asking(subject(http("a"), "1"), "roots"), asking(subject(http("a"), "2"), "roots")}, 2},
		{"legacy, modern HTTP, other capabilities from now on", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{asking(http("a"), "roots"), asking(http("a"), "sampling")}, 2},
		{"legacy, principals whose names run together", mcp.Legacy, transport.PoolOptions{}, []mcp.Metadata{
			{Principal: mcp.Principal{Issuer: "i\x00", Subject: "s"}}, {Principal: mcp.Principal{Issuer: "i", Subject: "\x00s"}}}, 2},
		{"legacy, elicitation, serialized", mcp.Legacy, transport.PoolOptions{Isolation: transport.Serialized}, []mcp.Metadata{asking(a, "elicitation"), asking(b, "elicitation"), asking(http("c"), "elicitation")}, 1},
		{"legacy, other capabilities, serialized", mcp.Legacy, transport.PoolOptions{Isolation: transport.Serialized}, []mcp.Metadata{asking(a, "elicitation"), b}, 2},
		{"modern", mcp.Modern, transport.PoolOptions{Isolation: transport.PerClient}, []mcp.Metadata{asking(modernMeta("a"), "roots"), modernMeta("b"), subject(modernMeta("c"), "x")}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &farm{era: tt.era}
			p := newPool(t, f, tt.opts)
			for range 2 {
				for _, meta := range tt.clients {
					if err := get(t, p, meta); err != nil {
						t.Fatal(err)
					}
				}
			}
			if n := len(f.all()); n != tt.want {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func TestPoolTellsTheServerOfItsClient(t *testing.T) {
	client := []byte(`{"name":"c","version":"1"}`)
	for _, tt := range []struct {
		name                 string
		meta                 mcp.Metadata
		client, capabilities string
	}{
		{"of its own connection", mcp.Metadata{Revision: mcp.Revision20250618, Session: "a", Client: client, Capabilities: []byte(`{"roots":{}}`)},
			string(client), `{"roots":{}}`},
		{"of a shared one", mcp.Metadata{Revision: mcp.Revision20250618, Session: "a", Client: client, Capabilities: []byte(`{"x":1.0}`)}, "", `{"x":1.0}`},
		{"of a modern client that can be asked", mcp.Metadata{Revision: mcp.Revision20260728, Client: client, Capabilities: []byte(`{"roots":{},"x":1.0}`)},
			string(client), `{"roots":{},"x":1.0}`},
		{"of ourselves", mcp.Metadata{}, "", `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &farm{era: mcp.Legacy}
			p := newPool(t, f, transport.PoolOptions{})
			if err := get(t, p, tt.meta); err != nil {
				t.Fatal(err)
			}
			if told := f.all()[0].told; string(told.Client) != tt.client || string(told.Capabilities) != tt.capabilities {
				t.Errorf("told %s and %s", told.Client, told.Capabilities)
			}
		})
	}
}

func TestPoolDialsOnceForConcurrentFirstCalls(t *testing.T) {
	for _, tt := range []struct {
		era  mcp.Era
		want int
	}{{mcp.Modern, 1}, {mcp.Legacy, 10}} {
		t.Run(tt.era.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dialing, most atomic.Int32
				f := &farm{era: tt.era, dialed: func(n int, _ *fakeEdge) error {
					if now := dialing.Add(1); n == 1 || now > most.Load() {
						most.Store(now)
					}
					time.Sleep(time.Second)
					dialing.Add(-1)
					return nil
				}}
				p := newPool(t, f, transport.PoolOptions{})
				var wg sync.WaitGroup
				for i := range 50 {
					wg.Go(func() {
						if err := get(t, p, asking(legacyMeta(fmt.Sprint(i%10)), "roots")); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				if n := len(f.all()); n != 1 {
					t.Errorf("%d connections are made while the era is not known", n)
				}
				wg.Wait()
				if n := len(f.all()); n != tt.want {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

func TestPoolClosesIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{era: mcp.Legacy, dialed: func(_ int, e *fakeEdge) error {
			e.handle = func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodListen {
					<-ctx.Done()
				}
				return mcp.Result{}, nil
			}
			return nil
		}}
		p := newPool(t, f, transport.PoolOptions{Idle: time.Minute})
		if err := get(t, p, legacyMeta("a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		if err := get(t, p, legacyMeta("a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		first := f.all()[0]
		if first.closed.Load() {
			t.Fatal("a use did not put the end off")
		}
		listen := start(t, p, &mcp.Request{Method: mcp.MethodListen, Meta: legacyMeta("a")}, mcp.NoCaller{})
		time.Sleep(time.Hour)
		if first.closed.Load() {
			t.Fatal("a connection with a call was closed")
		}
		listen.cancel(nil)
		time.Sleep(time.Minute + time.Second)
		if !first.closed.Load() {
			t.Fatal("it was not closed")
		}
		if err := get(t, p, legacyMeta("a")); err != nil || len(f.all()) != 2 {
			t.Errorf("%v, %d connections", err, len(f.all()))
		}
	})
}

func TestPoolLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := &farm{era: mcp.Legacy, dialed: func(_ int, e *fakeEdge) error {
			e.handle = func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Meta.Session == "busy" {
					<-release
				}
				return mcp.Result{}, nil
			}
			return nil
		}}
		p := newPool(t, f, transport.PoolOptions{Isolation: transport.PerClient, MaxConns: 2})
		busy := start(t, p, toolCall(legacyMeta("busy")), mcp.NoCaller{})
		synctest.Wait()
		for _, client := range []string{"a", "b", "c"} { // each takes the idle place
			if err := get(t, p, legacyMeta(client)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		edges := f.all()
		if len(edges) != 4 || edges[0].closed.Load() || !edges[1].closed.Load() || !edges[2].closed.Load() || edges[3].closed.Load() {
			t.Error("the wrong connections were closed")
		}
		second := start(t, p, toolCall(legacyMeta("busy")), mcp.NoCaller{}) // joins the first
		p2 := newPool(t, &farm{era: mcp.Legacy, dialed: f.dialed}, transport.PoolOptions{Isolation: transport.PerClient, MaxConns: 1})
		third := start(t, p2, toolCall(legacyMeta("busy")), mcp.NoCaller{})
		synctest.Wait()
		e := start(t, p2, toolCall(legacyMeta("d")), mcp.NoCaller{}).failure(t)
		if e.Kind != mcp.LimitExceeded || e.Limit != "MaxConns" || e.Outcome != mcp.NotSent || e.Method != mcp.MethodCallTool ||
			!strings.Contains(e.Error(), "all 1 connections") {
			t.Errorf("failed with %v", e)
		}
		close(release)
		for _, c := range []*call{busy, second, third} {
			if _, err := c.wait(t); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestPoolDialsAgainAfterAnEnd_B154_B052(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{era: mcp.Legacy}
		p := newPool(t, f, transport.PoolOptions{})
		for i := range 3 {
			if err := get(t, p, legacyMeta("a")); err != nil {
				t.Fatal(err)
			}
			edges := f.all()
			if len(edges) != i+1 {
				t.Fatalf("%d connections", len(edges))
			}
			edges[i].die()
		}
	})
}

// TestPoolWarnsOfAnEnd unless that is its own doing.
func TestPoolWarnsOfAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder // written before Wait returns, or Close
		f := &farm{era: mcp.Modern}
		p := newPool(t, f, transport.PoolOptions{Idle: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := get(t, p, mcp.Metadata{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if log.String() != "" || !f.all()[0].closed.Load() {
			t.Errorf("an idle connection was closed: %t, log %s", f.all()[0].closed.Load(), log.String())
		}
		if err := get(t, p, mcp.Metadata{}); err != nil {
			t.Fatal(err)
		}
		f.all()[1].die()
		synctest.Wait()
		if want := `level=WARN msg="a connection to the server has ended" err=gone`; !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	})
}

func TestPoolBacksOff_B052_R2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		fails := true
		f := &farm{era: mcp.Legacy, dialed: func(int, *fakeEdge) error {
			if fails {
				return fmt.Errorf("starting: %w", broken)
			}
			return nil
		}}
		p := newPool(t, f, transport.PoolOptions{})
		began := time.Now()
		for time.Since(began) < time.Minute {
			err := get(t, p, legacyMeta("a"))
			e, ok := errors.AsType[*mcp.CallError](err)
			if !ok || e.Kind != mcp.Unreachable || e.Outcome != mcp.NotSent || !errors.Is(err, broken) || e.Method != mcp.MethodCallTool {
				t.Fatalf("failed with %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(f.all()); n < 5 || n > 12 {
			t.Errorf("%d attempts in a minute", n)
		}
		fails = false
		time.Sleep(31 * time.Second)
		if err := get(t, p, legacyMeta("a")); err != nil {
			t.Fatal(err)
		}
		f.all()[len(f.all())-1].die()
		synctest.Wait()
		if err := get(t, p, legacyMeta("a")); err != nil {
			t.Errorf("a success did not reset the wait: %v", err)
		}
	})
}

// TestRefusedClientHarmsNoOthers: what a server says to the handshake of one client is
// about that client.
func TestRefusedClientHarmsNoOthers(t *testing.T) {
	peer := jsonrpc.Trusted([]byte(`{"code":-32602,"message":"not you"}`))
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &farm{era: mcp.Legacy, dialed: func(_ int, e *fakeEdge) error {
				time.Sleep(time.Second)
				if strings.Contains(string(e.told.Capabilities), "sampling") {
					return jsonrpc.ReadError(&peer)
				}
				return nil
			}}
			p := newPool(t, f, transport.PoolOptions{Isolation: transport.PerClient})
			refused, other := asking(legacyMeta("a"), "sampling"), legacyMeta("b")
			if known { // the era of the server
				if err := get(t, p, legacyMeta("c")); err != nil {
					t.Fatal(err)
				}
			}
			before := len(f.all())
			first := start(t, p, toolCall(refused), mcp.NoCaller{})
			synctest.Wait()
			second := start(t, p, toolCall(other), mcp.NoCaller{})
			if e := first.failure(t); e.Kind != mcp.Unreachable || !strings.Contains(e.Error(), "not you") {
				t.Errorf("the first failed with %v", e)
			}
			if _, err := second.wait(t); err != nil {
				t.Errorf("the other client: %v", err)
			}
			for range 3 {
				if err := get(t, p, refused); mcp.OutcomeOf(err) != mcp.NotSent {
					t.Errorf("the first client: %v", err)
				}
			}
			if n := len(f.all()) - before; n > 3 { // one of the other's, and the first's wait is 0.5 s
				t.Errorf("%d attempts", n)
			}
		})
	}
}

// TestFailedHandshakeIsNoAnswer_B148: what the server said to initialize is not
// what it said to the call.
func TestFailedHandshakeIsNoAnswer_B148(t *testing.T) {
	peer := jsonrpc.Trusted([]byte(`{"code":-32602,"message":"no"}`))
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"a peer's error", jsonrpc.ReadError(&peer)},
		{"a lost connection", &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Method: mcp.MethodInitialize}},
		{"no common revision", fmt.Errorf("x: %w", session.ErrRevision)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &farm{dialed: func(int, *fakeEdge) error { return tt.err }}
			p := newPool(t, f, transport.PoolOptions{})
			for range 2 { // the second is refused without an attempt
				err := get(t, p, legacyMeta("a"))
				if jsonrpc.FromPeer(err) || mcp.OutcomeOf(err) != mcp.NotSent || jsonrpc.ToWire(err).Code != jsonrpc.CodeInternalError ||
					!strings.Contains(err.Error(), tt.err.Error()) {
					t.Errorf("failed with %v", err)
				}
				if strings.HasPrefix(tt.name, "no common") && !errors.Is(err, session.ErrRevision) {
					t.Error("the cause is lost")
				}
			}
			if n := len(f.all()); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

// TestRetries_B097_P1: a call that was not sent is made once more, one that may
// have been executed never.
func TestRetries_B097_P1_P2(t *testing.T) {
	lost := func(outcome mcp.Outcome) error { return &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: outcome} }
	for _, tt := range []struct {
		name     string
		failures []error // of the connections one after the other
		dials    int
		fails    bool
	}{
		{"not sent", []error{lost(mcp.NotSent)}, 2, false},
		{"not sent twice", []error{lost(mcp.NotSent), lost(mcp.NotSent)}, 2, true},
		{"maybe executed", []error{lost(mcp.MaybeExecuted)}, 1, true},
		{"answered", []error{lost(mcp.Answered)}, 1, true},
		{"timed out", []error{&mcp.CallError{Kind: mcp.TimedOut, Outcome: mcp.NotSent}}, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &farm{era: mcp.Legacy, dialed: func(n int, e *fakeEdge) error {
					if n <= len(tt.failures) {
						e.handle = func(context.Context, *mcp.Request) (mcp.Result, error) {
							// The connection is about to be known to have ended.
							time.AfterFunc(100*time.Millisecond, e.die)
							return mcp.Result{}, tt.failures[n-1]
						}
					}
					return nil
				}}
				p := newPool(t, f, transport.PoolOptions{})
				if err := get(t, p, legacyMeta("a")); (err != nil) != tt.fails {
					t.Errorf("err %v", err)
				}
				if n := len(f.all()); n != tt.dials {
					t.Errorf("%d connections", n)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

func TestPoolGivesUpWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{era: mcp.Legacy, dialed: func(int, *fakeEdge) error { time.Sleep(time.Minute); return nil }}
		p := newPool(t, f, transport.PoolOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		e := startWith(ctx, t, p, toolCall(legacyMeta("a")), mcp.NoCaller{}).failure(t)
		if e.Kind != mcp.TimedOut || e.Outcome != mcp.NotSent || time.Since(began) != time.Second {
			t.Errorf("failed with %v after %v", e, time.Since(began))
		}
		// The dialing goes on for whoever comes next.
		if err := get(t, p, legacyMeta("a")); err != nil || len(f.all()) != 1 {
			t.Errorf("%v, %d connections", err, len(f.all()))
		}
	})
}

// TestServerChangesItsEra, as when it was updated between two starts.
func TestServerChangesItsEra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eras := []mcp.Era{mcp.Modern, mcp.Legacy, mcp.Legacy, mcp.Modern}
		f := &farm{dialed: func(n int, e *fakeEdge) error { e.era = eras[n-1]; return nil }}
		p := newPool(t, f, transport.PoolOptions{Isolation: transport.PerClient})
		both := func(want int) {
			t.Helper()
			for _, client := range []string{"a", "b"} {
				if err := get(t, p, legacyMeta(client)); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(f.all()); n != want {
				t.Errorf("%d connections, want %d", n, want)
			}
		}
		kill := func() {
			for _, e := range f.all() {
				e.die()
			}
			synctest.Wait()
		}
		both(1)
		kill()
		both(3)
		kill()
		both(4)
	})
}

func TestClosedPool_D131(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{era: mcp.Legacy, dialed: func(n int, _ *fakeEdge) error {
			if n == 2 {
				time.Sleep(time.Minute)
			}
			return nil
		}}
		p := transport.NewPool(f.dial, transport.PoolOptions{Isolation: transport.PerClient})
		if err := get(t, p, legacyMeta("a")); err != nil {
			t.Fatal(err)
		}
		pending := start(t, p, toolCall(legacyMeta("b")), mcp.NoCaller{})
		synctest.Wait()
		for range 2 {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		for i, e := range f.all() {
			if !e.closed.Load() {
				t.Errorf("edge %d is left open", i)
			}
		}
		<-pending.done
		if err := get(t, p, legacyMeta("a")); !errors.Is(err, mcp.ErrClosed) || mcp.OutcomeOf(err) != mcp.NotSent {
			t.Errorf("err %v", err)
		}
	})
}

// TestPoolIsClosedWhileItDials: what a dial function returns with its error is no
// connection, even if it is not nil as an interface, as with `return transport.Dial(...)`.
func TestPoolIsClosedWhileItDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := transport.NewPool(func(ctx context.Context, _ *mcp.Metadata) (transport.Edge, error) {
			<-ctx.Done()
			var none *transport.Conn
			return none, ctx.Err()
		}, transport.PoolOptions{})
		pending := start(t, p, toolCall(legacyMeta("a")), mcp.NoCaller{})
		synctest.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		<-pending.done
	})
}
