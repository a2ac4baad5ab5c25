package inflight

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// maxID bounds ids: some peers keep them in 32 bits. It has maxDigits digits.
const (
	maxID     = 1<<31 - 1
	maxDigits = 10
)

// maxWakes is how many channels are kept for other calls.
const maxWakes = 64

// Calls are the requests in flight on one connection. The zero value is ready.
// It is safe for concurrent use.
type Calls struct {
	mu    sync.Mutex
	last  int64
	calls map[int64]*Call
	left  map[int64]leftCall // ended without a response, by id
	err   error              // why no call can be started any more
	deaf  error              // why no listen call can
	wakes []chan struct{}    // of calls that have ended, for others

	answered       answered // the newest
	answeredBefore answered // the newest of another client than that
	remembers      bool     // these two

	pending atomic.Int32 // calls that wait for a response, but for listen calls
	dropped atomic.Int64
}

// Start takes up a call for req and gives it an id that no other call of this
// connection has had. It fails with the error given to [Calls.Fail] if that has
// been called. The call must be ended by [Call.End], before the memory that req
// refers to is used again.
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
	if c.deaf != nil && req.Method == mcp.MethodListen {
		return nil, notSent(c.deaf, req.Method)
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
	call := &Call{ID: c.last, Request: req, own: own, calls: c}
	call.wire, _ = jsonrpc.RawID(strconv.AppendInt(call.digits[:0], call.ID, 10))
	if token := req.Meta.ProgressToken; !token.IsZero() {
		// Whoever reads from the peer may look at it when the call has ended.
		call.token, _ = jsonrpc.RawID(bytes.Clone(token.Raw()))
	}
	if last := len(c.wakes) - 1; last >= 0 {
		call.wake, c.wakes = c.wakes[last], c.wakes[:last]
	}
	c.calls[call.ID] = call
	if req.Method != mcp.MethodListen {
		c.pending.Add(1)
	}
	return call, nil
}

// WireID returns ID as it is sent.
func (c *Call) WireID() jsonrpc.ID { return c.wire }

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

// Find returns the call in flight with an id, nil if there is none, and whether
// the id had to be read loosely: as 1 where the peer wrote "1" or 1.0.
func (c *Calls) Find(id jsonrpc.ID) (call *Call, loosely bool) {
	n, ok := id.Int()
	if !ok {
		if n, ok = id.LooseInt(); !ok {
			return nil, false
		}
		loosely = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[n], loosely
}

// Respond gives a response to the call that it answers and returns that as
// [Calls.Find] does. A response without an id answers the only call in flight,
// if it is the only one.
func (c *Calls) Respond(m *jsonrpc.Message) (call *Call, loosely bool) {
	if m.ID.IsZero() {
		call, loosely = c.only(), true
	} else {
		call, loosely = c.Find(m.ID)
	}
	if loosely {
		m.Memory = nil // the reader goes on to look at it
	}
	if call != nil {
		call.finish(m, nil)
	} else if n, ok := m.ID.LooseInt(); ok {
		c.over(n)
	}
	return call, loosely
}

// Progress gives a progress notification to the call whose id the peer was given
// as token, under the token of the client. It is dropped if there is none, or if that
// has its response, both of which Progress reports, or if the client has given none.
func (c *Calls) Progress(n *mcp.Notification) bool {
	call, _ := c.Find(mcp.ProgressToken(&n.Params))
	if call == nil {
		return false
	}
	if call.token.IsZero() {
		return true
	}
	return call.Notify(&mcp.Notification{Method: n.Method, Params: mcp.WithProgressToken(&n.Params, call.token)})
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
// final is set. Without it listen calls go on.
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

// Pending returns how many calls wait for a response. Listen calls, which have none
// for long, do not count.
func (c *Calls) Pending() int { return int(c.pending.Load()) }

// Dropped returns how many notifications were dropped because a call's inbox
// was full.
func (c *Calls) Dropped() int64 { return c.dropped.Load() }

// Owner returns the call that a message belongs to which does not say so: the
// newest one in flight that may carry it, provided that all calls in flight are
// of one client: the client may have left an older one, of which we have not heard
// yet. Calls that wait for an answer of the client come last: they may wait for
// long, and have nothing to say or to ask meanwhile. A call that is over owns
// nothing, but its client counts until [Call.End]. Several says that the calls are of
// more than one client, in which case nobody guesses. Listen calls and this process's
// own do not count.
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
		if may(call.Request) && !call.Over() && (owner == nil || call.before(owner)) {
			owner = call
		}
	}
	if owner != nil {
		owner.client() // who asks for it may do so when the call is over
	}
	return owner, false
}

// Of returns the newest call of a client that may carry a message, as [Calls.Owner]
// does, nil if there is none.
func (c *Calls) Of(client string, may func(*Call) bool) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var newest *Call
	for _, call := range c.calls {
		if call.own || call.Request.Method == mcp.MethodListen || call.client() != client || call.Over() || !may(call) {
			continue
		}
		if newest == nil || call.before(newest) {
			newest = call
		}
	}
	return newest
}

// before reports whether c rather than other owns a message.
func (c *Call) before(other *Call) bool {
	if asks, asked := c.asks(), other.asks(); asks != asked {
		return asked
	}
	return c.ID > other.ID
}

// asks reports whether a question of the call is open.
func (c *Call) asks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > 0
}

// Listening returns the listen calls in flight that may says yes to, and whether
// they are of several clients.
func (c *Calls) Listening(may func(*Call) bool) (found []*Call, several bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if call.Request.Method == mcp.MethodListen && may(call) {
			found = append(found, call)
			several = several || call.client() != found[0].client()
		}
	}
	return found, several
}

// Clients returns the keys of the clients that have calls in flight.
func (c *Calls) Clients() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := make(map[string]bool)
	for _, call := range c.calls {
		if !call.own {
			keys[call.client()] = true
		}
	}
	return keys
}

// EndListening ends all listen calls in flight with err, and every later one at its
// start.
func (c *Calls) EndListening(err error) {
	c.mu.Lock()
	if c.deaf == nil {
		c.deaf = err
	}
	c.mu.Unlock()
	calls, _ := c.Listening(func(*Call) bool { return true })
	for _, call := range calls {
		call.Finish(err)
	}
}

// Missed tells the listen calls in flight that notifications for them may have been
// lost, as far as their callers want to know ([Prompt]).
func (c *Calls) Missed() {
	calls, _ := c.Listening(func(*Call) bool { return true })
	for _, call := range calls {
		call.missed()
	}
}

func (c *Call) missed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt != nil && !c.finished {
		c.prompt.Missed()
	}
}

// End takes the call out of those in flight. Whatever comes for it later is
// nobody's. Questions that were never put learn that by a context that has
// ended.
func (c *Call) End() {
	c.calls.end(c)
	c.Finish(context.Canceled)
	items, _, _ := c.take(nil)
	c.calls.keep(c.release())
	for i := range items {
		if items[i].ask != nil {
			items[i].ask(ended, mcp.NoCaller{})
		}
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.settle()
}

// keep keeps a channel that nobody uses for another call.
func (c *Calls) keep(wake chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wake != nil && len(c.wakes) < maxWakes {
		c.wakes = append(c.wakes, wake)
	}
}

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
