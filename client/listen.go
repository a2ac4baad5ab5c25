package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A Subscription gets events until it is closed. Its methods may be called
// concurrently.
type Subscription struct {
	// Set at construction.
	client *Client
	want   mcp.Filter
	ctx    context.Context // of this one subscription
	cancel context.CancelFunc
	acked  chan struct{} // closed when the server has acknowledged, or refused
	done   chan struct{} // closed when nothing more comes
	queue  queue

	once sync.Once // closes acked

	mu      sync.Mutex
	granted mcp.Filter // guarded by mu, like what follows
	err     error      // why nothing more comes
}

// Listen subscribes to changes: of lists, and of resources by their URIs. It
// returns when the server has acknowledged, with what of the filter it serves
// ([Subscription.Filter]). The subscription survives the connection; an event
// says when something may have been missed ([Resynced]).
//
// What a server tells on the connection of a call before it answers that call has
// come to the subscription when the call returns.
func (c *Client) Listen(ctx context.Context, filter mcp.Filter) (*Subscription, error) {
	filter.Session = false
	filter.ResourceSubscriptions = slices.Clone(filter.ResourceSubscriptions) // they are sent again and again
	filter.TaskIDs = slices.Clone(filter.TaskIDs)
	s := c.newSubscription(filter)
	if !c.start(s.run) {
		s.cancel()
		return nil, closed(mcp.MethodListen)
	}
	select {
	case <-s.acked:
		if err := s.failure(); err != nil {
			return nil, err
		}
		return s, nil
	case <-ctx.Done():
		s.cancel()
		return nil, givenUp(ctx, mcp.MethodListen, mcp.MaybeExecuted, nil)
	}
}

func (c *Client) newSubscription(filter mcp.Filter) *Subscription {
	s := &Subscription{
		client: c, want: filter,
		acked: make(chan struct{}), done: make(chan struct{}), queue: newQueue(),
	}
	s.ctx, s.cancel = context.WithCancel(c.ctx)
	return s
}

// start runs f in a goroutine that Close waits for, unless the client is closed.
func (c *Client) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(f)
	return true
}

// Filter returns what the server has acknowledged.
func (s *Subscription) Filter() mcp.Filter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted
}

// Next returns the next event. The error is that of ctx, or why nothing more
// comes: [mcp.ErrClosed] after Close.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	if e, ok := s.queue.take(ctx, s.done); ok {
		return e, nil
	}
	if ctx.Err() != nil {
		return Event{}, context.Cause(ctx)
	}
	if err := s.failure(); err != nil {
		return Event{}, err
	}
	return Event{}, mcp.ErrClosed
}

// Close ends the subscription. What has come before can still be taken.
func (s *Subscription) Close() {
	s.cancel()
	<-s.done
}

// own reports whether it is the client's own, which waits for another server if
// one refuses it.
func (s *Subscription) own() bool { return s.want.Session }

// fail keeps why nothing more comes.
func (s *Subscription) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *Subscription) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// run listens, over one connection after the other, until the subscription is
// closed or the server refuses it.
func (s *Subscription) run() {
	defer close(s.done)
	defer s.conclude()
	defer s.cancel()
	var pause backoff
	healing := &s.client.opts.Healing
	for n := 1; ; n++ {
		began := time.Now()
		a := s.attempt(n)
		if s.ctx.Err() != nil {
			return
		}
		if !s.goesOn(&a, n) {
			s.fail(a.err)
			return
		}
		if a.caller.told.Load() || a.caller.heard.Load() && time.Since(began) > healing.MaxWait {
			pause.reset() // it was a good one
		}
		if a.edge == nil || over(a.edge) {
			continue // which is the connection's, and told by its state
		}
		if a.caller.heard.Load() {
			s.client.opts.Logger.Warn("listening was interrupted, and is tried again", "err", cmp.Or(a.err, errEndedByServer))
		}
		if !sleep(s.ctx, pause.next(healing.MinWait, healing.MaxWait), nil) {
			return
		}
	}
}

var errEndedByServer = errors.New("the server ended the subscription")

// conclude lets go of who waits for the acknowledgement, which there is none of now.
func (s *Subscription) conclude() {
	if !s.wasAcked() && s.failure() == nil {
		s.fail(&mcp.CallError{Method: mcp.MethodListen, Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: mcp.ErrClosed})
	}
	s.settle()
}

// settle lets go of who waits for the acknowledgement.
func (s *Subscription) settle() { s.once.Do(func() { close(s.acked) }) }

func (s *Subscription) wasAcked() bool {
	select {
	case <-s.acked:
		return true
	default:
		return false
	}
}

// goesOn reports whether there is another attempt after one. A subscription that
// was never acknowledged has two.
func (s *Subscription) goesOn(a *listening, n int) bool {
	if a.caller.heard.Load() {
		return true
	}
	follows := a.edge != nil && s.client.mayFollow(s.ctx, &a.failure, maxRetryAfter)
	switch {
	case s.own():
		if !follows && isRefusal(a.err) {
			s.client.link.next(s.ctx, a.generation)
		}
		return true
	case !s.wasAcked():
		return follows && n == 1
	}
	return follows || !isRefusal(a.err)
}

// isRefusal reports whether a server does not serve such a subscription at all.
func isRefusal(err error) bool {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		switch refused.Code {
		case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, jsonrpc.CodeMissingCapability:
			return true
		}
		return false
	}
	if _, isAuth := errors.AsType[*streamable.AuthError](err); isAuth {
		return false // may be granted again
	}
	status, ok := errors.AsType[*streamable.StatusError](err)
	return ok && status.Status >= http.StatusBadRequest && !isBusy(status.Status)
}

// A listening is one attempt of a subscription.
type listening struct {
	failure
	caller *listenCaller
}

// attempt listens once, as long as it lasts. While somebody waits for the
// acknowledgement it has a connection made for it.
func (s *Subscription) attempt(n int) listening {
	get := s.client.link.await
	if !s.own() && !s.wasAcked() {
		get = s.client.link.get
	}
	a := listening{caller: &listenCaller{s: s, again: n > 1}}
	a.req = &mcp.Request{Method: mcp.MethodListen, Params: s.want.Params()}
	s.client.introduce(&a.req.Meta)
	a.edge, a.generation, a.err = get(s.ctx, mcp.MethodListen)
	if a.err != nil {
		return a
	}
	idle, _ := s.client.opts.limits(nil)
	ctx := a.caller.clock.start(s.ctx, &s.client.clocks, idle, unlimited)
	defer a.caller.clock.done()
	_, a.err = a.edge.Handle(ctx, a.req, a.caller)
	if bad := a.caller.bad.Load(); bad != nil {
		a.err = badReply(mcp.MethodListen, fmt.Errorf("its acknowledgement: %w", opaque{*bad}))
	} else if a.err == nil && !a.caller.heard.Load() {
		a.err = badReply(mcp.MethodListen, errors.New("the subscription ended before it was acknowledged"))
	}
	return a
}

// A listenCaller takes what comes for one listen call. None of its methods but Ask
// waits, so that the connection's reader can call them.
type listenCaller struct {
	s     *Subscription
	clock clock                 // until the acknowledgement
	again bool                  // there was another one before
	heard atomic.Bool           // it was acknowledged
	bad   atomic.Pointer[error] // why what was to be the acknowledgement is none
	told  atomic.Bool           // something came after that
}

var _ inflight.Prompt = (*listenCaller)(nil)

// Notify implements [mcp.Caller].
func (l *listenCaller) Notify(_ context.Context, n *mcp.Notification) error {
	if n.Method == mcp.NotificationAcknowledged {
		return l.acknowledge(n)
	}
	l.told.Store(true)
	l.s.client.told(n)
	if l.s.own() == ofSession(n.Method) {
		l.s.queue.put(n)
	}
	return nil
}

func (l *listenCaller) acknowledge(n *mcp.Notification) error {
	if l.heard.Load() {
		return nil
	}
	granted, err := mcp.ReadFilter(&n.Params)
	if err != nil && !l.s.own() && !l.s.wasAcked() { // somebody waits who wants to know
		l.bad.Store(&err)
		l.clock.end(err) // there will be no other
		return err
	}
	l.heard.Store(true)
	l.clock.stop() // it ends with ctx
	l.s.mu.Lock()
	l.s.granted = granted
	l.s.mu.Unlock()
	if l.again {
		l.Missed()
	} else if l.s.own() {
		l.s.client.forgetLists()
	}
	l.s.settle()
	return nil
}

// Missed implements [inflight.Prompt].
func (l *listenCaller) Missed() {
	l.s.client.forgetUnheard()
	if l.s.wasAcked() && !l.s.own() {
		l.s.queue.put(&mcp.Notification{Method: Resynced})
	}
}

// Ask implements [mcp.Caller]: questions that belong to no call of ours.
func (l *listenCaller) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return (&answerer{client: l.s.client}).Ask(ctx, req)
}
