package streamable

import (
	"sync"
	"time"
)

// idleConns are the connections of a [shortcut] that are not in use.
type idleConns struct {
	most int           // how many are kept
	time time.Duration // for which one is kept

	mu     sync.Mutex
	conns  []*shortConn // the latest last, guarded by mu, like what follows
	timer  *time.Timer  // will sweep; nil if there is nothing to sweep
	closed bool         // since a connection was last wanted
}

// take returns a connection that is still one, nil if there is none. What the peer has
// closed, or said unasked, since it was last used is not.
func (p *idleConns) take() *shortConn {
	for {
		c := p.pop()
		if c == nil || time.Since(c.since) < p.time && c.quiet() {
			return c
		}
		_ = c.conn.Close()
	}
}

func (p *idleConns) pop() *shortConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = false
	last := len(p.conns) - 1
	if last < 0 {
		return nil
	}
	c := p.conns[last]
	p.conns[last] = nil
	p.conns = p.conns[:last]
	return c
}

// put keeps a connection, or closes it if there are enough.
func (p *idleConns) put(c *shortConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.conns) >= p.most {
		_ = c.conn.Close()
		return
	}
	c.kept, c.since = true, time.Now()
	p.conns = append(p.conns, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.time, p.sweep)
	}
}

// sweep closes connections that have been idle for long enough.
func (p *idleConns) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.conns) && time.Since(p.conns[n].since) >= p.time {
		_ = p.conns[n].conn.Close()
		n++
	}
	p.conns = append(p.conns[:0:0], p.conns[n:]...)
	p.timer = nil
	if len(p.conns) > 0 {
		p.timer = time.AfterFunc(p.time-time.Since(p.conns[0].since), p.sweep)
	}
}

// close closes all, and those that are given back before another one is wanted.
func (p *idleConns) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.conn.Close()
	}
	p.conns, p.closed = nil, true
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}
