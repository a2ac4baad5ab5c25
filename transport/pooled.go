package transport

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

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
	p.logEnd(edge.Err())
	p.discard(c)
	p.mu.Lock()
	delete(p.live, c)
	p.mu.Unlock()
}

// logEnd logs that a connection has ended, as a warning if it was not we who did that.
func (p *Pool) logEnd(err error) {
	level := slog.LevelWarn
	if errors.Is(err, mcp.ErrClosed) {
		level = slog.LevelDebug
	}
	p.opts.Logger.Log(context.Background(), level, "a connection to the server has ended", "err", err)
}

// failed makes calls fail at once for a while: all, or only those of a client whose
// handshake the server has refused. p.mu is held.
func (p *Pool) failed(c *pooled, err error) {
	p.remove(c)
	delete(p.live, c)
	if side := &p.sides[c.terms.legacy]; side.first == c {
		side.first = nil
	}
	if p.closed {
		return
	}
	if jsonrpc.FromPeer(err) {
		p.refused.failed(c.key, err)
		p.opts.Logger.Warn("the server has refused a client", "err", err)
		return
	}
	p.redial.failed(err)
	p.opts.Logger.Warn("the server cannot be reached", "err", err)
}

// succeeded puts a connection where calls find it. The server may have become
// one of another era. p.mu is held.
func (p *Pool) succeeded(c *pooled) {
	p.redial = redial{}
	delete(p.refused, c.key)
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
