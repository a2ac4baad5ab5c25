package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	target  Target
	dial    transport.DialOptions
	healing Healing
	tell    func(State, error)
	ctx     context.Context // ends the link
	cancel  context.CancelFunc
	running sync.WaitGroup
	wake    chan struct{} // holds a value if a call wants a connection at once

	mu         sync.Mutex
	state      State          // guarded by mu, like what follows
	edge       transport.Edge // while connected
	generation int            // how many connections there were
	verdict    Verdict        // of the last one
	attempts   int            // to connect that have failed
	err        error          // of the last one, or why the last connection ended
	changed    chan struct{}  // closed and replaced with each change
	failures   []time.Time    // of attempts and connections, within healing.Window
}

func newLink(target Target, dial transport.DialOptions, o *Options) *link {
	l := &link{
		target: target, dial: dial, healing: o.Healing, tell: o.State,
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// start makes the first connection and keeps it from then on.
func (l *link) start(ctx context.Context) error {
	l.set(Connecting, nil, nil)
	edge, err := l.target.Dial(ctx, l.dial)
	if err != nil {
		l.cancel()
		l.set(Closed, nil, err)
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
	server := edge.Server()
	l.verdict = Verdict{Era: server.Era, Revision: server.Revision}
	l.mu.Unlock()
	l.set(Connected, edge, nil)
}

// set changes the state.
func (l *link) set(state State, edge transport.Edge, err error) {
	l.mu.Lock()
	if l.state == Closed {
		l.mu.Unlock()
		return
	}
	l.state, l.edge = state, edge
	if err != nil {
		l.err = err
	}
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	l.tell(state, err)
}

// keep makes connections again until the link ends.
func (l *link) keep(edge transport.Edge) {
	var pause backoff
	for edge != nil {
		began := time.Now()
		select {
		case <-edge.Done():
		case <-l.ctx.Done():
		}
		reason := edge.Err()
		l.set(Connecting, nil, reason)
		if err := edge.Close(); reason == nil {
			reason = err
		}
		if time.Since(began) > l.healing.Window {
			pause.wait = 0 // it was a good one
		}
		l.failed()
		edge = l.again(&pause, reason)
	}
}

// again connects again, however often it takes. It returns nil when the link has
// ended.
func (l *link) again(pause *backoff, reason error) transport.Edge {
	for {
		if !l.hold(reason) || !l.pause(pause, reason) {
			return nil
		}
		l.set(Connecting, nil, nil)
		edge, err := l.target.Dial(l.ctx, l.dial)
		if err == nil {
			l.connected(edge)
			return edge
		}
		reason = err
		l.failed()
		l.mu.Lock()
		l.attempts++
		l.mu.Unlock()
	}
}

// failed counts a failure.
func (l *link) failed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, time.Now())
}

// hold waits while there were too many failures of late. It reports false when the
// link has ended.
func (l *link) hold(reason error) bool {
	for {
		wait := l.overBudget()
		if wait <= 0 {
			return l.ctx.Err() == nil
		}
		l.set(Held, nil, fmt.Errorf("%d connections failed within %v, the limit Healing.Crashes; the last: %w",
			l.healing.Crashes, l.healing.Window, reason))
		if !l.sleep(wait, nil) {
			return false
		}
	}
}

// overBudget returns how long nothing may be attempted.
func (l *link) overBudget() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	begin := time.Now().Add(-l.healing.Window)
	l.failures = slices.DeleteFunc(l.failures, func(t time.Time) bool { return !t.After(begin) })
	if len(l.failures) < l.healing.Crashes {
		return 0
	}
	return l.failures[len(l.failures)-l.healing.Crashes].Sub(begin)
}

// pause waits before an attempt, until a call wants it at once. It reports false
// when the link has ended.
func (l *link) pause(b *backoff, reason error) bool {
	l.set(Waiting, nil, reason)
	if l.healing.Off {
		return l.sleep(-1, l.wake)
	}
	return l.sleep(b.next(l.healing.MinWait, l.healing.MaxWait), l.wake)
}

// sleep waits, for ever if wait is negative, and no longer than until wake holds
// a value. It reports false when the link has ended.
func (l *link) sleep(wait time.Duration, wake <-chan struct{}) bool {
	var expired <-chan time.Time
	if wait >= 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-expired:
	case <-wake:
	case <-l.ctx.Done():
		return false
	}
	return true
}

// A backoff is a random wait up to a bound that doubles.
type backoff struct {
	wait time.Duration
}

func (b *backoff) next(least, most time.Duration) time.Duration {
	b.wait = min(max(2*b.wait, least), most)
	return rand.N(b.wait)
}

// get returns the connection, and its number. Without one it has one made at once
// and waits for that, but for no more than one attempt.
func (l *link) get(ctx context.Context, method string) (transport.Edge, int, error) {
	l.mu.Lock()
	attempts := l.attempts
	for {
		if l.state == Connected && !over(l.edge) {
			edge, generation := l.edge, l.generation
			l.mu.Unlock()
			return edge, generation, nil
		}
		if l.state == Closed || l.state == Held || l.attempts > attempts {
			err := l.unavailable(method)
			l.mu.Unlock()
			return nil, 0, err
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case l.wake <- struct{}{}:
		default:
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, 0, &mcp.CallError{Method: method, Kind: kindOf(ctx), Outcome: mcp.NotSent, Err: context.Cause(ctx)}
		}
		l.mu.Lock()
	}
}

// unavailable returns why there is no connection. l.mu is held.
func (l *link) unavailable(method string) error {
	if l.state == Closed {
		return &mcp.CallError{Method: method, Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed}
	}
	return &mcp.CallError{
		Method: method, Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: l.err,
		Public: "the server cannot be reached",
	}
}

// over reports whether a connection has ended.
func over(edge transport.Edge) bool {
	select {
	case <-edge.Done():
		return true
	default:
		return false
	}
}

// drop ends the connection of that number, so that another one is made.
func (l *link) drop(generation int) {
	l.mu.Lock()
	edge := l.edge
	if l.generation != generation {
		edge = nil
	}
	l.mu.Unlock()
	if edge != nil {
		_ = edge.Close() // keep finds out
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
	l.set(Closed, nil, mcp.ErrClosed)
	return err
}

// kindOf returns how a call failed whose context has ended.
func kindOf(ctx context.Context) mcp.FailureKind {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return mcp.TimedOut
	}
	return mcp.Cancelled
}
