package transport

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// A ListenCaller is the way back to a modern client for a listen call of an
// [mcp.Subscriber], which keeps to the filter itself: unlike a [ModernCaller] it
// needs nothing of the request.
type ListenCaller struct {
	Out session.Outlet
	ID  jsonrpc.ID
}

// Notify implements [mcp.Caller].
func (c *ListenCaller) Notify(ctx context.Context, n *mcp.Notification) error {
	if mcp.IsLegacyOnly(n.Method) {
		return nil
	}
	return notifySubscriber(ctx, c.Out, c.ID, n)
}

// NotifyAll implements [mcp.Batcher].
func (c *ListenCaller) NotifyAll(ctx context.Context, list []*mcp.Notification) error {
	return notifyAll(ctx, c.Out, c.Notify, list)
}

// Ask implements [mcp.Caller]: nobody can be asked in a listen call.
func (c *ListenCaller) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}

// notifySubscriber sends what a listen call delivers, with the client's
// subscription id.
func notifySubscriber(ctx context.Context, out session.Outlet, id jsonrpc.ID, n *mcp.Notification) error {
	params := mcp.WithSubscription(&n.Params, id)
	return WithFrame(
		func(dst []byte) []byte { return jsonrpc.AppendNotification(dst, n.Method, &params) },
		func(frame []byte) error { return out.Send(ctx, frame) })
}

// A corker is an Outlet that can hold back what is sent until more has come.
type corker interface {
	Cork()
	Uncork() error
}

// notifyAll calls notify for each notification, so that all go out in one piece if
// the outlet can do that.
func notifyAll(ctx context.Context, out session.Outlet, notify func(context.Context, *mcp.Notification) error, list []*mcp.Notification) (err error) {
	if c, corks := out.(corker); corks && len(list) > 1 {
		c.Cork()
		defer func() { err = errors.Join(err, c.Uncork()) }()
	}
	for _, n := range list {
		if err := notify(ctx, n); err != nil {
			return err
		}
	}
	return nil
}
