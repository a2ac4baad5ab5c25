package client

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// An Event is something that a server has told without being asked.
type Event struct {
	// Method is that of the notification; Resynced if there was none.
	Method string
	// Params are the notification's, nil if it has none.
	Params mcp.JSON
	// Lost is how many events came between the last one and this one that the
	// subscriber did not take in time.
	Lost int
}

// Resynced is the method of an event that stands for changes that may have been
// missed: the connection was lost, and is there again. Whoever keeps a copy of
// something should get it anew.
const Resynced = "resynced"

// URI returns the resource that an event is about, "" if none.
func (e *Event) URI() string {
	params := jsonrpc.Trusted(e.Params)
	uri, _ := params.LookupString("uri")
	return uri
}

// MaxEvents is how many events wait for a subscriber. Of more the oldest are
// dropped, and the next one says how many ([Event].Lost).
const MaxEvents = 256

// A Subscription gets events until it is closed. Its methods may be called
// concurrently.
type Subscription struct {
	// Set at construction.
	client *Client
	want   mcp.Filter
	ctx    context.Context // of this one subscription
	cancel context.CancelFunc
	wake   chan struct{} // holds a value if there are events
	done   chan struct{} // closed when nothing more comes

	mu      sync.Mutex
	granted mcp.Filter // guarded by mu, like what follows
	events  []Event
	err     error
}

// Listen subscribes to changes: of lists, and of resources by their URIs. It
// returns when the server has acknowledged, with what of the filter it serves
// ([Subscription.Filter]). The subscription survives the connection; an event
// says when something may have been missed ([Resynced]).
func (c *Client) Listen(ctx context.Context, filter mcp.Filter) (*Subscription, error) {
	filter.Session = false
	s := c.newSubscription(filter)
	acked := make(chan error, 1)
	if !c.start(func() { s.run(acked) }) {
		return nil, mcp.ErrClosed
	}
	select {
	case err := <-acked:
		if err != nil {
			s.Close()
			return nil, err
		}
		return s, nil
	case <-ctx.Done():
		s.Close()
		return nil, &mcp.CallError{Method: mcp.MethodListen, Kind: kindOf(ctx), Outcome: mcp.MaybeExecuted, Err: context.Cause(ctx)}
	}
}

func (c *Client) newSubscription(filter mcp.Filter) *Subscription {
	s := &Subscription{client: c, want: filter, wake: make(chan struct{}, 1), done: make(chan struct{})}
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
	for {
		s.mu.Lock()
		if len(s.events) > 0 {
			e := s.events[0]
			s.events = slices.Delete(s.events, 0, 1)
			s.mu.Unlock()
			return e, nil
		}
		s.mu.Unlock()
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		case <-s.done:
			s.mu.Lock()
			defer s.mu.Unlock()
			return Event{}, errors.Join(s.err, mcp.ErrClosed)
		}
	}
}

// Close ends the subscription. What has come before can still be taken.
func (s *Subscription) Close() {
	s.cancel()
	<-s.done
}

// run listens, over one connection after the other, until the subscription is
// closed or the server refuses it. It sends the outcome of the first attempt to
// acked.
func (s *Subscription) run(acked chan<- error) {
	defer close(s.done)
	defer s.cancel()
	pause := backoff{}
	for first := true; ; first = false {
		attempt := &listenCaller{s: s, again: !first, acked: acked}
		err := s.attempt(attempt)
		switch {
		case s.ctx.Err() != nil:
			s.end(nil)
			return
		case !attempt.heard && (first || refused(err)):
			s.end(err)
			if first {
				acked <- noAnswer(err)
			}
			return
		}
		if attempt.heard {
			pause.wait = 0
		}
		if !wait(s.ctx, pause.next(s.client.opts.Healing.MinWait, s.client.opts.Healing.MaxWait)) {
			s.end(nil)
			return
		}
	}
}

// attempt listens once, as long as it lasts.
func (s *Subscription) attempt(caller *listenCaller) error {
	edge, _, err := s.client.link.get(s.ctx, mcp.MethodListen)
	if err != nil {
		return err
	}
	req := &mcp.Request{Method: mcp.MethodListen, Params: s.want.Params()}
	s.client.introduce(&req.Meta)
	_, err = edge.Handle(s.ctx, req, caller)
	return err
}

// noAnswer returns why there is no subscription.
func noAnswer(err error) error {
	if err != nil {
		return err
	}
	return badReply(mcp.MethodListen, errors.New("the subscription ended before it was acknowledged"))
}

// refused reports whether the server does not serve such a subscription.
func refused(err error) bool {
	_, failed := errors.AsType[*mcp.CallError](err)
	return !failed && jsonrpc.FromPeer(err)
}

// end says why nothing more comes.
func (s *Subscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// A listenCaller takes what comes for one listen call.
type listenCaller struct {
	s     *Subscription
	again bool         // there was another one before
	heard bool         // it was acknowledged; of the goroutine that listens
	acked chan<- error // gets nil at the first acknowledgement
}

// Notify implements [mcp.Caller].
func (l *listenCaller) Notify(_ context.Context, n *mcp.Notification) error {
	if n.Method != mcp.NotificationAcknowledged {
		l.s.client.told(n)
		l.s.put(Event{Method: n.Method, Params: bytes.Clone(n.Params.Raw())})
		return nil
	}
	if l.heard {
		return nil
	}
	l.heard = true
	granted, err := mcp.ReadFilter(&n.Params)
	if err != nil {
		return err
	}
	l.s.mu.Lock()
	l.s.granted = granted
	l.s.mu.Unlock()
	if !l.again {
		l.acked <- nil
		return nil
	}
	l.s.client.resynced()
	l.s.put(Event{Method: Resynced})
	return nil
}

// Ask implements [mcp.Caller]: questions that belong to no call of ours.
func (l *listenCaller) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return (&answerer{client: l.s.client}).Ask(ctx, req)
}

// put adds an event. An event that waits already is not added again.
func (s *Subscription) put(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(other Event) bool { return other.Method == e.Method && bytes.Equal(other.Params, e.Params) }
	if slices.ContainsFunc(s.events, same) {
		return
	}
	if len(s.events) >= MaxEvents {
		lost := s.events[0].Lost + 1
		s.events = slices.Delete(s.events, 0, 1)
		s.events[0].Lost += lost
	}
	s.events = append(s.events, e)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
