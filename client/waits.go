package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A backoff is a random wait up to a bound that doubles.
type backoff struct {
	bound time.Duration
}

// least returns how long the wait to come lasts even if a call wants its end: not
// at all the first time, and then a tenth of the last bound, up to most. Calls one
// after the other would else use up [Healing].Crashes while a server restarts.
func (b *backoff) least(most time.Duration) time.Duration { return min(b.bound/10, most) }

func (b *backoff) next(least, most time.Duration) time.Duration {
	b.bound = min(max(2*b.bound, least), most)
	return rand.N(b.bound)
}

// grow returns the next bound itself.
func (b *backoff) grow(most time.Duration) time.Duration {
	b.bound = min(2*b.bound, most)
	return b.bound
}

func (b *backoff) reset() { b.bound = 0 }

// sleep waits, for ever if d is negative, and no longer than until wake holds a
// value. It reports false when ctx has ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	var expired <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-expired:
	case <-wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// givenUp returns the error of a call whose context has ended. Failure is what it
// met before, nil if nothing.
func givenUp(ctx context.Context, method string, outcome mcp.Outcome, failure error) error {
	cause := context.Cause(ctx)
	kind := mcp.Cancelled
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = mcp.TimedOut
	}
	if failure != nil {
		cause = errors.Join(cause, opaque{failure})
	}
	return &mcp.CallError{Method: method, Kind: kind, Outcome: outcome, Err: cause}
}

// An opaque error says what another one does, without being a server's answer to a
// call.
type opaque struct{ err error }

// Error implements error.
func (e opaque) Error() string { return e.err.Error() }

// Is reports whether the other error is target.
func (e opaque) Is(target error) bool { return errors.Is(e.err, target) }

// As finds what the other error holds, except a server's answer.
func (e opaque) As(target any) bool {
	_, isAnswer := target.(**jsonrpc.Error)
	return !isAnswer && errors.As(e.err, target)
}

// A teller calls a function with each state, in order, in a goroutine of its own:
// who changes the state does not wait for it.
type teller struct {
	tell func(State, error) // nil for nobody

	running sync.WaitGroup
	mu      sync.Mutex
	untold  []change // guarded by mu
	telling bool     // guarded by mu
}

type change struct {
	state State
	err   error
}

// maxUntold is how many changes wait for the function. Of more the oldest are left
// out.
const maxUntold = 64

func (t *teller) say(state State, err error) {
	if t.tell == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.untold) == maxUntold {
		t.untold = t.untold[1:]
	}
	t.untold = append(t.untold, change{state, err})
	if !t.telling {
		t.telling = true
		t.running.Go(t.run)
	}
}

func (t *teller) run() {
	for {
		t.mu.Lock()
		if len(t.untold) == 0 {
			t.telling = false
			t.mu.Unlock()
			return
		}
		next := t.untold[0]
		t.untold = t.untold[1:]
		t.mu.Unlock()
		t.tell(next.state, next.err)
	}
}

// wait returns when all that was said has been told.
func (t *teller) wait() { t.running.Wait() }
