package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A listen is one subscriptions/listen call that the session keeps open at its
// handler: one of its own, for lists or for what comes outside calls, or that of
// one resource.
type listen struct {
	filter mcp.Filter
	ctx    context.Context // of this one call
	cancel context.CancelFunc

	once    sync.Once
	acked   chan struct{} // closed when the call was acknowledged or has failed
	ack     mcp.Filter    // set before acked is closed, like failure
	failure error
}

// Waits between attempts to listen again after a listen call has ended.
const (
	minRelisten = 500 * time.Millisecond
	maxRelisten = 30 * time.Second
)

// Keys of the session's own listen calls, beside URIs, which are not empty and
// hold no control characters at their beginning.
const (
	ownLists   = ""            // changes of lists
	ownSession = "\x00session" // what a legacy server sends outside calls
)

// openOwnListens opens the session's own listen calls, once the client is
// initialized and there is somewhere to deliver.
func (s *Server) openOwnListens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outlet == nil || s.meta.Revision == "" || s.listens[ownSession] != nil {
		return
	}
	s.startListen(ownSession, mcp.Filter{Session: true})
	if s.lists.ToolsListChanged || s.lists.PromptsListChanged || s.lists.ResourcesListChanged {
		s.startListen(ownLists, s.lists)
	}
}

// listsOf returns the lists of whose changes a server may tell: those that it
// promises to, and all if it is a legacy one, which may do so without a promise.
func listsOf(discover *mcp.Result, capabilities *mcp.ServerCapabilities) mcp.Filter {
	versions := mcp.SupportedVersions(discover)
	if len(versions) == 0 || slices.ContainsFunc(versions, func(r mcp.Revision) bool { return r.Era() != mcp.Legacy }) {
		return capabilities.ListFilter()
	}
	return mcp.Filter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
}

// ownListenWait bounds waiting for the session's own listen calls.
const ownListenWait = 250 * time.Millisecond

// awaitOwnListens waits until the session's own listen calls have been acknowledged:
// what changes from its first request on is to reach the client, who has no other
// way of knowing since when it is told. A handler that is slow is not waited for.
func (s *Server) awaitOwnListens(ctx context.Context) {
	timeout := time.NewTimer(ownListenWait)
	defer timeout.Stop()
	for _, key := range [...]string{ownLists, ownSession} {
		s.mu.Lock()
		l := s.listens[key]
		s.mu.Unlock()
		if l == nil {
			continue
		}
		select {
		case <-l.acked:
		case <-l.ctx.Done():
		case <-ctx.Done():
			return
		case <-timeout.C:
			return
		}
	}
}

// reopenSessionListen has the listen call for what comes outside calls take up a
// new log level. The old one ends when the new one has been acknowledged, so
// that nothing is missed; one that is not acknowledged itself ends at once.
func (s *Server) reopenSessionListen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.listens[ownSession]
	if old == nil || s.closed {
		return
	}
	l := s.startListen(ownSession, old.filter)
	select {
	case <-old.acked:
	default:
		old.cancel()
		return
	}
	s.running.Go(func() {
		select {
		case <-l.acked:
		case <-l.ctx.Done(): // replaced in its turn, or the session has ended
		}
		old.cancel()
	})
}

// startListen starts a listen call under a key. s.mu is held.
func (s *Server) startListen(key string, filter mcp.Filter) *listen {
	ctx, cancel := context.WithCancel(s.ctx)
	l := &listen{filter: filter, ctx: ctx, cancel: cancel, acked: make(chan struct{})}
	if s.closed {
		cancel()
		close(l.acked)
		return l
	}
	s.listens[key] = l
	meta := s.meta
	s.running.Go(func() {
		defer cancel()
		s.keepListening(l, meta)
	})
	return l
}

// keepListening listens, and again with a growing wait when the call ends before
// the session does.
func (s *Server) keepListening(l *listen, meta mcp.Metadata) {
	ctx, wait := l.ctx, minRelisten
	for ctx.Err() == nil {
		started := time.Now()
		req := &mcp.Request{Method: mcp.MethodListen, Params: l.filter.Params(), Meta: meta}
		_, err := s.handler.Handle(ctx, req, &listenCaller{session: s, listen: l})
		if l.refused(err) || ctx.Err() != nil {
			return
		}
		s.opts.Logger.Debug("listening again", "method", mcp.MethodListen, "err", err)
		if time.Since(started) > maxRelisten {
			wait = minRelisten
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
		}
		wait = min(2*wait, maxRelisten)
	}
}

// refused reports whether the handler does not serve such a listen call at all:
// it answered with an error of its own before it acknowledged.
func (l *listen) refused(err error) bool {
	refused := false
	l.once.Do(func() {
		_, ours := errors.AsType[*mcp.CallError](err)
		_, wire := errors.AsType[*jsonrpc.Error](err)
		refused = wire && !ours
		if ours {
			l.failure = err
		}
		close(l.acked)
	})
	return refused
}

// acknowledge takes up what the handler confirmed.
func (l *listen) acknowledge(n *mcp.Notification) {
	l.once.Do(func() {
		if filter, err := mcp.ReadFilter(&n.Params); err == nil {
			l.ack = filter
		}
		close(l.acked)
	})
}

// A listenCaller delivers to the client what comes outside its requests.
type listenCaller struct {
	session *Server
	listen  *listen
}

// Notify implements [mcp.Caller].
func (c *listenCaller) Notify(ctx context.Context, n *mcp.Notification) error {
	if n.Method == mcp.NotificationAcknowledged {
		c.listen.acknowledge(n)
		return nil
	}
	out := c.session.currentOutlet()
	if out == nil || n.Method == mcp.NotificationTask { // which is not of its revision
		return nil
	}
	if c.listen.filter.Session {
		ctx = c.session.ctx // what this listen call was told before another one replaces it comes from nobody else
	}
	return sendNotification(ctx, out, n)
}

// Ask implements [mcp.Caller].
func (c *listenCaller) Ask(ctx context.Context, req *mcp.Request) (result mcp.Result, err error) {
	s := c.session
	s.mu.Lock()
	out, outlets := s.outlet, s.outlets
	s.mu.Unlock()
	err = mcp.ErrCannotAsk
	if out != nil {
		result, err = (&caller{session: s, out: out}).Ask(ctx, req)
	}
	if req.Method == mcp.MethodListRoots && errors.Is(err, mcp.ErrCannotAsk) {
		s.missedRoots(outlets)
	}
	return result, err
}

// missedRoots notes that roots were asked for in vain, at the outlet that was the
// last of so many: a server is told to ask again when a listen call is opened.
func (s *Server) missedRoots(outlets int) {
	s.mu.Lock()
	changed := s.outlets != outlets
	s.noRoots = !changed
	s.mu.Unlock()
	if changed {
		s.reopenSessionListen()
	}
}

func (s *Server) currentOutlet() Outlet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outlet
}

// maxSubscriptions is how many resources one session may be subscribed to.
const maxSubscriptions = mcp.MaxResourceSubscriptions

// subscribe opens a listen call for one resource and answers when it has been
// acknowledged.
func (s *Server) subscribe(ctx context.Context, m *jsonrpc.Message) (mcp.Result, error) {
	uri, ok := m.Body.LookupString("uri")
	if !ok || uri == "" || uri[0] < ' ' {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: uri must be a URI")
	}
	s.mu.Lock()
	if !s.capabilities.Resources.Subscribe {
		s.mu.Unlock()
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	l := s.listens[uri]
	if l == nil && s.subscriptions() >= maxSubscriptions {
		s.mu.Unlock()
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"Invalid params: the session is at the limit MaxResourceSubscriptions of %d", maxSubscriptions)
	}
	if l == nil {
		l = s.startListen(uri, mcp.Filter{ResourceSubscriptions: []string{uri}})
	}
	s.mu.Unlock()
	select {
	case <-l.acked:
	case <-ctx.Done():
		return mcp.Result{}, context.Cause(ctx)
	case <-s.ctx.Done():
		return mcp.Result{}, mcp.ErrClosed
	}
	if len(l.ack.ResourceSubscriptions) == 0 {
		s.drop(uri, l)
		if l.failure != nil {
			return mcp.Result{}, l.failure
		}
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: the server does not take subscriptions to this resource")
	}
	return mcp.Result{}, nil
}

// subscriptions returns how many resources the session is subscribed to. s.mu is held.
func (s *Server) subscriptions() int {
	n := len(s.listens)
	for _, own := range [...]string{ownLists, ownSession} {
		if s.listens[own] != nil {
			n--
		}
	}
	return n
}

func (s *Server) unsubscribe(m *jsonrpc.Message) (mcp.Result, error) {
	uri, ok := m.Body.LookupString("uri")
	if !ok || uri == "" || uri[0] < ' ' {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: uri must be a URI")
	}
	s.mu.Lock()
	l := s.listens[uri]
	s.mu.Unlock()
	if l != nil {
		s.drop(uri, l)
	}
	return mcp.Result{}, nil
}

// drop ends a listen call, unless another one has taken its place.
func (s *Server) drop(key string, l *listen) {
	s.mu.Lock()
	if s.listens[key] == l {
		delete(s.listens, key)
	}
	s.mu.Unlock()
	l.cancel()
}
