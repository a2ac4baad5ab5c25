package transport

import (
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

// Waits after a server could not be reached, during which calls fail at once.
const (
	minRedial = 500 * time.Millisecond
	maxRedial = 30 * time.Second
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

	mu     sync.Mutex
	conns  map[string]*pooled   // those that calls may join, by key; guarded by mu, like what follows
	live   map[*pooled]struct{} // all that have not ended
	sides  [2]side              // for clients that are not legacy, and those that are
	closed bool
	again  time.Time // no dialing before, after a failure
	wait   time.Duration
	reason error // the last failure to dial
}

// A pooled connection, or one that is being made.
type pooled struct {
	terms terms         // of the client that it was made for
	ready chan struct{} // closed when edge or err is set
	edge  Edge
	err   error
	floor floor // used if calls are serialized

	key   string      // in Pool.conns; guarded by Pool.mu, like what follows
	users int         // calls
	idle  *time.Timer // runs while there are no users
	since time.Time   // when the last user left
}

// over reports whether the connection has ended.
func (c *pooled) over() bool {
	select {
	case <-c.ready:
	default:
		return false
	}
	if c.edge == nil {
		return true
	}
	select {
	case <-c.edge.Done():
		return true
	default:
		return false
	}
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
		if c.err != nil {
			p.release(c)
			return nil, named(req, unreachable(c.err))
		}
		if p.fits(c, &t) {
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
	if wait := time.Until(p.again); wait > 0 {
		e := unreachable(p.reason)
		e.Err = fmt.Errorf("%w (the next attempt is made in %v)", e.Err, wait.Round(100*time.Millisecond))
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

// begin makes a connection. p.mu is held.
func (p *Pool) begin(t *terms) *pooled {
	c := &pooled{terms: *t, key: p.keyFor(t), ready: make(chan struct{}), users: 1}
	p.conns[c.key] = c
	p.live[c] = struct{}{}
	if side := &p.sides[t.legacy]; side.era == mcp.NoEra {
		side.first = c
	}
	p.running.Go(func() { p.run(c) })
	return c
}

// evict closes the connection that has been idle longest. p.mu is held.
func (p *Pool) evict() bool {
	var oldest *pooled
	for c := range p.live {
		if c.users == 0 && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	p.remove(oldest)
	delete(p.live, oldest) // run waits for its end
	p.running.Go(func() { p.discard(oldest) })
	return true
}

// remove lets no more calls join a connection. p.mu is held.
func (p *Pool) remove(c *pooled) {
	if p.conns[c.key] == c {
		delete(p.conns, c.key)
	}
}

func (p *Pool) discard(c *pooled) {
	<-c.ready
	if c.edge == nil {
		return
	}
	if err := c.edge.Close(); err != nil {
		p.opts.Logger.Warn("closing a connection", "err", err)
	}
}

// run dials and then waits for the connection's end.
func (p *Pool) run(c *pooled) {
	edge, err := p.dial(p.ctx, c.terms.told)
	p.mu.Lock()
	if err != nil {
		c.err = err // and no edge, whatever dial has returned besides
		p.failed(c, err)
	} else {
		c.edge = edge
		p.succeeded(c)
	}
	p.mu.Unlock()
	close(c.ready)
	if err != nil {
		return
	}
	<-edge.Done()
	p.mu.Lock()
	p.remove(c)
	p.mu.Unlock()
	p.opts.Logger.Debug("a connection to the server has ended", "err", edge.Err())
	p.discard(c)
	p.mu.Lock()
	delete(p.live, c)
	p.mu.Unlock()
}

// failed makes calls fail at once for a while. p.mu is held.
func (p *Pool) failed(c *pooled, err error) {
	p.remove(c)
	delete(p.live, c)
	if side := &p.sides[c.terms.legacy]; side.first == c {
		side.first = nil
	}
	p.wait = min(max(2*p.wait, minRedial), maxRedial)
	p.again, p.reason = time.Now().Add(p.wait), err
	if !p.closed {
		p.opts.Logger.Warn("the server cannot be reached", "err", err)
	}
}

// succeeded puts a connection where calls find it. The server may have become
// one of another era. p.mu is held.
func (p *Pool) succeeded(c *pooled) {
	p.wait = 0
	if side := &p.sides[c.terms.legacy]; side.first == c {
		side.first = nil
	}
	p.remove(c)
	p.sides[c.terms.legacy].era = c.edge.Server().Era
	c.key = p.keyFor(&c.terms)
	if other := p.conns[c.key]; other == nil || other.over() {
		p.conns[c.key] = c
	}
}

// release counts one user less of a connection.
func (p *Pool) release(c *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.users--; c.users > 0 || p.closed || c.err != nil {
		return
	}
	c.since = time.Now()
	wait := p.opts.Idle
	if p.conns[c.key] != c {
		wait = 0 // nobody can join it any more
	}
	c.idle = time.AfterFunc(wait, func() { p.expire(c) })
}

// expire closes a connection that is still idle.
func (p *Pool) expire(c *pooled) {
	p.mu.Lock()
	expired := c.users == 0 && !p.closed
	if expired {
		p.remove(c)
	}
	p.mu.Unlock()
	if expired {
		p.discard(c)
	}
}
