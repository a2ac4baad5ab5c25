package mcp

import "context"

// A Handler answers requests. A server is one, and so is a connection to a
// server: calling it sends the request there. What stands between two
// connections is therefore function composition.
//
// Handle is called concurrently. It returns when the request has ended; ctx ends
// when whoever asked no longer wants the answer. An error is answered to the
// peer by [jsonrpc.ToWire]. The result of a notification is not used.
//
// Req and caller are valid until Handle returns, as is all that req refers to:
// the memory of a large message is used again. Whoever keeps a part of it copies
// that part ([bytes.Clone]); the result may alias it. Req must not be changed.
type Handler interface {
	Handle(ctx context.Context, req *Request, caller Caller) (Result, error)
}

// A Caller is the way back to whoever made the request, valid until Handle
// returns: notifications about the request, and questions that only the caller
// can answer (elicitation, sampling, roots). Its methods may be called
// concurrently.
type Caller interface {
	// Notify sends a notification that belongs to the request: progress, a log
	// message, or, for subscriptions/listen, a change. The order of calls is
	// kept. It may block while the way back is full, no longer than ctx.
	Notify(ctx context.Context, n *Notification) error

	// Ask puts a question and waits for its answer. Who cannot be asked
	// answers with an error for which errors.Is(err, ErrCannotAsk) holds.
	Ask(ctx context.Context, req *Request) (Result, error)
}

// HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, req *Request, caller Caller) (Result, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, req *Request, caller Caller) (Result, error) {
	return f(ctx, req, caller)
}

// NoCaller is a [Caller] without anybody behind it: notifications are dropped,
// questions refused.
type NoCaller struct{}

// Notify drops n.
func (NoCaller) Notify(context.Context, *Notification) error { return nil }

// Ask refuses.
func (NoCaller) Ask(context.Context, *Request) (Result, error) { return Result{}, ErrCannotAsk }
