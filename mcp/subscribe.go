package mcp

import "context"

// A Subscriber is a Handler that serves subscriptions/listen without a goroutine
// for each call: most of them wait for changes that are rare. A listening edge
// that can wait for many clients at less than that calls Subscribe instead of
// Handle; what stands between the two and knows only Handle makes no difference
// but memory.
type Subscriber interface {
	Handler

	// Subscribe begins a listen call: it sends caller the acknowledgement and
	// returns. From then on changes go to caller, nothing that the filter of
	// req does not ask for, until the subscription has ended. Ctx ends when the
	// client has gone. Nothing of req is used when Subscribe has returned.
	Subscribe(ctx context.Context, req *Request, caller Caller) (Subscription, error)
}

// A Subscription is a listen call that goes on.
type Subscription interface {
	// Failed is closed when the client could not be told of a change.
	Failed() <-chan struct{}
	// End ends the call and returns its result, or why it failed. Caller is not
	// used any more when it returns. It is called once.
	End() (Result, error)
}
