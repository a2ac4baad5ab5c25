package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// BackendOptions configure one backend. The zero value is usable.
type BackendOptions struct {
	// MaxCalls is how many calls the backend is given at once, with those that wait for
	// it to list what they name; of one more the client is told so. Lists and listen
	// calls do not count, nor do calls while their user is asked something. One principal
	// may not have all of them (MaxShare). Default DefaultMaxCalls.
	MaxCalls int
}

// A backend is a server behind the gateway, and what is known of its health.
type backend struct {
	// Set at construction.
	id       uint64 // like no other's of the gateway
	name     string
	handler  mcp.Handler
	calls    *shared         // in flight
	listings *shared         // in flight, or waiting for that
	ctx      context.Context // ends when it is removed
	cancel   context.CancelFunc
	asking   chan struct{} // holds one for each list that it is asked for

	refused atomic.Int64 // calls over a limit
	ailing  atomic.Bool  // state is Degraded

	mu      sync.Mutex
	state   State // guarded by mu, like what follows
	reason  string
	since   time.Time
	late    [kinds]bool // it was waited for in vain, and has not come since
	broken  [kinds]bool // it was answered with an error, and not otherwise since
	logged  time.Time
	muffled int // lines that were not logged since
}

func newBackend(ctx context.Context, name string, handler mcp.Handler, opts *BackendOptions) *backend {
	b := &backend{
		name: name, handler: handler, asking: make(chan struct{}, MaxListings),
		listings: newShared(MaxListings + MaxWaitingListings),
		state:    Untried, since: time.Now(),
	}
	if opts == nil {
		opts = new(BackendOptions)
	}
	b.calls = newShared(orDefault(opts.MaxCalls, DefaultMaxCalls))
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b
}

// give gives the backend a client's request.
func (b *backend) give(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if err := b.enter(req.Method, req.Meta.Principal); err != nil {
		return mcp.Result{}, err
	}
	defer b.calls.leave(req.Meta.Principal)
	if mcp.NeedsUser(req.Meta.Capabilities) {
		caller = &pausing{relay: relay{caller}, calls: b.calls, who: req.Meta.Principal}
	}
	return b.handler.Handle(ctx, req, caller)
}

// enter counts a call of a principal, until it leaves b.calls, or returns and counts why
// there may be none.
func (b *backend) enter(method string, who mcp.Principal) error {
	full := b.calls.enter(who)
	if full == nil {
		return nil
	}
	b.refused.Add(1)
	return full.over(method, "MaxCalls", fmt.Sprintf("calls of backend %q are in flight", b.name))
}

// errPanicked is the error of a request of ours whose handler has panicked.
var errPanicked = errors.New("the backend's handler panicked")

// ask makes a request of the gateway's own, in a goroutine of the gateway's own: a panic
// there has nobody else who could recover from it.
func (b *backend) ask(ctx context.Context, req *mcp.Request, caller mcp.Caller) (result mcp.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanicked, r, debug.Stack())
		}
	}()
	return b.handler.Handle(ctx, req, caller)
}

// logEvery is how often a backend's trouble is logged at most.
const logEvery = 10 * time.Second

// A trouble is a line for the log.
type trouble struct {
	backend string
	reason  string
	muffled int // lines before it that were not logged
}

// log logs the line, if there is one. No lock is held.
func (t *trouble) log(logger *slog.Logger) {
	if t != nil {
		logger.Warn("a backend is in trouble", "backend", t.backend, "reason", t.reason, "muffled", t.muffled)
	}
}

// maxReason is how much of an error is kept, in bytes: a backend may say anything.
const maxReason = 4 << 10

// reasonOf returns what is kept of an error.
func reasonOf(method string, err error) string {
	text := fmt.Sprintf("%s: %v", method, err)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(strings.Clone(text[:maxReason]), "") + " ..."
	}
	return text
}

// missed notes why a backend has not given what it was asked for. An error of its own
// says that only this is broken, and so it is until it comes.
func (b *backend) missed(k kind, err error) *trouble {
	if isAnswer(err) || errors.Is(err, errPanicked) {
		b.mu.Lock()
		b.broken[k] = true
		b.mu.Unlock()
	}
	return b.failed(methods[k], err)
}

// failed notes why a backend cannot be used, and returns what of that is to be logged.
func (b *backend) failed(method string, err error) *trouble {
	if b.ctx.Err() != nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != Degraded {
		b.state, b.since = Degraded, time.Now()
	}
	b.reason = reasonOf(method, err)
	b.ailing.Store(true)
	if !b.logged.IsZero() && time.Since(b.logged) < logEvery {
		b.muffled++
		return nil
	}
	t := &trouble{b.name, b.reason, b.muffled}
	b.logged, b.muffled = time.Now(), 0
	return t
}

// wasLate notes that somebody waited for a backend in vain.
func (b *backend) wasLate(k kind, waited time.Duration) *trouble {
	b.mu.Lock()
	b.late[k] = true
	b.mu.Unlock()
	return b.failed(methods[k], fmt.Errorf("no answer within %v", waited))
}

// answered notes that a backend has given what it was asked for. What else was late, or
// broken, may be so still.
func (b *backend) answered(k kind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late[k], b.broken[k] = false, false
	b.heal()
}

// recovered notes that a backend has answered a call, by which it has shown that it is
// there.
func (b *backend) recovered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late[discovery] = false // if it can be called, it can be asked that
	b.heal()
}

// heal takes a backend for good if nothing is known to be wrong. b.mu is held.
func (b *backend) heal() {
	if slices.Contains(b.late[:], true) || slices.Contains(b.broken[:], true) {
		return
	}
	if b.state != Good {
		b.state, b.reason, b.since = Good, "", time.Now()
	}
	b.ailing.Store(false)
}

func (b *backend) isLate(k kind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.late[k]
}

// ended takes up how a call has ended.
func (b *backend) ended(logger *slog.Logger, method string, err error) {
	switch {
	case err == nil || isItsOwn(err):
		if b.ailing.Load() {
			b.recovered()
		}
	case isLost(err):
		b.failed(method, err).log(logger)
	}
}

// isLost reports whether an error says that a backend cannot be reached.
func isLost(err error) bool {
	e, ok := errors.AsType[*mcp.CallError](err)
	return ok && (e.Kind == mcp.Unreachable || e.Kind == mcp.ConnectionLost)
}

// isItsOwn reports whether an error is a server's own, be it a peer or in this process.
func isItsOwn(err error) bool {
	_, own := errors.AsType[*jsonrpc.Error](err)
	return own
}

// isAnswer reports whether a backend has answered with an error, or with something that
// is no answer.
func isAnswer(err error) bool { return isItsOwn(err) || mcp.OutcomeOf(err) == mcp.Answered }

// hasCode reports whether a request was answered with an error of one of the codes.
func hasCode(err error, codes ...int) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && slices.Contains(codes, e.Code)
}
