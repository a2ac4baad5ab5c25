package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// PoolOptions configure a [Pool]. The zero value is usable.
type PoolOptions struct {
	// Isolation says which clients share a connection; see [Automatic] for the
	// zero value.
	Isolation Isolation
	// MaxConns is how many connections there may be; at the limit one that is
	// idle is closed, and if there is none the call fails. Default
	// DefaultMaxConns.
	MaxConns int
	// Idle is how long a connection without calls is kept. What a server keeps
	// in its process does not survive it. Default DefaultIdle.
	Idle time.Duration
	// TurnWait is how long a call waits while another client has calls in
	// flight, with [Serialized]. Default DefaultTurnWait.
	TurnWait time.Duration
	Logger   *slog.Logger // nil for silence
}

// Defaults of [PoolOptions].
const (
	DefaultMaxConns = 64
	DefaultIdle     = 5 * time.Minute
	DefaultTurnWait = 30 * time.Second
)

// A Pool is a Handler over connections to one server, made when they are needed
// and again after they have ended. A modern server gets one connection for all
// clients; legacy ones get them as [Isolation] says. While the server's era is
// not known, one connection is made at a time. A Pool is safe for concurrent
// use.
type Pool struct {
	// Set at construction.
	dial    func(ctx context.Context, meta *mcp.Metadata) (Edge, error)
	opts    PoolOptions
	ctx     context.Context // ends dialing
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	conns   map[string]*pooled   // those that calls may join, by key; guarded by mu, like what follows
	live    map[*pooled]struct{} // all that have not ended
	sides   [2]side              // for clients that are not legacy, and those that are
	closed  bool
	redial           // after the server could not be reached
	refused refusals // clients whose handshake it has refused
}

// NewPool returns a pool whose connections dial makes. The metadata given to
// dial are what the server is to be told of the client: its identity only if
// the connection is the client's own, its capabilities as it declared them.
// Their revision is the client's: a server that has both eras is best
// spoken to in that one ([DialOptions.Prefer]).
func NewPool(dial func(ctx context.Context, meta *mcp.Metadata) (Edge, error), opts PoolOptions) *Pool {
	if opts.MaxConns <= 0 {
		opts.MaxConns = DefaultMaxConns
	}
	if opts.Idle <= 0 {
		opts.Idle = DefaultIdle
	}
	if opts.TurnWait <= 0 {
		opts.TurnWait = DefaultTurnWait
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Pool{
		dial: dial, opts: opts, ctx: ctx, cancel: cancel,
		conns: make(map[string]*pooled), live: make(map[*pooled]struct{}),
	}
}

// Handle implements [mcp.Handler]. A call that a connection did not take because
// it had just ended is made once more on a new one.
func (p *Pool) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	result, err := p.handle(ctx, req, caller)
	if lostUnsent(err) && ctx.Err() == nil {
		return p.handle(ctx, req, caller)
	}
	return result, err
}

func lostUnsent(err error) bool {
	e, ok := errors.AsType[*mcp.CallError](err)
	return ok && e.Kind == mcp.ConnectionLost && e.Outcome == mcp.NotSent
}

// endingWait is how long a connection that takes no more calls may take to end
// before it counts as another one's trouble.
const endingWait = time.Second

func (p *Pool) handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	c, err := p.acquire(ctx, req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer p.release(c)
	leave, err := p.enter(ctx, c, req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer leave()
	result, err := c.edge.Handle(ctx, req, caller)
	if lostUnsent(err) {
		select {
		case <-c.edge.Done():
		case <-ctx.Done():
		case <-time.After(endingWait):
		}
	}
	return result, err
}

// Close closes all connections and fails every later call. It waits until they
// are closed.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	conns := slices.Collect(maps.Keys(p.live))
	p.mu.Unlock()
	p.cancel()
	closed := make(chan error, len(conns))
	for _, c := range conns {
		go func() {
			<-c.ready
			if c.edge == nil {
				closed <- nil
				return
			}
			closed <- c.edge.Close()
		}()
	}
	var err error
	for range conns {
		err = errors.Join(err, <-closed)
	}
	p.running.Wait()
	return err
}

// acquire returns a connection that is ready, and counts one more user of it.
func (p *Pool) acquire(ctx context.Context, req *mcp.Request) (*pooled, error) {
	t := p.terms(&req.Meta)
	for {
		c, err := p.find(&t)
		if err != nil {
			return nil, named(req, err)
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			p.release(c)
			return nil, &mcp.CallError{
				Method: req.Method, Kind: kindOf(ctx, ctx.Err()), Outcome: mcp.NotSent, Err: context.Cause(ctx),
			}
		}
		fits := p.fits(c, &t)
		switch {
		case c.err != nil && (fits || !jsonrpc.FromPeer(c.err)):
			p.release(c)
			return nil, named(req, unreachable(c.err))
		case c.err == nil && fits:
			return c, nil
		}
		p.release(c) // made for another client, as it turned out
	}
}

// named returns err with the method of the call that it fails.
func named(req *mcp.Request, err *mcp.CallError) error {
	copied := *err
	copied.Method = req.Method
	return &copied
}

// unreachable returns a failure to dial as that of a call, which was not sent,
// whatever became of the handshake.
func unreachable(err error) *mcp.CallError {
	e := &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: err, Public: "the server cannot be reached"}
	if jsonrpc.FromPeer(err) {
		e.Err = handshakeError{err}
	}
	if inner, ok := errors.AsType[*mcp.CallError](err); ok && inner.Public != "" {
		e.Public = inner.Public
	}
	return e
}

// A handshakeError says what a peer's error does, without being the peer's answer
// to the call.
type handshakeError struct{ err error }

func (e handshakeError) Error() string        { return e.err.Error() }
func (e handshakeError) Is(target error) bool { return errors.Is(e.err, target) }

func (p *Pool) fits(c *pooled, t *terms) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.key == p.keyFor(t)
}

// find returns the connection for a client, a new one if there is none, and
// counts one more user of it.
func (p *Pool) find(t *terms) (*pooled, *mcp.CallError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed}
	}
	c := p.conns[p.keyFor(t)]
	if side := &p.sides[t.legacy]; side.era == mcp.NoEra && side.first != nil {
		c = side.first
	}
	if c != nil && !c.over() {
		c.users++
		if c.idle != nil {
			c.idle.Stop()
			c.idle = nil
		}
		return c, nil
	}
	if e := cmp.Or(p.redial.tooEarly(), p.refused.tooEarly(p.keyFor(t))); e != nil {
		return nil, e
	}
	if len(p.live) >= p.opts.MaxConns && !p.evict() {
		return nil, &mcp.CallError{
			Kind: mcp.LimitExceeded, Limit: "MaxConns", Outcome: mcp.NotSent,
			Public: fmt.Sprintf("all %d connections to the server are in use", len(p.live)),
		}
	}
	return p.begin(t), nil
}
