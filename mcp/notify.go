package mcp

import "context"

// A Batcher is a [Caller] that sends several notifications in one go for less than
// it takes to send them one after the other.
type Batcher interface {
	// NotifyAll sends notifications in their order, as Notify does. When it
	// returns, all are on their way, or as many as there were before the error.
	NotifyAll(ctx context.Context, list []*Notification) error
}

// NotifyAll sends notifications to caller in their order: in one go if caller is
// a [Batcher], and else one after the other, up to the first error.
func NotifyAll(ctx context.Context, caller Caller, list []*Notification) error {
	if b, ok := caller.(Batcher); ok {
		return b.NotifyAll(ctx, list)
	}
	for _, n := range list {
		if err := caller.Notify(ctx, n); err != nil {
			return err
		}
	}
	return nil
}
