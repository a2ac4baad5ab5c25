package streamable

import (
	"bytes"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// An open subscription is a listen call that goes on when its message has been
// served.
type openSubscription struct {
	x            *exchange
	id           jsonrpc.ID
	subscription mcp.Subscription
}

// subscribe begins a listen call of a handler that needs no goroutine for it. The
// call goes on in post, whose goroutine has few frames there: with those of the
// handler the stack of each stream would be twice as large.
func (p *post) subscribe(req *mcp.Request, x *exchange) {
	id, _ := jsonrpc.RawID(bytes.Clone(p.m.ID.Raw()))
	subscription, err := p.h.subscriber.Subscribe(p.out.r.Context(), req, &transport.ListenCaller{Out: x, ID: id})
	if err != nil {
		answer(x, transport.NewModernReply(req, p.m.ID, mcp.Result{}, err, p.h.opts.Era))
		return
	}
	p.open = &openSubscription{x: x, id: id, subscription: subscription}
}

// wait serves an open subscription to its end. It also ends, gracefully, when the
// listener shuts down.
func (h *Handler) wait(p *post, open *openSubscription) {
	// It may be open for long, and needs nothing of its message.
	recycle(p.body)
	p.body, p.m = nil, jsonrpc.Message{}
	select {
	case <-p.out.r.Context().Done():
	case <-h.ctx.Done():
	case <-open.subscription.Failed():
	}
	h.endSubscription(open)
}

// endSubscription answers a listen call.
func (h *Handler) endSubscription(open *openSubscription) {
	result, err := open.subscription.End()
	if h.ctx.Err() != nil {
		result, err = mcp.Result{}, nil
	}
	req := &mcp.Request{Method: mcp.MethodListen}
	answer(open.x, transport.NewModernReply(req, open.id, result, err, h.opts.Era))
}
