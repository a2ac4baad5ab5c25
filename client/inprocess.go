package client

import (
	"context"
	"sync"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// An inProcess is an edge whose server is a Handler of this process. It is spoken
// to as a modern server, except that it may ask.
type inProcess struct {
	handler mcp.Handler
	info    transport.ServerInfo

	once    sync.Once
	done    chan struct{} // closed by Close
	running sync.WaitGroup
}

// Handle implements [mcp.Handler].
func (e *inProcess) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {})
	defer stop()
	select {
	case <-e.done:
		return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed}
	default:
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-e.done:
			cancel(mcp.ErrClosed)
		case <-ended:
		}
	}()
	result, err := e.handler.Handle(ctx, req, caller)
	if err == nil {
		result.Value = result.Indexed()
	}
	return result, err
}

// Server implements [transport.Edge].
func (e *inProcess) Server() transport.ServerInfo { return e.info }

// Done implements [transport.Edge].
func (e *inProcess) Done() <-chan struct{} { return e.done }

// Err implements [transport.Edge].
func (e *inProcess) Err() error {
	select {
	case <-e.done:
		return mcp.ErrClosed
	default:
		return nil
	}
}

// Close implements [transport.Edge].
func (e *inProcess) Close() error {
	e.once.Do(func() { close(e.done) })
	return nil
}
