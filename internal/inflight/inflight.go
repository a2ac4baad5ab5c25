// Package inflight holds the requests that were sent on one connection and wait
// for their responses, with what arrives for each of them meanwhile.
//
// Whatever reads from the peer puts notifications, questions and the response
// of a call into the call's inbox and never waits; the goroutine that made the
// call takes them out in their order ([Call.Wait]). So a slow caller delays
// nobody but itself.
package inflight

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Limits of a call's inbox. At either the oldest notification is dropped and
// counted; a question is refused.
const (
	MaxQueuedMessages = 256
	MaxQueuedBytes    = 1 << 20
)

// maxID bounds ids: some peers keep them in 32 bits.
const maxID = 1<<31 - 1

// Calls are the requests in flight on one connection. The zero value is ready.
// It is safe for concurrent use.
type Calls struct {
	mu    sync.Mutex
	last  int64
	calls map[int64]*Call
	err   error // why no call can be started any more

	dropped atomic.Int64
}

// Start takes up a call for req and gives it an id that no other call of this
// connection has had. It fails with the error given to [Calls.Fail] if that has
// been called. The call must be ended by [Call.End].
func (c *Calls) Start(req *mcp.Request) (*Call, error) { return c.start(req, false) }

// StartOwn is Start for a request of this process's own, which no client has
// made: nothing that the peer sends unasked belongs to it.
func (c *Calls) StartOwn(req *mcp.Request) (*Call, error) { return c.start(req, true) }

func (c *Calls) start(req *mcp.Request, own bool) (*Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, notSent(c.err, req.Method)
	}
	if c.calls == nil {
		c.calls = make(map[int64]*Call)
	}
	for {
		c.last = c.last%maxID + 1
		if _, taken := c.calls[c.last]; !taken {
			break
		}
	}
	call := &Call{ID: c.last, Request: req, own: own, calls: c, wake: make(chan struct{}, 1)}
	c.calls[call.ID] = call
	return call, nil
}

// notSent returns the end of a connection as the failure of a call that comes
// after it.
func notSent(err error, method string) error {
	if e, ok := errors.AsType[*mcp.CallError](err); ok {
		late := *e
		late.Method, late.Outcome = method, mcp.NotSent
		return &late
	}
	return err
}

// Get returns the call with the given id, nil if there is none in flight.
func (c *Calls) Get(id int64) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id]
}

// ByToken returns the call whose id a peer sent back as a progress token, in
// whatever type.
func (c *Calls) ByToken(token jsonrpc.ID) *Call {
	if n, ok := token.Int(); ok {
		return c.Get(n)
	}
	if n, ok := token.LooseInt(); ok {
		return c.Get(n)
	}
	return nil
}

// Respond gives a response to the call that it answers and reports which, nil
// if none is in flight, and whether its id had to be read loosely: as 1 where
// the peer wrote "1" or 1.0. A response without an id answers the only call in
// flight, if it is the only one.
func (c *Calls) Respond(m *jsonrpc.Message) (call *Call, loosely bool) {
	if m.ID.IsZero() {
		call, loosely = c.only(), true
	} else if n, ok := m.ID.Int(); ok {
		call = c.Get(n)
	} else if n, ok := m.ID.LooseInt(); ok {
		call, loosely = c.Get(n), true
	}
	if call != nil {
		call.finish(m, nil)
	}
	return call, loosely
}

// only returns the one call in flight that waits for a response.
func (c *Calls) only() *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var only *Call
	for _, call := range c.calls {
		if call.Request.Method == mcp.MethodListen {
			continue
		}
		if only != nil {
			return nil
		}
		only = call
	}
	return only
}

// Fail ends all calls in flight with err, and every later one at its start if
// final is set.
func (c *Calls) Fail(err error, final bool) {
	c.mu.Lock()
	if final && c.err == nil {
		c.err = err
	}
	calls := make([]*Call, 0, len(c.calls))
	for _, call := range c.calls {
		if final || call.Request.Method != mcp.MethodListen {
			calls = append(calls, call)
		}
	}
	c.mu.Unlock()
	for _, call := range calls {
		call.finish(nil, err)
	}
}

// Len returns how many calls are in flight.
func (c *Calls) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// Dropped returns how many notifications were dropped because a call's inbox
// was full.
func (c *Calls) Dropped() int64 { return c.dropped.Load() }

// Owner returns the call that a message belongs to which does not say so: the
// oldest one in flight that may carry it, provided that all calls in flight are
// of one client. Several says that they are of more than one, in which case
// nobody guesses. Listen calls and this process's own do not count.
func (c *Calls) Owner(may func(*mcp.Request) bool) (owner *Call, several bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *Call
	for _, call := range c.calls {
		if call.own || call.Request.Method == mcp.MethodListen {
			continue
		}
		if first == nil {
			first = call
		} else if call.client() != first.client() {
			return nil, true
		}
		if may(call.Request) && (owner == nil || call.ID < owner.ID) {
			owner = call
		}
	}
	return owner, false
}

// Listening returns the listen calls in flight whose request may says yes to.
func (c *Calls) Listening(may func(*Call) bool) []*Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*Call
	for _, call := range c.calls {
		if call.Request.Method == mcp.MethodListen && may(call) {
			found = append(found, call)
		}
	}
	return found
}

// A Call is one request in flight.
type Call struct {
	// Set by Start.
	ID      int64
	Request *mcp.Request
	own     bool // made by this process, for no client
	calls   *Calls
	wake    chan struct{}

	// Filter is what a listen call wants to hear of. It is set before the call
	// can receive anything.
	Filter mcp.Filter

	mu       sync.Mutex
	key      string // guarded by calls.mu
	inbox    []item // guarded by mu, like what follows
	bytes    int
	finished bool
	reply    jsonrpc.Message
	err      error
	open     int // questions that have not been answered
}

// An item is a notification or, if ask is set, a question.
type item struct {
	n   mcp.Notification
	ask func(context.Context, mcp.Caller)
}

// client returns the key of the client that made the call. calls.mu is held.
func (c *Call) client() string {
	if c.key == "" {
		c.key = c.Request.Meta.ClientKey()
	}
	return c.key
}

// Notify puts a notification into the inbox. List changes that wait there
// already are not put in again.
func (c *Call) Notify(n *mcp.Notification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished || c.waiting(n.Method) {
		return
	}
	c.makeRoom(len(n.Params.Raw()))
	c.inbox = append(c.inbox, item{n: *n})
	c.bytes += len(n.Params.Raw())
	c.signal()
}

// waiting reports whether a list change waits in the inbox already.
func (c *Call) waiting(method string) bool {
	switch method {
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged, mcp.NotificationResourcesListChanged:
	default:
		return false
	}
	for i := range c.inbox {
		if c.inbox[i].n.Method == method {
			return true
		}
	}
	return false
}

// makeRoom drops notifications until another one of the given size fits:
// progress first, then the oldest.
func (c *Call) makeRoom(size int) {
	for len(c.inbox) > 0 && (len(c.inbox) >= MaxQueuedMessages || c.bytes+size > MaxQueuedBytes) {
		victim := -1
		for i := range c.inbox {
			if c.inbox[i].ask != nil {
				continue
			}
			if c.inbox[i].n.Method == mcp.NotificationProgress {
				victim = i
				break
			}
			if victim < 0 {
				victim = i
			}
		}
		if victim < 0 {
			return
		}
		c.bytes -= len(c.inbox[victim].n.Params.Raw())
		c.inbox = append(c.inbox[:victim], c.inbox[victim+1:]...)
		c.calls.dropped.Add(1)
	}
}

// Ask puts a question into the inbox and reports whether there was room. Ask is
// then called, by a goroutine of its own, with the caller of the call and a
// context that ends with the call.
func (c *Call) Ask(ask func(context.Context, mcp.Caller)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished || c.open >= MaxQueuedMessages {
		return false
	}
	c.open++
	c.inbox = append(c.inbox, item{ask: ask})
	c.signal()
	return true
}

// Finish ends the call with an error, if it has not ended yet.
func (c *Call) Finish(err error) { c.finish(nil, err) }

// Reply ends the call with a response, if it has not ended yet.
func (c *Call) Reply(m *jsonrpc.Message) { c.finish(m, nil) }

func (c *Call) finish(m *jsonrpc.Message, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return
	}
	c.finished, c.err = true, err
	if m != nil {
		c.reply = *m
	}
	c.signal()
}

func (c *Call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// End takes the call out of those in flight. Whatever comes for it later is
// nobody's.
func (c *Call) End() {
	c.calls.mu.Lock()
	delete(c.calls.calls, c.ID)
	c.calls.mu.Unlock()
	c.Finish(context.Canceled)
}

// take empties the inbox.
func (c *Call) take() (items []item, finished bool, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	items, c.inbox, c.bytes = c.inbox, nil, 0
	return items, c.finished, c.open
}

// Wait delivers what comes for the call to caller and returns its response, or
// the error that it was finished with. It ends early with ctx, and after limit
// (none if 0) with context.DeadlineExceeded; the time in which questions are
// open does not count. All questions have ended when it returns.
func (c *Call) Wait(ctx context.Context, caller mcp.Caller, limit time.Duration) (*jsonrpc.Message, error) {
	w := waiter{call: c, caller: caller, clock: newClock(limit)}
	defer w.stop()
	for {
		items, finished, open := c.take()
		for i := range items {
			w.deliver(ctx, &items[i])
		}
		if finished {
			return &c.reply, c.err
		}
		w.clock.pause(open > 0)
		select {
		case <-c.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-w.clock.expired():
			return nil, context.DeadlineExceeded
		}
	}
}

// A waiter is one running Wait.
type waiter struct {
	call      *Call
	caller    mcp.Caller
	clock     clock
	questions sync.WaitGroup
	cancel    context.CancelFunc // ends the questions; nil while there were none
	askCtx    context.Context
}

func (w *waiter) deliver(ctx context.Context, it *item) {
	if it.ask == nil {
		// An error means that the caller has gone, which ctx tells as well.
		_ = w.caller.Notify(ctx, &it.n)
		return
	}
	if w.cancel == nil {
		w.askCtx, w.cancel = context.WithCancel(ctx)
	}
	ask := it.ask
	w.questions.Go(func() {
		ask(w.askCtx, w.caller)
		w.call.mu.Lock()
		w.call.open--
		w.call.signal()
		w.call.mu.Unlock()
	})
}

func (w *waiter) stop() {
	w.clock.stop()
	if w.cancel != nil {
		w.cancel()
		w.questions.Wait()
	}
	// Questions that were never put are told so by a context that has ended.
	items, _, _ := w.call.take()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range items {
		if items[i].ask != nil {
			items[i].ask(ended, mcp.NoCaller{})
		}
	}
}

// A clock counts down while it is not paused.
type clock struct {
	left    time.Duration
	started time.Time
	timer   *time.Timer
}

func newClock(limit time.Duration) clock {
	c := clock{left: limit}
	if limit > 0 {
		c.started, c.timer = time.Now(), time.NewTimer(limit)
	}
	return c
}

func (c *clock) pause(pause bool) {
	switch running := !c.started.IsZero(); {
	case c.timer == nil:
	case pause && running:
		c.timer.Stop()
		c.left -= time.Since(c.started)
		c.started = time.Time{}
	case !pause && !running:
		c.started = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

func (c *clock) expired() <-chan time.Time {
	if c.timer == nil {
		return nil
	}
	return c.timer.C
}

func (c *clock) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}
