package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A Client is a connection to a server that heals. It is safe for concurrent use.
type Client struct {
	// Set at construction.
	opts Options
	link *link
	ctx  context.Context // ends what belongs to no call

	tokens       atomic.Int64 // progress tokens so far
	checked      atomic.Int64 // number of the connection whose server was found to be modern after all
	level        atomic.Pointer[mcp.Level]
	tools        toolBook
	elicitations elicitations
	clocks       clocks
	cache        cache
	cancel       context.CancelFunc
	running      sync.WaitGroup

	done chan struct{} // closed at the end of Close

	mu      sync.Mutex
	watcher *Subscription // the client's own; nil while there is none; guarded by mu, like what follows
	standIn *Subscription // the one before it, until it is acknowledged; nil while there is none
	closed  bool
	gone    bool // done is closed
}

// Connect connects to a server. Ctx ends the connecting, not the connection. It
// fails, with the target's error, if the first attempt does; later ones are
// [Healing]'s.
func Connect(ctx context.Context, target Target, opts *Options) (*Client, error) {
	o := opts.withDefaults()
	dial, err := o.dialOptions()
	if err != nil {
		return nil, fmt.Errorf("declaring capabilities: %w", err)
	}
	c := &Client{opts: o, done: make(chan struct{})}
	c.link = newLink(target, dial, &o, c.begun)
	c.level.Store(&o.LogLevel)
	c.tools.init(&o)
	c.cache.init()
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.link.start(ctx); err != nil {
		c.cancel()
		c.running.Wait()
		return nil, err // which names the target
	}
	return c, nil
}

// begun readies the client for a connection, before calls take it. What was known
// before may be known no more.
func (c *Client) begun(again bool) {
	if again {
		c.forgetUnheard()
	}
	c.tools.connected()
	if c.Verdict().Era == mcp.Legacy {
		c.watch()
	}
}

// Close ends the connection. Calls in flight fail with [mcp.ErrClosed]. It may be
// called more than once, and returns within a few seconds even if the server
// never answers. The functions of [Options] must not call it.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	err := c.link.close()
	c.running.Wait()
	c.clocks.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		c.gone = true
		close(c.done)
	}
	return err
}

// Done is closed when the client has been closed. A connection that ends is made
// again, so that nothing else ends a client; [Options].State tells of that.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns [mcp.ErrClosed] once Close has been called, and nil before.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return mcp.ErrClosed
	}
	return nil
}

// State returns how the connection is and, if it is not connected, why.
func (c *Client) State() (State, error) { return c.link.current() }

// Verdict returns how the server is spoken to: that of the last connection. It can
// be kept for [Options].Prior.
func (c *Client) Verdict() Verdict {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return c.link.verdict
}

// Server returns what the server says of itself: a DiscoverResult, whatever the
// server's era.
func (c *Client) Server(ctx context.Context) (*mcp.DiscoverResult, error) {
	var result mcp.DiscoverResult
	if err := c.request(ctx, mcp.MethodDiscover, nil, nil, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// Handle implements [mcp.Handler]: it makes any request, with the client's
// timeouts and over whatever connection there is. Questions go to caller, and a
// result that needs input comes back as it is. What req does not say of its
// client, this client adds.
func (c *Client) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	own := *req
	own.Params = req.Params.Indexed() // it is looked into again and again
	c.introduce(&own.Meta)
	guarded := &guardedCaller{caller: caller}
	ctx = c.startClock(ctx, &guarded.clock, req.Method, nil)
	defer guarded.clock.done()
	return c.handle(ctx, &own, guarded)
}

// introduce says whose request it is, unless the request says it itself.
func (c *Client) introduce(meta *mcp.Metadata) {
	if meta.Client == nil {
		meta.Client = c.link.dialer.opts.Client
	}
	if meta.Capabilities == nil {
		meta.Capabilities = c.link.dialer.opts.Capabilities
	}
	if meta.LogLevel == "" {
		meta.LogLevel = *c.level.Load()
	}
}

// CallOptions configure one call. The zero value is usable. Lists, [Client.Listen],
// [Client.Server], [Client.Ping] and notifications have none: the limits of [Options]
// hold for them, and ctx.
type CallOptions struct {
	// Timeout and MaxTimeout are those of [Options] for this call; 0 stands for
	// those, and what is negative for none.
	Timeout    time.Duration
	MaxTimeout time.Duration
	// Progress gets the call's progress, in order, before the call returns. It
	// must not wait for long.
	Progress func(*mcp.ProgressParams)
	// LogLevel is the least severe log message that this call wants; empty for
	// the client's.
	LogLevel mcp.Level
	// Log gets the log messages of this call, in the way of Progress, instead of
	// that of [Options].
	Log func(*mcp.LogParams)
	// Meta are members of the request's _meta.
	Meta mcp.Object
}

// request makes a typed request and decodes its result into result, a pointer, or
// nil for none.
func (c *Client) request(ctx context.Context, method string, params any, opts *CallOptions, result any) error {
	call := c.newCall(method, opts)
	if err := call.encode(params); err != nil {
		return err
	}
	return c.fetch(ctx, call, result)
}

// fetch makes a call and decodes its result.
func (c *Client) fetch(ctx context.Context, call *ownCall, result any) error {
	raw, err := c.run(ctx, call)
	if err != nil || result == nil {
		return err
	}
	if err := raw.Decode(result); err != nil {
		return badReply(call.req.Method, err)
	}
	if call.lent != nil && mcp.MayNeedInput(call.req.Method) && copies(c.link.dialer.target) {
		call.lent() // of such results nobody keeps anything but what was decoded
	}
	return nil
}

func (c *Client) raw(ctx context.Context, method string, params any, opts *CallOptions) (mcp.Result, error) {
	call := c.newCall(method, opts)
	if err := call.encode(params); err != nil {
		return mcp.Result{}, err
	}
	return c.run(ctx, call)
}

// run makes a call.
func (c *Client) run(ctx context.Context, call *ownCall) (mcp.Result, error) {
	ctx = c.startClock(ctx, &call.clock, call.req.Method, &call.opts)
	defer call.clock.done()
	return c.complete(ctx, &call.req, &call.guardedCaller)
}

// untilClosed returns a context that ends with ctx, or when the client is closed. Done
// must be called.
func (c *Client) untilClosed(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(mcp.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

func (c *Client) startClock(ctx context.Context, clock *clock, method string, opts *CallOptions) context.Context {
	idle, whole := c.opts.limits(opts)
	if isEndless(method) && (opts == nil || opts.Timeout == 0 && opts.MaxTimeout == 0) {
		idle, whole = unlimited, unlimited
	}
	return clock.start(ctx, &c.clocks, idle, whole)
}

// isEndless reports whether a request ends with its ctx unless the server ends it: its
// answer may come at any time.
func isEndless(method string) bool {
	return method == mcp.MethodListen || method == mcp.MethodTaskResult
}

// Notify sends the server a notification. Modern servers over HTTP take none.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	call := c.newCall(method, nil)
	if err := call.encode(params); err != nil {
		return err
	}
	call.caller = mcp.NoCaller{}
	call.req.Notification, call.req.Meta.ProgressToken = true, jsonrpc.ID{}
	ctx = c.startClock(ctx, &call.clock, method, nil)
	defer call.clock.done()
	_, err := c.handle(ctx, &call.req, &call.guardedCaller)
	return err
}

// Ping returns when the server has answered.
func (c *Client) Ping(ctx context.Context) error {
	method := mcp.MethodPing
	if c.Verdict().Era == mcp.Modern {
		method = mcp.MethodDiscover // modern servers have no ping
	}
	return c.request(ctx, method, nil, nil, nil)
}

// SetLogLevel sets the least severe log message that is wanted from now on; empty
// for none. Calls that are made later have it, and a legacy server is told at once.
func (c *Client) SetLogLevel(level mcp.Level) error {
	if level != "" && !level.Valid() {
		return fmt.Errorf("%q is no log level", level)
	}
	c.level.Store(&level)
	c.watchAnew()
	return nil
}

// RootsChanged tells the server that [Options].Roots answers otherwise than
// before. Modern servers need not be told.
func (c *Client) RootsChanged(ctx context.Context) error {
	return c.Notify(ctx, mcp.NotificationRootsListChanged, nil)
}
