package transport

import (
	"context"
	"sync"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A modern speaks to a modern server over a byte stream.
type modern struct {
	conn     *Conn
	revision mcp.Revision
	stamp    *mcp.Stamp
	calls    *inflight.Calls

	mu sync.Mutex // guards the filters of listen calls
}

// Handle implements [mcp.Handler].
func (s *modern) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.IsLegacyOnly() {
		if req.Notification {
			return mcp.Result{}, nil
		}
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	if req.Notification {
		params := mcp.ForModern(req, s.revision, jsonrpc.ID{})
		return mcp.Result{}, s.conn.Notify(ctx, req.Method, &params)
	}
	call, err := s.calls.Start(req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	var token jsonrpc.ID
	if !req.Meta.ProgressToken.IsZero() {
		token = call.WireID()
	}
	edits := s.stamp.Edits(req, token)
	if req.Method == mcp.MethodListen {
		filter, err := mcp.ReadFilter(&req.Params)
		if err != nil {
			return mcp.Result{}, err
		}
		s.mu.Lock()
		call.Filter = filter
		s.mu.Unlock()
		if filter.Empty() {
			return listenToNothing(ctx, call, caller)
		}
		params := jsonrpc.Edited(&req.Params, edits...)
		params = mcp.WithoutSession(&params)
		return s.conn.Call(ctx, call, &params, caller)
	}
	return s.conn.Call(ctx, call, &req.Params, caller, edits...)
}

// listenToNothing serves a listen call that asks for nothing that a modern server
// has, without the server.
func listenToNothing(ctx context.Context, call *inflight.Call, caller mcp.Caller) (mcp.Result, error) {
	if err := caller.Notify(ctx, mcp.Filter{}.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	_, err := call.Wait(ctx, caller, 0)
	return mcp.Result{}, err
}

// Notified implements era.
func (s *modern) Notified(m *jsonrpc.Message, _ *inflight.Call) {
	n := &mcp.Notification{Method: mcp.MethodName(m.Method), Params: m.Body}
	meta := n.Params.Get("_meta")
	if _, named := meta.Lookup(mcp.MetaSubscriptionID); named {
		if call := s.listen(mcp.SubscriptionID(&n.Params)); call != nil {
			call.Notify(n)
		}
		return
	}
	switch n.Method {
	case mcp.NotificationProgress:
		s.calls.Progress(n)
	case mcp.NotificationCancelled:
		s.tornDown(n)
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged,
		mcp.NotificationResourcesListChanged, mcp.NotificationResourceUpdated, mcp.NotificationTask:
		// Some servers leave the subscription id out.
		for _, call := range s.wanting(n) {
			call.Notify(n)
		}
	default:
		s.related(n)
	}
}

// wanting returns the listen calls whose filter lets a notification through.
func (s *modern) wanting(n *mcp.Notification) []*inflight.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls, _ := s.calls.Listening(func(call *inflight.Call) bool { return call.Filter.Wants(n) })
	return calls
}

// listen returns the listen call with an id, nil if there is none.
func (s *modern) listen(id jsonrpc.ID) *inflight.Call {
	call, _ := s.calls.Find(id)
	if call == nil || call.Request.Method != mcp.MethodListen {
		return nil
	}
	return call
}

// related gives a notification that names no request to the call that it must
// belong to, or to nobody if that is not certain.
func (s *modern) related(n *mcp.Notification) {
	text, _ := n.Params.LookupString("level")
	owner, _ := s.calls.Owner(func(req *mcp.Request) bool {
		return n.Method != mcp.NotificationMessage || req.Meta.LogLevel.Includes(mcp.Level(text))
	})
	if owner != nil {
		owner.Notify(n)
	}
}

// tornDown ends a listen call that the server has ended.
func (s *modern) tornDown(n *mcp.Notification) {
	raw, _ := n.Params.Lookup("requestId")
	id, ok := jsonrpc.RawID(raw)
	if !ok {
		return
	}
	if call := s.listen(id); call != nil {
		call.Finish(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.Answered, Public: "the server ended the subscription"})
	}
}

// Asked implements era: a modern server must not ask.
func (s *modern) Asked(_ context.Context, m *jsonrpc.Message, _ *inflight.Call) {
	s.conn.log.Warn("a modern server sent a request", "method", string(m.Method))
	var err error = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	if mcp.MethodName(m.Method) == mcp.MethodPing {
		err = nil
	}
	s.conn.replySoon(m.ID, mcp.Result{}, err)
}
