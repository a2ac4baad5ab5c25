package transport

import (
	"context"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// Served returns the revisions that a listener lists: the modern ones and, if
// it serves legacy clients as well, those.
func Served(era mcp.Era) []mcp.Revision {
	switch era {
	case mcp.Legacy:
		return mcp.LegacyRevisions()
	case mcp.Modern:
		return mcp.ModernRevisions()
	}
	return append(mcp.ModernRevisions(), mcp.LegacyRevisions()...)
}

// ModernRequest returns the request that a modern client's message is, or the
// error that it must be answered with: metadata missing, a revision that is not
// served, a method that modern MCP does not have, params that are no object.
func ModernRequest(m *jsonrpc.Message, served mcp.Era) (*mcp.Request, *jsonrpc.Error) {
	if !m.Body.IsObject() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: an object was expected")
	}
	meta, err := mcp.ReadMetadata(&m.Meta)
	if meta.Revision != "" && meta.Revision.Era() != mcp.Modern {
		return nil, mcp.UnsupportedRevision(meta.Revision, Served(served))
	}
	if err != nil {
		return nil, err
	}
	method := mcp.MethodName(m.Method)
	if mcp.IsLegacyOnly(method) || mcp.IsNotificationName(method) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	params := m.Body
	if method == mcp.MethodListen {
		params = mcp.WithoutSession(&params)
	}
	return &mcp.Request{Method: method, ID: m.ID, Params: params, Meta: meta}, nil
}

// A ModernCaller is the way back to a modern client for one request. It writes
// the client's subscription id into what a listen call delivers, and lets
// nothing through that the request did not ask for.
type ModernCaller struct {
	Out     session.Outlet
	Request *mcp.Request
	ID      jsonrpc.ID

	once   sync.Once
	filter mcp.Filter // of a listen call, set by once

	kept bool
}

// Keep says that the memory of the request is in use even when its Handle has
// returned (see park.New). It is called before that.
func (c *ModernCaller) Keep() { c.kept = true }

// Kept reports, when Handle has returned, whether Keep was called.
func (c *ModernCaller) Kept() bool { return c.kept }

// Notify implements [mcp.Caller].
func (c *ModernCaller) Notify(ctx context.Context, n *mcp.Notification) error {
	params := n.Params
	switch {
	case mcp.IsLegacyOnly(n.Method):
		return nil
	case c.Request.Method == mcp.MethodListen:
		if !c.listensFor(n) {
			return nil
		}
		return notifySubscriber(ctx, c.Out, c.ID, n)
	case n.Method == mcp.NotificationMessage:
		level, _ := params.LookupString("level")
		if !c.Request.Meta.LogLevel.Includes(mcp.Level(level)) {
			return nil
		}
	case n.Method == mcp.NotificationProgress && c.Request.Meta.ProgressToken.IsZero():
		return nil
	}
	return WithFrame(
		func(dst []byte) []byte { return jsonrpc.AppendNotification(dst, n.Method, &params) },
		func(frame []byte) error { return c.Out.Send(ctx, frame) })
}

// NotifyAll implements [mcp.Batcher].
func (c *ModernCaller) NotifyAll(ctx context.Context, list []*mcp.Notification) error {
	return notifyAll(ctx, c.Out, c.Notify, list)
}

// listensFor reports whether a listen call has asked for a notification
// (2026-07-28, patterns/subscriptions, Opening a Stream). An extension's own
// are let through: what its filter looks like is not known here.
func (c *ModernCaller) listensFor(n *mcp.Notification) bool {
	switch n.Method {
	case mcp.NotificationMessage, mcp.NotificationProgress:
		return false
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged,
		mcp.NotificationResourcesListChanged, mcp.NotificationResourceUpdated, mcp.NotificationTask:
	default:
		return true
	}
	c.once.Do(func() {
		// The handler refuses params that hold no filter.
		c.filter, _ = mcp.ReadFilter(&c.Request.Params)
	})
	return c.filter.Wants(n)
}

// Ask implements [mcp.Caller]: a modern client is not sent requests. Where it can
// be asked all the same, a park.Lot stands before the handler.
func (c *ModernCaller) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}

// A ModernReply is a handler's outcome as a modern client must get it: a result
// with edits, or an error.
type ModernReply struct {
	Err *jsonrpc.Error // nil for a result

	id     jsonrpc.ID
	result mcp.Result
	edits  []jsonrpc.Edit
}

// NewModernReply returns the reply to a request with the given id.
func NewModernReply(req *mcp.Request, id jsonrpc.ID, result mcp.Result, err error, served mcp.Era) ModernReply {
	if err != nil {
		return ModernReply{id: id, Err: ModernError(req, jsonrpc.ToWire(err))}
	}
	switch req.Method {
	case mcp.MethodDiscover:
		result = mcp.WithSupportedVersions(&result, Served(served))
		result = mcp.WithoutLegacyTasks(result)
	case mcp.MethodListen:
		result.Value = mcp.WithSubscription(&result.Value, id)
	}
	result, edits := mcp.ForModernClient(req.Method, result)
	return ModernReply{id: id, result: result, edits: edits}
}

// AppendTo appends the response to dst, in one line.
func (r *ModernReply) AppendTo(dst []byte) []byte {
	if r.Err != nil {
		return jsonrpc.AppendError(dst, r.id, r.Err)
	}
	return jsonrpc.AppendResult(dst, r.id, &r.result.Value, r.edits...)
}

// ModernError returns the error of a request as a modern client must get it: codes
// that modern servers must not send are replaced (2026-07-28, basic, Error Codes).
// An error that needs no change is returned itself.
func ModernError(req *mcp.Request, err *jsonrpc.Error) *jsonrpc.Error {
	if err.Code != jsonrpc.CodeResourceNotFound || req.Method != mcp.MethodReadResource {
		return err
	}
	uri, _ := req.Params.Lookup("uri")
	data := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "uri", Value: uri})
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Message, Data: data}
}
