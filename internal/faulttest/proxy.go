package faulttest

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// A Proxy forwards TCP connections from an address of the loopback interface to a
// server, and does to them what a plan says. It is safe for concurrent use.
type Proxy struct {
	listener *net.TCPListener
	target   string
	plan     Plan
	ctx      context.Context // ends with the proxy
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu    sync.Mutex
	count int                // connections so far, guarded by mu, like lines
	lines map[*line]struct{} // those that have not ended
}

// NewProxy returns a proxy for the server at target, a host and port. A nil plan
// has no faults.
func NewProxy(target string, plan Plan) (*Proxy, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	if plan == nil {
		plan = Once(Faults{})
	}
	p := &Proxy{listener: listener, target: target, plan: plan, lines: make(map[*line]struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.running.Go(p.accept)
	return p, nil
}

// Addr returns the address that clients connect to, host and port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Connections returns how many there have been.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Reset resets all connections that there are.
func (p *Proxy) Reset() {
	p.mu.Lock()
	lines := slices.Collect(maps.Keys(p.lines))
	p.mu.Unlock()
	for _, l := range lines {
		l.end(true)
	}
}

// Close ends the proxy and its connections, and waits for that.
func (p *Proxy) Close() error {
	p.cancel()
	err := p.listener.Close()
	p.running.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.AcceptTCP()
		if err != nil {
			return
		}
		p.mu.Lock()
		n := p.count
		p.count++
		p.mu.Unlock()
		p.running.Go(func() { p.forward(client, p.plan(n)) })
	}
}

// forward serves one connection.
func (p *Proxy) forward(client *net.TCPConn, faults Faults) {
	l := &line{client: client, frozen: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	defer l.cancel()
	conn, err := new(net.Dialer).DialContext(l.ctx, "tcp", p.target)
	if err != nil {
		l.end(true)
		return
	}
	l.server = conn.(*net.TCPConn) // the network is tcp
	p.mu.Lock()
	p.lines[l] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.lines, l)
		p.mu.Unlock()
	}()
	stop := context.AfterFunc(l.ctx, func() { l.end(false) })
	defer stop()
	var relays sync.WaitGroup
	relays.Go(func() { l.relay(l.server, l.client, faults.Up) })
	relays.Go(func() { l.relay(l.client, l.server, faults.Down) })
	relays.Wait()
	l.end(false)
}

// A line is one connection with its two sides.
type line struct {
	client, server *net.TCPConn
	ctx            context.Context // ends with the connection
	cancel         context.CancelFunc
	ending         sync.Once
	freezing       sync.Once
	frozen         chan struct{} // closed when neither direction goes on
}

// end closes both sides, or resets them.
func (l *line) end(reset bool) {
	l.ending.Do(func() {
		for _, conn := range []*net.TCPConn{l.client, l.server} {
			if conn == nil {
				continue
			}
			if reset {
				_ = conn.SetLinger(0)
			}
			_ = conn.Close()
		}
	})
	l.cancel()
}

// relay forwards one direction, with its faults.
func (l *line) relay(to, from *net.TCPConn, faults []Fault) {
	buffer := make([]byte, 32<<10)
	var passed int64
	pace := time.Duration(0)
	for {
		for len(faults) > 0 && faults[0].At <= passed && !faults[0].Late {
			if !l.suffer(&faults[0], to, from, &pace) {
				return
			}
			faults = faults[1:]
		}
		chunk := buffer[:room(faults, passed, pace, len(buffer))]
		n, err := from.Read(chunk)
		if n > 0 && len(faults) > 0 && faults[0].At <= passed { // a late one
			if !l.suffer(&faults[0], to, from, &pace) {
				return
			}
			faults = faults[1:]
		}
		if pace > 0 && !l.pause(pace) {
			return
		}
		select {
		case <-l.frozen:
			<-l.ctx.Done()
			return
		default:
		}
		if _, werr := to.Write(chunk[:n]); werr != nil {
			l.end(false)
			return
		}
		passed += int64(n)
		if err != nil {
			_ = to.CloseWrite()
			return
		}
	}
}

// room returns how many bytes may be read at once, so that the next fault comes
// where it should.
func room(faults []Fault, passed int64, pace time.Duration, most int) int64 {
	room := int64(most)
	if pace > 0 {
		room = 1
	}
	if len(faults) > 0 {
		room = min(room, max(faults[0].At-passed, 1))
	}
	return room
}

// suffer has a fault happen, and reports whether the direction goes on.
func (l *line) suffer(f *Fault, to, from *net.TCPConn, pace *time.Duration) bool {
	switch f.Trouble {
	case Delay:
		return l.pause(f.Wait)
	case Trickle:
		*pace = max(f.Wait, 1)
		return true
	case Stall:
		<-l.ctx.Done()
	case Freeze:
		l.freezing.Do(func() { close(l.frozen) })
		<-l.ctx.Done()
	case HalfClose:
		_ = to.CloseWrite()
		_ = from.CloseRead()
	case Sever:
		l.end(false)
	case Reset:
		l.end(true)
	}
	return false
}

// pause waits, and reports false if the connection ended before.
func (l *line) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}
