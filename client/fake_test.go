package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

var (
	errCrash = errors.New("it crashed")
	errDial  = errors.New("nobody is there")
)

// A puppet is a Target whose connections a test lets succeed, fail and end.
type puppet struct {
	// dialed makes the nth connection, from 1; nil makes each succeed.
	dialed func(ctx context.Context, n int, opts transport.DialOptions) (*fakeEdge, error)
	handle mcp.HandlerFunc // of edges that dialed does not make
	stays  string          // method that is not answered

	mu    sync.Mutex
	dials []transport.DialOptions // guarded by mu, like what follows
	times []time.Time
	edges []*fakeEdge
}

// Dial implements client.Target.
func (p *puppet) Dial(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
	p.mu.Lock()
	p.dials = append(p.dials, opts)
	p.times = append(p.times, time.Now())
	n, dialed := len(p.dials), p.dialed
	p.mu.Unlock()
	e := newEdge(mcp.Legacy, p.handle)
	if dialed != nil {
		var err error
		if e, err = dialed(ctx, n, opts); err != nil {
			return nil, err
		}
		if e == nil {
			e = newEdge(mcp.Legacy, p.handle)
		}
	}
	e.stays = p.stays
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edges = append(p.edges, e)
	return e, nil
}

// redial has further connections made in another way.
func (p *puppet) redial(dialed func(ctx context.Context, n int, opts transport.DialOptions) (*fakeEdge, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialed = dialed
}

func (p *puppet) String() string { return "a puppet" }

func (p *puppet) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.dials)
}

// dialedWith returns the options of each attempt to connect.
func (p *puppet) dialedWith() []transport.DialOptions {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.dials)
}

// last returns the newest connection.
func (p *puppet) last() *fakeEdge {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.edges[len(p.edges)-1]
}

// waits returns the times between attempts to connect.
func (p *puppet) waits() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var waits []time.Duration
	for i := range p.times[1:] {
		waits = append(waits, p.times[i+1].Sub(p.times[i]))
	}
	return waits
}

// A fakeEdge is a connection. Listen calls are acknowledged and stay; what else it
// is called with handle answers, nil with an empty result.
type fakeEdge struct {
	info   transport.ServerInfo
	handle mcp.HandlerFunc
	slow   time.Duration // what Close takes
	stays  string        // method that is not answered

	mu   sync.Mutex
	err  error         // guarded by mu
	done chan struct{} // closed when err is set
}

func newEdge(era mcp.Era, handle mcp.HandlerFunc) *fakeEdge {
	revision := mcp.NewestLegacy
	if era == mcp.Modern {
		revision = mcp.NewestModern
	}
	return &fakeEdge{
		info:   transport.ServerInfo{Era: era, Revision: revision, Discover: mcp.RawResult([]byte(`{"capabilities":{}}`))},
		handle: handle, done: make(chan struct{}),
	}
}

// end ends the connection.
func (e *fakeEdge) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
		close(e.done)
	}
}

func (e *fakeEdge) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if err := e.Err(); err != nil {
		return mcp.Result{}, lost(req, mcp.NotSent, err)
	}
	if e.handle != nil {
		result, err := e.handle(ctx, req, caller)
		if !errors.Is(err, errUsual) {
			return result, err
		}
	}
	if req.Method == e.stays {
		return e.stay(ctx, req)
	}
	if req.Method != mcp.MethodListen {
		return mcp.RawResult([]byte("{}")), nil
	}
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	if err := caller.Notify(ctx, filter.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	return e.stay(ctx, req)
}

// errUsual has an edge do what it does without a handle.
var errUsual = errors.New("the usual")

// stay is a call that goes on as long as it may.
func (e *fakeEdge) stay(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	select {
	case <-ctx.Done():
		return mcp.Result{}, context.Cause(ctx)
	case <-e.done:
		return mcp.Result{}, lost(req, mcp.MaybeExecuted, e.Err())
	}
}

func lost(req *mcp.Request, outcome mcp.Outcome, err error) error {
	return &mcp.CallError{Method: req.Method, Kind: mcp.ConnectionLost, Outcome: outcome, Err: err}
}

func (e *fakeEdge) Server() transport.ServerInfo { return e.info }
func (e *fakeEdge) Done() <-chan struct{}        { return e.done }

func (e *fakeEdge) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

func (e *fakeEdge) Close() error {
	e.end(mcp.ErrClosed)
	pass(e.slow)
	return nil
}

// connect connects, and closes the client at the end of the test.
func connect(t *testing.T, target client.Target, opts *client.Options) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), target, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// peerError returns an error as a server sends it.
func peerError(text string) error {
	v := jsonrpc.Trusted([]byte(text))
	return jsonrpc.ReadError(&v)
}

// outcome returns kind and outcome of a failed call.
func outcome(err error) (mcp.FailureKind, mcp.Outcome) {
	failed, ok := errors.AsType[*mcp.CallError](err)
	if !ok {
		return "", mcp.OutcomeOf(err)
	}
	return failed.Kind, failed.Outcome
}

// call calls a tool.
func call(t *testing.T, c *client.Client) error {
	t.Helper()
	_, err := c.CallTool(t.Context(), "work", nil, nil)
	return err
}

// pass lets time pass, in a bubble.
func pass(d time.Duration) { <-time.After(d) }
