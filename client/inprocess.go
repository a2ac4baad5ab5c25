package client

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// An inProcess is an edge whose server is a Handler of this process. It is spoken
// to as a modern server, except that it may ask.
type inProcess struct {
	handler mcp.Handler
	info    transport.ServerInfo

	ctx   context.Context // of the connection, ended by Close
	close context.CancelFunc
}

// Handle implements [mcp.Handler].
func (e *inProcess) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if e.ctx.Err() != nil {
		return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(e.ctx, func() { cancel(mcp.ErrClosed) })
	defer stop()
	result, err := e.handler.Handle(ctx, req, caller)
	if _, isOurs := errors.AsType[*mcp.CallError](err); err == nil || isOurs || ctx.Err() == nil {
		return result, err
	}
	if e.ctx.Err() != nil {
		return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: mcp.ErrClosed}
	}
	return mcp.Result{}, givenUp(ctx, req.Method, mcp.MaybeExecuted, nil)
}

// Server implements [transport.Edge].
func (e *inProcess) Server() transport.ServerInfo { return e.info }

// Done implements [transport.Edge].
func (e *inProcess) Done() <-chan struct{} { return e.ctx.Done() }

// Err implements [transport.Edge].
func (e *inProcess) Err() error {
	if e.ctx.Err() != nil {
		return mcp.ErrClosed
	}
	return nil
}

// Close implements [transport.Edge].
func (e *inProcess) Close() error {
	e.close()
	return nil
}
