package server

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// listsChanged returns a function that tells clients that lists have changed.
func (s *Server) listsChanged(lists mcp.Changes) func() {
	return func() { s.hub.listsChanged(lists) }
}

// Changed tells the clients that have subscribed to resources, or to what these
// are parts of, that they have changed. It does not wait for anybody. Changes of
// one resource that come faster than a client takes them are told it once.
//
// That lists have changed is told when features are added or removed.
func (s *Server) Changed(uris ...string) {
	for _, uri := range uris {
		s.hub.changed(uri)
	}
}

// A listener is one listen call, an [mcp.Subscription]. What it has not been told
// yet is bounded by what it has subscribed to, however slow its client is. While
// nothing changes it has no goroutine.
type listener struct {
	// Set at construction, number by the hub.
	server *Server
	ctx    context.Context
	caller mcp.Caller
	number uint64 // that nobody else has
	filter mcp.Filter
	result []byte

	failed chan struct{} // closed by tell when err is set
	err    error

	tellers sync.WaitGroup // of the timer that is set, or of tell

	// Guarded by the hub's mu.
	timer   *time.Timer // calls tell; nil until there was something to tell
	telling bool        // it is set, or tell runs
	ended   bool
	lists   mcp.Changes
	changed []*mcp.Notification // resources, in the order of their changes
	has     map[string]struct{} // their URIs
}

// Subscribe implements [mcp.Subscriber].
func (s *Server) Subscribe(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Subscription, error) {
	l, err := s.subscribe(ctx, req, caller)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// subscribe begins a listen call: it acknowledges what of the filter the server
// serves.
func (s *Server) subscribe(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*listener, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return nil, err
	}
	l := &listener{
		server: s, ctx: ctx, caller: caller, filter: s.served(filter),
		result: append(s.begin(nil, req), '}'), failed: make(chan struct{}),
		telling: true, // the acknowledgement comes first
	}
	if !l.filter.Empty() {
		if err := s.hub.add(l); err != nil {
			return nil, err
		}
	}
	acknowledged := false
	defer func() {
		if !acknowledged { // which what stands before the client may prevent by a panic
			s.hub.remove(l)
		}
	}()
	if err := caller.Notify(ctx, l.filter.Acknowledge()); err != nil {
		return nil, err
	}
	acknowledged = true
	s.hub.told(l)
	return l, nil
}

// Failed implements [mcp.Subscription].
func (l *listener) Failed() <-chan struct{} { return l.failed }

// End implements [mcp.Subscription].
func (l *listener) End() (mcp.Result, error) {
	l.server.hub.remove(l)
	l.server.hub.end(l)
	l.tellers.Wait()
	if l.err != nil && l.ctx.Err() == nil {
		return mcp.Result{}, l.err
	}
	return mcp.RawResult(l.result), nil
}

// tell tells the client what it has not been told.
func (l *listener) tell() {
	defer l.tellers.Done()
	if l.err = l.send(l.server.hub.take(l)); l.err != nil {
		close(l.failed) // and it is never told again
		return
	}
	l.server.hub.told(l)
}

// send sends notifications. A panic of what stands before the client is its
// error: there is no request that could fail.
func (l *listener) send(list []*mcp.Notification) (err error) {
	defer func() {
		if r := recover(); r != nil {
			l.server.opts.Logger.Error("a caller panicked", "method", mcp.MethodListen, "err", r, "stack", string(debug.Stack()))
			err = jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error")
		}
	}()
	return mcp.NotifyAll(l.ctx, l.caller, list)
}

// listen answers subscriptions/listen.
func (s *Server) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	l, err := s.subscribe(ctx, req, caller)
	if err != nil {
		return mcp.Result{}, err
	}
	select {
	case <-ctx.Done():
	case <-l.failed:
	}
	return l.End()
}

// served returns what of a filter the server serves: changes of lists that it
// declares, and resources that it has.
func (s *Server) served(f mcp.Filter) mcp.Filter {
	c := s.capabilities()
	f.ToolsListChanged = f.ToolsListChanged && c.Tools != nil && c.Tools.ListChanged
	f.PromptsListChanged = f.PromptsListChanged && c.Prompts != nil && c.Prompts.ListChanged
	f.ResourcesListChanged = f.ResourcesListChanged && c.Resources != nil && c.Resources.ListChanged
	f.ResourceSubscriptions = slices.DeleteFunc(slices.Clone(f.ResourceSubscriptions), func(uri string) bool {
		read, _ := s.findResource(uri)
		return read == nil || c.Resources == nil || !c.Resources.Subscribe
	})
	f.TaskIDs = nil
	return f
}
