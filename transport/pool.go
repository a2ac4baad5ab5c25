package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// An Isolation says which clients share a connection to a legacy server.
type Isolation string

// The isolations. The zero value shares a connection unless the client can be
// asked something (elicitation, sampling, roots): such a client gets one of its
// own.
const (
	Automatic Isolation = ""
	Shared    Isolation = "shared"
	PerClient Isolation = "per-client"
)

// PoolOptions configure a [Pool]. The zero value is usable.
type PoolOptions struct {
	Isolation Isolation
	// Max is how many connections there may be; at the limit one that is idle
	// is closed, and if there is none the call fails. Default DefaultMaxConns.
	Max int
	// Idle is how long a connection without calls is kept. What a server keeps
	// in its process does not survive it. Default DefaultIdle.
	Idle   time.Duration
	Logger *slog.Logger // nil for silence
}

// Defaults of [PoolOptions].
const (
	DefaultMaxConns = 64
	DefaultIdle     = 5 * time.Minute
)

// Waits after a server could not be reached, during which calls fail at once.
const (
	minRedial = 500 * time.Millisecond
	maxRedial = 30 * time.Second
)

// A Pool is a Handler over connections to one server, made when they are needed
// and again after they have ended. A modern server gets one connection for all
// clients; legacy ones get them as [Isolation] says. It is safe for concurrent
// use.
type Pool struct {
	dial func(ctx context.Context, meta *mcp.Metadata) (Edge, error)
	opts PoolOptions

	ctx     context.Context // ends dialing
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	conns  map[string]*pooled // guarded by mu, like what follows
	modern bool               // the server has been found to be modern
	closed bool
	again  time.Time // no dialing before, after a failure
	wait   time.Duration
	reason error // the last failure to dial
}

// A pooled connection, or one that is being made.
type pooled struct {
	key   string
	ready chan struct{} // closed when edge or err is set
	edge  Edge
	err   error

	users int         // guarded by Pool.mu, like what follows
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
// the connection is the client's own, its capabilities as far as they can be
// served.
func NewPool(dial func(ctx context.Context, meta *mcp.Metadata) (Edge, error), opts PoolOptions) *Pool {
	if opts.Max <= 0 {
		opts.Max = DefaultMaxConns
	}
	if opts.Idle <= 0 {
		opts.Idle = DefaultIdle
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Pool{dial: dial, opts: opts, ctx: ctx, cancel: cancel, conns: make(map[string]*pooled)}
}

// Handle implements [mcp.Handler]. A call that a connection did not take because
// it had just ended is made once more on a new one.
func (p *Pool) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	result, err := p.handle(ctx, req, caller)
	if e, ok := errors.AsType[*mcp.CallError](err); ok &&
		e.Kind == mcp.ConnectionLost && e.Outcome == mcp.NotSent && ctx.Err() == nil {
		return p.handle(ctx, req, caller)
	}
	return result, err
}

func (p *Pool) handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	c, err := p.acquire(ctx, &req.Meta)
	if err != nil {
		return mcp.Result{}, err
	}
	defer p.release(c)
	return c.edge.Handle(ctx, req, caller)
}

// Close closes all connections and fails every later call. It waits until they
// are closed.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	conns := make([]*pooled, 0, len(p.conns))
	for _, c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	p.cancel()
	var err error
	for _, c := range conns {
		<-c.ready
		if c.edge != nil {
			err = errors.Join(err, c.edge.Close())
		}
	}
	p.running.Wait()
	return err
}

// terms returns under which key a client's connection is, and what the server
// is told of the client.
func (p *Pool) terms(meta *mcp.Metadata) (string, *mcp.Metadata) {
	told := &mcp.Metadata{Principal: meta.Principal, Capabilities: meta.Capabilities}
	if meta.Revision.Era() != mcp.Legacy {
		// A modern client cannot be asked by a legacy server.
		told.Capabilities = mcp.WithoutUser(meta.Capabilities)
	}
	own := p.opts.Isolation == PerClient ||
		p.opts.Isolation == Automatic && mcp.NeedsUser(told.Capabilities)
	key := meta.Principal.Issuer + "\x00" + meta.Principal.Subject + "\x00" + string(told.Capabilities)
	if own {
		told.Client = meta.Client
		key += "\x00" + meta.ClientKey()
	}
	return key, told
}

// acquire returns a connection that is ready, and counts one more user of it.
func (p *Pool) acquire(ctx context.Context, meta *mcp.Metadata) (*pooled, error) {
	key, told := p.terms(meta)
	p.mu.Lock()
	if p.modern {
		key = ""
	}
	c, err := p.find(key, told)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-c.ready:
	case <-ctx.Done():
		p.release(c)
		return nil, &mcp.CallError{Kind: mcp.Cancelled, Outcome: mcp.NotSent, Err: context.Cause(ctx)}
	}
	if c.err != nil {
		p.release(c)
		return nil, c.err
	}
	return c, nil
}

// find returns the connection under key, a new one if there is none. p.mu is
// held.
func (p *Pool) find(key string, told *mcp.Metadata) (*pooled, error) {
	if p.closed {
		return nil, &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed}
	}
	if c := p.conns[key]; c != nil && !c.over() {
		c.users++
		if c.idle != nil {
			c.idle.Stop()
			c.idle = nil
		}
		return c, nil
	}
	if wait := time.Until(p.again); wait > 0 {
		return nil, fmt.Errorf("%w (the next attempt is made in %v)", p.reason, wait.Round(100*time.Millisecond))
	}
	if len(p.conns) >= p.opts.Max && !p.evict() {
		return nil, &mcp.CallError{
			Kind: mcp.LimitExceeded, Limit: "Max", Outcome: mcp.NotSent,
			Public: fmt.Sprintf("all %d connections to the server are in use", p.opts.Max),
		}
	}
	c := &pooled{key: key, ready: make(chan struct{}), users: 1}
	p.conns[key] = c
	p.running.Go(func() { p.run(c, told) })
	return c, nil
}

// evict closes the connection that has been idle longest. p.mu is held.
func (p *Pool) evict() bool {
	var oldest *pooled
	for _, c := range p.conns {
		if c.users == 0 && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	p.remove(oldest)
	p.running.Go(func() { p.discard(oldest) })
	return true
}

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
func (p *Pool) run(c *pooled, told *mcp.Metadata) {
	edge, err := p.dial(p.ctx, told)
	p.mu.Lock()
	c.edge, c.err = edge, err
	if err != nil {
		p.failed(c, err)
	} else {
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
}

func (p *Pool) failed(c *pooled, err error) {
	p.remove(c)
	p.wait = min(max(2*p.wait, minRedial), maxRedial)
	p.again, p.reason = time.Now().Add(p.wait), err
	p.opts.Logger.Warn("the server cannot be reached", "err", err)
}

func (p *Pool) succeeded(c *pooled) {
	p.wait = 0
	if c.edge.Server().Era == mcp.Modern && !p.modern {
		p.modern = true
		p.remove(c)
		if c.key = ""; p.conns[""] == nil {
			p.conns[""] = c
		}
	}
}

// release counts one user less of a connection.
func (p *Pool) release(c *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.users--; c.users > 0 || p.conns[c.key] != c || p.closed {
		return
	}
	c.since = time.Now()
	c.idle = time.AfterFunc(p.opts.Idle, func() { p.expire(c) })
}

// expire closes a connection that is still idle.
func (p *Pool) expire(c *pooled) {
	p.mu.Lock()
	expired := c.users == 0 && p.conns[c.key] == c && !p.closed
	if expired {
		p.remove(c)
	}
	p.mu.Unlock()
	if expired {
		p.discard(c)
	}
}
