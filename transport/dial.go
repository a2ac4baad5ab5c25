package transport

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// An Edge is a dialing edge: a Handler that sends requests to one server.
//
// Done is closed when the link to the server has ended, whoever ended it; Err
// then says why (mcp.ErrClosed after Close). Close ends it; calls in flight fail.
// Close may be called more than once and returns within a few seconds even if
// the server never answers.
type Edge interface {
	mcp.Handler
	// Server says what the edge is connected to.
	Server() ServerInfo
	Done() <-chan struct{}
	Err() error
	Close() error
}

// A ServerInfo is what a dialing edge has found out about its server.
type ServerInfo struct {
	Era      mcp.Era
	Revision mcp.Revision
	Discover mcp.Result // the server's DiscoverResult, or what its initialize says; zero if it was not asked
}

// KnownModern returns the revision of a modern server that need not be asked for
// it, empty if it must.
func (o *DialOptions) KnownModern() mcp.Revision {
	if o.Era != mcp.Modern || !slices.Contains(mcp.ModernRevisions(), o.Revision) {
		return ""
	}
	return o.Revision
}

// DialOptions configure a dialing edge. The zero value is usable.
type DialOptions struct {
	// Era is the server's, if it is known; NoEra finds out.
	Era mcp.Era
	// Revision is the modern server's, if it is known: with Era modern the
	// server is then not asked at all before the first call, and the edge's
	// [ServerInfo] has no Discover.
	Revision mcp.Revision
	// Prefer is the era to speak if the server has both: that of the client
	// whose requests are forwarded, so that nothing has to be translated. NoEra
	// prefers the modern one.
	Prefer mcp.Era
	// Client and Capabilities are what a legacy server is told in its
	// handshake, and a modern one in the probe, as JSON.
	Client       []byte
	Capabilities []byte
	// MaxCall ends a call whatever its progress; the time in which a question
	// of it is open does not count. Waiting until the request can be sent is
	// bounded by as much again. Default DefaultMaxCall.
	MaxCall time.Duration
	// MaxNoise is how many lines, or events, that are no messages a server on a
	// byte stream may write one after the other, with less than a second between
	// them; of one more the connection ends. Default DefaultMaxNoise; negative
	// for no limit.
	MaxNoise int
	Logger   *slog.Logger // nil for silence
}

// DefaultMaxCall is how long a call may take at most.
const DefaultMaxCall = time.Hour

// DefaultMaxNoise is how much a server may write in a row that is no message: some
// log what they do to stdout, and answer all the same.
const DefaultMaxNoise = 10_000

// ProbeSilence is how long a server may leave server/discover unanswered before it is
// sent initialize as well.
const ProbeSilence = 5 * time.Second

func (o DialOptions) withDefaults() DialOptions {
	if o.Client == nil {
		o.Client = []byte(`{"name":"mcpsplice","version":"0"}`)
	}
	if o.Capabilities == nil {
		o.Capabilities = []byte("{}")
	}
	if o.MaxCall <= 0 {
		o.MaxCall = DefaultMaxCall
	}
	if o.MaxNoise == 0 {
		o.MaxNoise = DefaultMaxNoise
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Conn is a dialing edge over a byte stream.
type Conn struct {
	// Set at construction.
	link   Link
	poster poster // the link, if it is one
	opts   DialOptions
	log    limitedLogger

	calls inflight.Calls
	uses  *inflight.Uses
	baton *baton
	noise atomic.Int64

	batches atomic.Bool // the negotiated revision has them

	// Set by Dial before known and before it returns.
	era   era
	info  ServerInfo
	known atomic.Bool // era is set
	// client is the session whose handshake has begun, nil if there is none.
	client atomic.Pointer[session.Client]

	truncated bool          // the last message was cut off; owned by who has the baton, like noises
	noises    noises        // in a row
	done      chan struct{} // closed by readLoop
	finished  chan struct{} // closed by over
	over      func()        // makes it known that the edge takes no calls any more
	running   sync.WaitGroup

	mu      sync.Mutex
	closed  bool  // by us; nothing is started any more, guarded by mu
	err     error // why the link ended, guarded by mu
	retired bool  // guarded by mu
}

// An era is how a Conn speaks to a server of one era.
type era interface {
	mcp.Handler
	// Notified and Asked are called by the read loop and do not wait.
	Notified(m *jsonrpc.Message, on *inflight.Call)
	Asked(ctx context.Context, m *jsonrpc.Message, on *inflight.Call)
}

// Dial makes a dialing edge of a link to a server: it finds out the server's
// era, unless that is given, and makes a legacy server's handshake. Ctx ends the
// dialing, not the edge. Dial owns the link: it is closed if Dial fails.
//
// If the link ended while the server was probed, errors.Is(err, ErrProbeEnded):
// some legacy servers exit at a request that they do not know.
func Dial(ctx context.Context, link Link, opts DialOptions) (*Conn, error) {
	c := &Conn{link: link, opts: opts.withDefaults(), done: make(chan struct{}), finished: make(chan struct{}), uses: inflight.NewUses()}
	c.over = sync.OnceFunc(func() { close(c.finished) })
	c.log = limitedLogger{logger: c.opts.Logger}
	c.poster, _ = link.(poster)
	c.baton = newBaton(link, &c.calls)
	go c.readLoop()
	if err := c.connect(ctx); err != nil {
		closeErr := c.Close()
		return nil, errors.Join(err, closeErr)
	}
	return c, nil
}

// ErrProbeEnded says that a server ended the link while it was asked for its
// era.
var ErrProbeEnded = errors.New("the server ended the link at server/discover")

// settle makes the era known.
func (c *Conn) settle(era era, info ServerInfo) {
	c.era, c.info = era, info
	c.known.Store(true)
}

// Handle implements [mcp.Handler].
func (c *Conn) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if !c.uses.Begin() {
		return mcp.Result{}, refused(req.Method)
	}
	defer c.uses.Leave()
	return c.era.Handle(ctx, req, caller)
}

// Server implements [Edge].
func (c *Conn) Server() ServerInfo { return c.info }

// Done implements [Edge].
func (c *Conn) Done() <-chan struct{} { return c.finished }

// Err implements [Edge].
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.retired {
		return errRetired
	}
	return c.err
}

// linkErr returns why the link has ended, nil if it has not.
func (c *Conn) linkErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close implements [Edge]. Calls in flight fail at once, whatever the server still
// says.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.calls.Fail(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: mcp.ErrClosed}, true)
	c.baton.end()
	err := c.link.Close()
	<-c.done
	c.running.Wait()
	return err
}

// start runs f in a goroutine that Close waits for, unless Close has been
// called.
func (c *Conn) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(f)
	return true
}

// Noise returns how many messages of the server were passed over because they
// were none.
func (c *Conn) Noise() int64 { return c.noise.Load() }

// Dropped returns how many notifications were dropped because their call did
// not take them fast enough.
func (c *Conn) Dropped() int64 { return c.calls.Dropped() }

// Unattributed returns how many questions of a legacy server were refused because
// they may have been meant for either of several clients.
func (c *Conn) Unattributed() int64 {
	if client := c.client.Load(); client != nil {
		return client.Unattributed()
	}
	return 0
}
