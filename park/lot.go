package park

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Options configure a [Lot]. The zero value is usable.
type Options struct {
	// Life is how long a client may take to answer before the call is
	// cancelled, counted anew from each question. Default DefaultLife.
	Life time.Duration
	// MaxParked is how many calls may be parked. A call counts from its first
	// question to its end. At the limit questions fail. Default
	// DefaultMaxParked.
	MaxParked int
	// MaxParkedPerPrincipal is MaxParked for the calls of one principal.
	// Default DefaultMaxParkedPerPrincipal.
	MaxParkedPerPrincipal int
	Logger                *slog.Logger // nil for silence
}

// Defaults of [Options].
const (
	DefaultLife                  = 10 * time.Minute
	DefaultMaxParked             = 1024
	DefaultMaxParkedPerPrincipal = 64
)

// A Lot is a Handler in front of another one, which calls of modern clients reach
// with a Caller that can ask. It is safe for concurrent use and must be closed.
type Lot struct {
	// Set at construction.
	handler mcp.Handler
	opts    Options
	sealer  *Sealer
	name    string // what the states of this lot begin with

	dropped atomic.Int64

	mu     sync.Mutex
	last   uint64                // id of a call, guarded by mu, like what follows
	calls  map[uint64]*call      // that have asked, by id
	counts map[mcp.Principal]int // of them, by principal
	closed bool
}

// New returns a lot in front of handler, at the listening edge of a modern
// client. A panic of handler is not caught.
//
// If the Caller that the edge passes to [Lot.Handle] has a method Keep, it is
// called before Handle returns for a request that the parked call still refers
// to: its memory is in use as long as the call may be.
func New(handler mcp.Handler, opts Options) *Lot {
	if opts.Life <= 0 {
		opts.Life = DefaultLife
	}
	if opts.MaxParked <= 0 {
		opts.MaxParked = DefaultMaxParked
	}
	if opts.MaxParkedPerPrincipal <= 0 {
		opts.MaxParkedPerPrincipal = DefaultMaxParkedPerPrincipal
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Lot{
		handler: handler, opts: opts, sealer: NewSealer(nil),
		// Instances may stand behind each other: each takes up its own states
		// only.
		name:   "mcpsplice." + rand.Text()[:13] + ".",
		calls:  make(map[uint64]*call),
		counts: make(map[mcp.Principal]int),
	}
}

// Handle implements [mcp.Handler]. It returns when the request has ended or needs
// input. A requestState that is another one's passes on with the request.
func (l *Lot) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Notification || !mcp.MayNeedInput(req.Method) {
		return l.handler.Handle(ctx, req, caller)
	}
	result, err := l.handle(ctx, req, caller)
	if err != nil {
		return l.withPages(req, err)
	}
	return result, nil
}

func (l *Lot) handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if raw, ok := req.Params.Lookup("requestState"); ok {
		state, _ := jsonrpc.Unquote(raw)
		if sealed, ours := strings.CutPrefix(state, l.name); ours {
			return l.retry(ctx, req, caller, sealed)
		}
	}
	if !mcp.NeedsUser(req.Meta.Capabilities) {
		return l.handler.Handle(ctx, req, caller)
	}
	return l.begin(ctx, req, caller)
}

// Len returns how many calls count against [Options].MaxParked.
func (l *Lot) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// Dropped returns how many messages of parked calls were dropped because too many
// were held.
func (l *Lot) Dropped() int64 { return l.dropped.Load() }

// closeWait bounds how long Close waits for handlers to return.
const closeWait = 2 * time.Second

// Close cancels all parked calls and lets no further one be parked. It waits for
// their handlers, no longer than two seconds. Calls that are not parked go on,
// but their questions fail with [mcp.ErrClosed].
func (l *Lot) Close() {
	l.mu.Lock()
	l.closed = true
	calls := make([]*call, 0, len(l.calls))
	for _, c := range l.calls {
		calls = append(calls, c)
	}
	l.mu.Unlock()
	timeout := time.NewTimer(closeWait)
	defer timeout.Stop()
	for _, c := range calls {
		c.drop(anyState, mcp.ErrClosed)
	}
	for _, c := range calls {
		if !c.dropped() {
			continue // its exchange waits for it
		}
		select {
		case <-c.finished:
		case <-timeout.C:
			l.opts.Logger.Warn("handlers of parked calls go on although their context has ended")
			return
		}
	}
}

// payload returns what a state holds: which call, and which of its states.
func payload(id uint64, state uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, id), state)
}

const payloadSize = 8 + 4

// retry attaches a request to the call that its state names.
func (l *Lot) retry(ctx context.Context, req *mcp.Request, caller mcp.Caller, sealed string) (mcp.Result, error) {
	opened, err := l.sealer.Open(req, sealed)
	if err == nil && len(opened) != payloadSize {
		err = ErrForged
	}
	if err != nil {
		return mcp.Result{}, refusal(err)
	}
	id := binary.BigEndian.Uint64(opened)
	if id == anew {
		return l.again(ctx, req, caller)
	}
	l.mu.Lock()
	c := l.calls[id]
	l.mu.Unlock()
	x := &exchange{ctx: ctx, req: req, caller: caller, retry: true}
	if c == nil || !c.attach(x, binary.BigEndian.Uint32(opened[8:])) {
		return mcp.Result{}, refusal(ErrUsed)
	}
	return c.serve(x)
}

// refusal is the answer to a request with a state that cannot be taken up.
func refusal(err error) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: requestState %v", err)
}

// count takes up a call whose client is to be asked, unless a limit is reached.
// A call is counted once.
func (l *Lot) count(c *call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return mcp.ErrClosed
	case c.returned:
		return mcp.ErrCannotAsk
	case c.id != 0:
		return nil
	case len(l.calls) >= l.opts.MaxParked:
		return full(c, "MaxParked", len(l.calls))
	case l.counts[c.principal] >= l.opts.MaxParkedPerPrincipal:
		return full(c, "MaxParkedPerPrincipal", l.counts[c.principal])
	}
	l.last++
	c.id, c.finished = l.last, make(chan struct{})
	l.calls[c.id] = c
	l.counts[c.principal]++
	return nil
}

func full(c *call, limit string, n int) error {
	return &mcp.CallError{
		Method: c.method, Kind: mcp.LimitExceeded, Limit: limit, Outcome: mcp.NotSent,
		Public: fmt.Sprintf("%d calls wait for their client's answer", n),
	}
}

// returned says that the handler of c has returned: whatever it has left behind
// cannot ask any more.
func (l *Lot) returned(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.returned = true
	if c.finished != nil {
		close(c.finished)
	}
}

// uncount ends what count began. The handler of c has returned, and its outcome
// is nobody's any more.
func (l *Lot) uncount(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.id == 0 {
		return
	}
	delete(l.calls, c.id)
	if l.counts[c.principal]--; l.counts[c.principal] == 0 {
		delete(l.counts, c.principal)
	}
}

func (l *Lot) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// errLife is why calls end whose clients do not come back.
func (l *Lot) errLife() error {
	return fmt.Errorf("the client did not answer within the limit Life of %v: its requestState %w", l.opts.Life, ErrExpired)
}

// errReturned is the failure of a handler that ended its goroutine.
var errReturned = errors.New("the handler did not return")
