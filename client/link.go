package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A State is how a client's connection is.
type State int

// The states.
const (
	Connecting State = iota
	Connected
	Waiting // until the next attempt to connect
	Held    // too many connections failed: nothing is attempted for a while
	Closed
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"connecting", "connected", "waiting", "held", "closed"}[s]
}

// A link keeps a connection to a target: when it has ended, another one is made.
type link struct {
	// Set at construction.
	dialer  dialer
	healing Healing
	teller  teller
	begun   func(again bool) // called before calls may use a new connection
	ctx     context.Context  // ends the link
	cancel  context.CancelFunc
	running sync.WaitGroup
	wake    chan struct{} // holds a value if a call wants a connection at once
	stale   chan struct{} // holds a value if the connection is of no use any more

	mu         sync.Mutex
	state      State          // guarded by mu, like what follows
	edge       transport.Edge // while connected
	generation int            // how many connections there were
	verdict    Verdict        // of the last one
	attempts   int            // to connect that have failed
	err        error          // of the last one, or why the last connection ended
	changed    chan struct{}  // closed and replaced with each change
	retired    int            // connections that were replaced and have calls in flight
	failures   []time.Time    // of attempts and connections, within healing.Window
	starts     int            // of the server in the last attempt that failed
}

func newLink(target Target, dial transport.DialOptions, o *Options, begun func(again bool)) *link {
	l := &link{
		dialer: dialer{target: target, opts: dial}, healing: o.Healing, teller: teller{tell: o.State}, begun: begun,
		wake: make(chan struct{}, 1), stale: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	if o.Prior != nil && (o.Era == mcp.NoEra || o.Era == o.Prior.Era) {
		l.dialer.prior = *o.Prior
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// start makes the first connection and keeps it from then on.
func (l *link) start(ctx context.Context) error {
	l.set(Connecting, nil)
	edge, err := l.dialer.dial(ctx)
	if err != nil {
		l.cancel()
		l.set(Closed, err)
		l.teller.wait()
		return err
	}
	l.connected(edge)
	l.running.Go(func() { l.keep(edge) })
	return nil
}

// connected makes edge the connection that calls take.
func (l *link) connected(edge transport.Edge) {
	l.mu.Lock()
	l.generation++
	again := l.generation > 1
	l.verdict = l.dialer.learn(edge)
	l.starts = 0
	l.mu.Unlock()
	l.begun(again)
	select {
	case <-l.stale: // it was about the last one
	default:
	}
	l.mu.Lock()
	l.edge = edge
	l.mu.Unlock()
	l.set(Connected, nil)
}

// set changes the state; in any but Connected there is no connection.
func (l *link) set(state State, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.become(state, err)
}

// become is set while l.mu is held.
func (l *link) become(state State, err error) {
	if l.state == Closed {
		return
	}
	l.state = state
	if state != Connected {
		l.edge = nil
	}
	if err != nil {
		l.err = err
	}
	if state == Waiting {
		select {
		case <-l.wake: // by a call that has got its answer since
		default:
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
	l.teller.say(state, err)
}

// keep makes connections again until the link ends.
func (l *link) keep(edge transport.Edge) {
	var pause backoff
	for edge != nil {
		began := time.Now()
		select {
		case <-edge.Done():
		case <-l.stale:
		case <-l.ctx.Done():
			_ = edge.Close() // as close does, which returns the error
			return
		}
		reason := edge.Err()
		l.set(Connecting, reason)
		l.leave(edge, reason)
		if reason == nil {
			_, reason = l.current()
		}
		if time.Since(began) > l.healing.Window {
			pause.reset() // it was a good one
		}
		l.failed()
		edge = l.again(&pause, reason)
	}
}

// A retirer is a connection whose calls go on when it has been replaced.
type retirer interface {
	Retire(ctx context.Context) error
}

// leave ends a connection, which may have ended for a reason. What is in flight on one
// that has not, and would go on, is waited for beside.
func (l *link) leave(edge transport.Edge, reason error) {
	r, ok := edge.(retirer)
	if !ok || reason != nil || !l.retire() {
		_ = edge.Close() // what was wrong is known
		return
	}
	l.running.Go(func() {
		defer l.unretire()
		ctx, cancel := context.WithTimeout(l.ctx, retiredFor)
		defer cancel()
		_ = r.Retire(ctx) // nothing is wrong with it
	})
}

// Bounds of connections that were replaced and whose calls go on. Of further ones the
// calls end at once.
const (
	maxRetired = 8
	retiredFor = transport.DefaultMaxCall
)

// retire reports whether one more connection may be retired.
func (l *link) retire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired == maxRetired {
		return false
	}
	l.retired++
	return true
}

func (l *link) unretire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired--
}

// again connects again, however often it takes. It returns nil when the link has
// ended.
func (l *link) again(pause *backoff, reason error) transport.Edge {
	for l.hold(reason) && l.pause(pause, reason) {
		l.set(Connecting, nil)
		edge, err := l.dialer.dial(l.ctx)
		if err == nil {
			l.connected(edge)
			return edge
		}
		reason = err
		l.attemptFailed(err)
	}
	return nil
}

// failed counts a failure.
func (l *link) failed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, time.Now())
}

// attemptFailed counts an attempt that has failed, and keeps why: a call that waited
// for it may look before the state changes. A server that exits at the probe for its
// era was started twice.
func (l *link) attemptFailed(err error) {
	l.failed()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	l.err = err
	l.starts = 1
	if errors.Is(err, transport.ErrProbeEnded) {
		l.failures = append(l.failures, l.failures[len(l.failures)-1])
		l.starts = 2
	}
}

// hold waits while there were too many failures of late. It reports false when the
// link has ended.
func (l *link) hold(reason error) bool {
	for l.ctx.Err() == nil {
		rest := l.overBudget()
		if rest <= 0 {
			return true
		}
		l.set(Held, fmt.Errorf("%d connections failed within %v, the limit Healing.Crashes; the last: %w",
			l.healing.Crashes, l.healing.Window, reason))
		sleep(l.ctx, rest, nil)
	}
	return false
}

// overBudget returns how long nothing may be attempted.
func (l *link) overBudget() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	begin := time.Now().Add(-l.healing.Window)
	l.failures = slices.DeleteFunc(l.failures, func(t time.Time) bool { return !t.After(begin) })
	// The next attempt may start the server as often as the last one did.
	first := len(l.failures) + max(l.starts, 1) - 1 - l.healing.Crashes
	if first < 0 || len(l.failures) == 0 {
		return 0
	}
	return l.failures[min(first, len(l.failures)-1)].Sub(begin)
}

// pause waits before an attempt, until a call wants it. It reports false when the
// link has ended.
func (l *link) pause(b *backoff, reason error) bool {
	l.set(Waiting, reason)
	least := b.least(l.healing.Window / time.Duration(l.healing.Crashes))
	wait := b.next(l.healing.MinWait, l.healing.MaxWait)
	if l.healing.Off {
		wait = -1
	}
	began := time.Now()
	if !sleep(l.ctx, wait, l.wake) {
		return false
	}
	if wait >= 0 && time.Since(began) >= wait {
		return true
	}
	return sleep(l.ctx, max(least-time.Since(began), 0), nil)
}

// get returns the connection, and its number. Without one it has one made at once
// and waits for that, but for no more than one attempt.
func (l *link) get(ctx context.Context, method string) (transport.Edge, int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	attempts := l.attempts
	for {
		switch {
		case l.usable():
			return l.edge, l.generation, nil
		case l.state == Closed || l.state == Held || l.attempts > attempts:
			return nil, 0, l.unavailable(method)
		case l.state == Waiting:
			l.wakeUp()
		}
		if !l.change(ctx) {
			return nil, 0, givenUp(ctx, method, mcp.NotSent, nil)
		}
	}
}

// await returns the connection, and its number, when there is one. Nothing is
// hurried for that.
func (l *link) await(ctx context.Context, method string) (transport.Edge, int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case l.usable():
			return l.edge, l.generation, nil
		case l.state == Closed:
			return nil, 0, l.unavailable(method)
		}
		if !l.change(ctx) {
			return nil, 0, givenUp(ctx, method, mcp.NotSent, nil)
		}
	}
}

// usable reports whether calls may take the connection. l.mu is held.
func (l *link) usable() bool { return l.state == Connected && !over(l.edge) }

func (l *link) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// change waits for the next change, and reports false if ctx ended before. l.mu is
// held, but not meanwhile.
func (l *link) change(ctx context.Context) bool {
	changed := l.changed
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

// unavailable returns why there is no connection. l.mu is held.
func (l *link) unavailable(method string) error {
	if l.state == Closed {
		return closed(method)
	}
	return &mcp.CallError{
		Method: method, Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: opaque{l.err},
		Public: "the server cannot be reached",
	}
}

func closed(method string) error {
	return &mcp.CallError{Method: method, Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed}
}

// over reports whether a connection has ended. A byte stream says why a moment
// before all of it has ended.
func over(edge transport.Edge) bool {
	select {
	case <-edge.Done():
		return true
	default:
		return edge.Err() != nil
	}
}

// drop has another connection made in place of the one of that number, because the
// server is another one than it was.
func (l *link) drop(generation int, reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.generation != generation || l.state != Connected {
		return
	}
	l.dialer.forget()
	l.become(Connecting, reason)
	select {
	case l.stale <- struct{}{}:
	default:
	}
}

// next waits for a connection after that of the given number, or for the end of the
// link.
func (l *link) next(ctx context.Context, generation int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.generation == generation && l.state != Closed && l.change(ctx) {
	}
}

// current returns the state and why it is no better.
func (l *link) current() (State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == Connected {
		return l.state, nil
	}
	return l.state, l.err
}

// close ends the link and its connection, and waits for that.
func (l *link) close() error {
	l.mu.Lock()
	edge := l.edge
	l.mu.Unlock()
	l.cancel()
	var err error
	if edge != nil {
		err = edge.Close()
	}
	l.running.Wait()
	l.set(Closed, mcp.ErrClosed)
	l.teller.wait()
	return err
}
