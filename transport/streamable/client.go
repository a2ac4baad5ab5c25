package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// DialOptions configure [Dial]. The zero value is usable.
type DialOptions struct {
	transport.DialOptions

	// Binding is the server's, if it is known; AnyBinding finds out. It is for
	// DialAny.
	Binding Binding
	// Header is sent with every request to the server's origin, and to no
	// other. Headers of the protocol itself cannot be set.
	Header http.Header
	// MaxBody is how many bytes a reply, or one event of it, may have, and how
	// many may come on an event stream within a minute without an event that
	// holds something. Where others share the stream, an event over it is passed
	// over, for up to 64 times as many bytes. Default jsonrpc.DefaultMaxLineDialing.
	MaxBody int
	// ConnectTimeout bounds making a network connection. Default
	// DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// HandshakeTimeout bounds Dial as a whole. Default
	// DefaultHandshakeTimeout.
	HandshakeTimeout time.Duration
	// Transport makes the HTTP requests. Default: a transport of the
	// connection's own, closed with it.
	Transport http.RoundTripper
	Tap       transport.Tap // nil for none
}

// Defaults of [DialOptions].
const (
	DefaultConnectTimeout   = 10 * time.Second
	DefaultHandshakeTimeout = 30 * time.Second
)

func (o *DialOptions) withDefaults() DialOptions {
	var d DialOptions
	if o != nil {
		d = *o
	}
	if d.Client == nil {
		d.Client = []byte(`{"name":"mcpsplice","version":"0"}`)
	}
	if d.Capabilities == nil {
		d.Capabilities = []byte("{}")
	}
	if d.MaxCall <= 0 {
		d.MaxCall = transport.DefaultMaxCall
	}
	if d.MaxBody <= 0 {
		d.MaxBody = jsonrpc.DefaultMaxLineDialing
	}
	if d.ConnectTimeout <= 0 {
		d.ConnectTimeout = DefaultConnectTimeout
	}
	if d.HandshakeTimeout <= 0 {
		d.HandshakeTimeout = DefaultHandshakeTimeout
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d
}

// A Conn is a connection to an HTTP server: a dialing edge. Being connected
// means that the server can be used, not that a stream is open. It is safe for
// concurrent use.
type Conn struct {
	site // set at construction

	// Set by Dial before it returns.
	era  httpEra
	info transport.ServerInfo

	uses    *inflight.Uses
	calls   inflight.Calls
	headers mcp.ToolHeaders
	noise   atomic.Int64

	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	running sync.WaitGroup // goroutines that Close waits for
	trips   sync.WaitGroup // calls on their way

	mu      sync.Mutex
	err     error         // why the connection has ended, guarded by mu
	done    chan struct{} // closed when err is set
	closing bool          // nothing may be started any more, guarded by mu
	halted  bool          // a retired connection makes no requests any more, guarded by mu
}

var _ transport.Edge = (*Conn)(nil)

// An httpEra is how a Conn speaks to a server of one era.
type httpEra interface {
	mcp.Handler
	// prepare adds the headers of a request to the server.
	prepare(header http.Header)
	// accepted looks at the head of the reply to call.
	accepted(call *inflight.Call, resp *http.Response) error
	// notified and asked take what comes on the stream of call, nil for the
	// stream that belongs to none.
	notified(m *jsonrpc.Message, call *inflight.Call)
	asked(m *jsonrpc.Message, call *inflight.Call)
	// cancel has the server stop working on call. Hangup closes the call's
	// stream; it must be called, after whatever else tells the server.
	cancel(ctx context.Context, call *inflight.Call, hangup context.CancelFunc)
	// undisturbed reports whether nothing comes for a call but with its reply, and
	// hanging up is all that cancels it.
	undisturbed() bool
	// batches reports whether the server may send batches.
	batches() bool
	// resumable reports whether a broken stream can be opened again.
	resumable() bool
	// end says goodbye.
	end(ctx context.Context)
}

// Dial connects to the server at an http or https URL: it finds out its era,
// unless that is given, and makes a legacy server's handshake. Ctx ends the
// dialing, not the connection.
func Dial(ctx context.Context, address string, opts *DialOptions) (*Conn, error) {
	c, err := newConn(address, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.HandshakeTimeout)
	defer cancel()
	if err := c.connect(ctx); err != nil {
		c.close(curtGoodbye)
		return nil, fmt.Errorf("connecting to %s: %w", redacted(address), err)
	}
	return c, nil
}

func newConn(address string, opts *DialOptions) (*Conn, error) {
	site, err := newSite(address, opts)
	if err != nil {
		return nil, err
	}
	c := &Conn{site: site, uses: inflight.NewUses(), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Handle implements [mcp.Handler].
func (c *Conn) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if !c.uses.Begin() {
		return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: errRetired}
	}
	defer c.uses.Leave()
	result, err := c.era.Handle(ctx, req, caller)
	if err == nil && req.Method == mcp.MethodListTools && c.info.Era == mcp.Modern {
		result = c.learn(result)
	}
	return result, err
}

// learn takes up header annotations and leaves out tools with invalid ones. To legacy
// servers they mean nothing.
func (c *Conn) learn(list mcp.Result) mcp.Result {
	list, bad := c.headers.Learn(list)
	for name, err := range bad {
		c.opts.Logger.Warn("a tool is left out of the list", "name", name, "err", err)
	}
	return list
}

// Server implements [transport.Edge].
func (c *Conn) Server() transport.ServerInfo { return c.info }

// Done implements [transport.Edge].
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err implements [transport.Edge].
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// lostServer reports whether there is nobody any more who works on calls: the session
// has ended, or is about to. A connection that was retired has one.
func (c *Conn) lostServer() bool {
	err := c.Err()
	return errors.Is(err, ErrSessionLost) || errors.Is(err, mcp.ErrClosed)
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
	if legacy, ok := c.era.(*legacyEra); ok {
		return legacy.client.Unattributed()
	}
	return 0
}

// skip passes over what is no message. The log has the 1st, 2nd, 4th, 8th and
// so on.
func (c *Conn) skip(what string, err error) {
	if n := c.noise.Add(1); n&(n-1) == 0 {
		c.opts.Logger.Warn(what, "err", err, "count", n)
	}
}

// passedOver tells who listens of a message that cannot be read and may have been for
// them.
func (c *Conn) passedOver(m *jsonrpc.Message) {
	if m.Kind == jsonrpc.Notification {
		c.calls.Missed()
	}
}

// Bounds of ending a session at its server, and of waiting for the answers to
// calls that were sent before the server had lost it.
const (
	goodbye     = 2 * time.Second
	curtGoodbye = 250 * time.Millisecond // of a connection that did not come about
)

// Close implements [transport.Edge]: calls in flight end, a legacy session is
// ended at its server.
func (c *Conn) Close() error {
	c.close(goodbye)
	return nil
}

// errRetired is why a retired connection takes no calls.
var errRetired = errors.New("the connection has been replaced")

// Retire ends the connection as Close does, but not before the calls in flight have
// ended, or ctx has. Listen calls end at once, and no others can be made: they fail as
// not sent. Like Close it may be called more than once, and concurrently, and returns nil.
func (c *Conn) Retire(ctx context.Context) error {
	ended := c.uses.End() // before it is known to have ended
	if c.end(errRetired) {
		c.calls.EndListening(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: errRetired})
		select {
		case <-ended:
		case <-ctx.Done():
		}
		c.halt()
		c.fail(errRetired)
		c.takeLeave(goodbye)
	}
	return c.Close()
}

func (c *Conn) close(patience time.Duration) {
	switch {
	case c.end(mcp.ErrClosed):
		c.fail(mcp.ErrClosed)
		c.takeLeave(patience)
	case errors.Is(c.Err(), errRetired): // nothing but that hinders calls in flight
		c.halt()
		c.fail(errRetired)
	default:
		// Calls that the server has not taken will know in a moment.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c.awaitTrips(ctx)
		c.fail(c.Err())
	}
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.running.Wait()
	c.leave()
}

// takeLeave says goodbye to the server.
func (c *Conn) takeLeave(patience time.Duration) {
	if c.era == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.era.end(ctx)
}

// end makes it known that the connection has ended, and reports whether it was
// not known before.
func (c *Conn) end(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.err = err
	close(c.done)
	return true
}

// halt lets no call of a retired connection make a further request: one that begins while
// the last ones are waited for would be waited for by nobody.
func (c *Conn) halt() {
	c.mu.Lock()
	c.halted = true
	c.mu.Unlock()
}

// fail ends what is in flight.
func (c *Conn) fail(err error) {
	c.calls.Fail(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: err}, true)
	c.cancel()
}

// start runs f in a goroutine that Close waits for, unless it has been called.
func (c *Conn) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.running.Go(f)
	return true
}

// join has Close wait for the trip of a call, until trips and running are done. The
// error says why no call can be made any more.
func (c *Conn) join() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil && (c.halted || !errors.Is(c.err, errRetired)) { // whose calls may take several requests
		return c.err
	}
	c.trips.Add(1)
	c.running.Add(1)
	return nil
}

// depart is join for a trip f in a goroutine.
func (c *Conn) depart(f func()) error {
	if err := c.join(); err != nil {
		return err
	}
	defer c.running.Done()
	c.running.Go(f)
	return nil
}

func (c *Conn) awaitTrips(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		c.trips.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
