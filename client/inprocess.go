package client

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// An inProcess is an edge whose server is a Handler of this process. It is spoken
// to as a modern server, and its errors are those of one, except that it may ask.
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
	if _, isOurs := errors.AsType[*mcp.CallError](err); err == nil || isOurs {
		return result, err
	}
	if ctx.Err() == nil {
		return result, asModern(req, err)
	}
	if e.ctx.Err() != nil {
		return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: mcp.ErrClosed}
	}
	return mcp.Result{}, givenUp(ctx, req.Method, mcp.MaybeExecuted, nil)
}

// asModern returns what a handler fails with as a modern server would say it.
func asModern(req *mcp.Request, err error) error {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return err
	}
	if modern := transport.ModernError(req, wire); modern != wire {
		return modern
	}
	return err
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
