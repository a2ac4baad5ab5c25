package park

import (
	"bytes"
	"context"
	"math"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A call is one running Handle of the handler behind a lot. It is the Caller of
// that handler. While an exchange is attached to it, that one serves it; a call
// without one is parked.
type call struct {
	// Set at construction.
	lot       *Lot
	method    string
	principal mcp.Principal
	ctx       context.Context // of the handler; outlives exchanges
	cancel    context.CancelCauseFunc
	wake      chan struct{} // to the exchange: something has changed

	// Guarded by lot.mu.
	id       uint64        // 0 for a call that has asked nothing; set once
	finished chan struct{} // of one that has: closed when the handler has returned
	returned bool          // the handler has

	first exchange

	mu           sync.Mutex // guards what follows
	at           *exchange  // nil while the call is parked
	live         bool       // what the handler sends goes to at, without waiting
	ended        bool       // the handler has returned
	result       mcp.Result
	err          error
	gone         bool   // nobody waits for the outcome, or will
	capabilities []byte // of the client, as last declared
	questions    []*question
	asked        int // questions so far
	held         heldMessages
	state        uint32 // number of the state that is out
	life         *time.Timer
}

// An exchange is one request of the client and the answer to it.
type exchange struct {
	ctx    context.Context // of this one Handle
	req    *mcp.Request
	caller mcp.Caller
	retry  bool

	sending sync.WaitGroup // uses of caller by the handler
}

// begin runs the handler for a request and serves it.
func (l *Lot) begin(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	c := &call{
		lot: l, method: req.Method, principal: req.Meta.Principal,
		wake: make(chan struct{}, 1), capabilities: req.Meta.Capabilities, live: true,
		first: exchange{ctx: ctx, req: req, caller: caller},
	}
	c.at = &c.first
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go c.run(req)
	return c.serve(c.at)
}

// run is the goroutine of the handler. Whoever serves the call waits for its end,
// or, while the call is parked, the lot.
func (c *call) run(req *mcp.Request) {
	var result mcp.Result
	err := errReturned
	defer func() { c.end(result, err) }()
	result, err = c.lot.handler.Handle(c.ctx, req, c)
}

func (c *call) end(result mcp.Result, err error) {
	// First of all, since whoever serves the call takes it out of the count, and it
	// must not come in again.
	c.lot.returned(c)
	c.mu.Lock()
	c.ended, c.result, c.err = true, result, err
	c.questions = nil
	gone := c.gone
	c.signal()
	c.mu.Unlock()
	c.cancel(nil)
	if gone {
		c.lot.uncount(c)
	}
}

func (c *call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// serve waits until the call ends or asks, and returns what x must be answered
// with. If x ends before, the call is cancelled.
func (c *call) serve(x *exchange) (mcp.Result, error) {
	defer x.sending.Wait()
	left := x.ctx.Done()
	for {
		if result, err, ok := c.step(x); ok {
			return result, err
		}
		select {
		case <-c.wake:
		case <-left:
			c.cancel(context.Cause(x.ctx))
			left = nil
		}
	}
}

// step delivers what is held, and then returns the outcome of x if there is one.
func (c *call) step(x *exchange) (result mcp.Result, err error, ok bool) {
	c.mu.Lock()
	for c.held.some() {
		held := c.held.take()
		c.mu.Unlock()
		for i := range held {
			// An error means that the client has gone, which ctx tells as
			// well.
			_ = x.notify(x.ctx, &held[i])
		}
		c.mu.Lock()
	}
	switch {
	case c.ended:
		c.at, c.gone = nil, true
		result, err = c.result, c.err
		c.mu.Unlock()
		c.lot.uncount(c)
		return result, err, true
	case len(c.questions) > 0 && c.ctx.Err() == nil:
		result, err = c.park(x)
		n := c.state
		c.mu.Unlock()
		if err != nil {
			c.cancel(err)
			return mcp.Result{}, nil, false
		}
		// Nobody will come back who has not got the state.
		if x.ctx.Err() != nil {
			c.drop(n, context.Cause(x.ctx))
		} else if c.lot.isClosed() {
			c.drop(n, mcp.ErrClosed)
		}
		return result, nil, true
	}
	c.live = true
	c.mu.Unlock()
	return mcp.Result{}, nil, false
}

// park ends x with the questions that are open, and leaves the call to the lot.
// c.mu is held.
func (c *call) park(x *exchange) (mcp.Result, error) {
	c.state++
	sealed, err := c.lot.sealer.Seal(x.req, c.lot.opts.Life, payload(c.id, c.state))
	if err != nil {
		return mcp.Result{}, err
	}
	n := c.state
	c.life = time.AfterFunc(c.lot.opts.Life, func() { c.drop(n, c.lot.errLife()) })
	c.at, c.live = nil, false
	if k, ok := x.caller.(interface{ Keep() }); ok && !x.retry {
		k.Keep()
	}
	return mcp.RawResult(inputRequired(c.questions, c.lot.name+sealed)), nil
}

// attach has x serve the call if the state with which it came is the one that is
// out. What x says in answer to questions is given to those who asked.
func (c *call) attach(x *exchange, state uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != nil || c.gone || c.state != state {
		return false
	}
	c.life.Stop()
	c.at = x
	if !bytes.Equal(c.capabilities, x.req.Meta.Capabilities) {
		// The call outlives the memory of x.
		c.capabilities = bytes.Clone(x.req.Meta.Capabilities)
	}
	c.answer(&x.req.Params)
	return true
}

// anyState stands for the state that is out.
const anyState = math.MaxUint32

// drop cancels the call, and drops its outcome, if it is parked under a state.
func (c *call) drop(state uint32, cause error) {
	c.mu.Lock()
	if c.at != nil || c.gone || state != anyState && c.state != state {
		c.mu.Unlock()
		return
	}
	c.gone = true
	c.life.Stop()
	ended := c.ended
	c.result, c.held = mcp.Result{}, heldMessages{}
	c.mu.Unlock()
	c.cancel(cause)
	if ended {
		c.lot.uncount(c)
	} else {
		c.lot.opts.Logger.Debug("a parked call was cancelled", "method", c.method, "err", cause)
	}
}

func (c *call) dropped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}
