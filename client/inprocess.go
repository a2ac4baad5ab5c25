package client

import (
	"context"
	"errors"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// An inProcess is an edge whose server is a Handler of this process. It is spoken
// to as a modern server, and its errors are those of one, except that it may ask.
type inProcess struct {
	handler mcp.Handler
	info    transport.ServerInfo

	uses *inflight.Uses

	ctx   context.Context // of the connection, ended by Close
	close context.CancelFunc
	open  context.Context // takes calls, ended by Retire as well; that of listen calls
	shut  context.CancelFunc
}

func newInProcess(handler mcp.Handler, info transport.ServerInfo) *inProcess {
	e := &inProcess{handler: handler, info: info, uses: inflight.NewUses()}
	e.ctx, e.close = context.WithCancel(context.Background())
	e.open, e.shut = context.WithCancel(e.ctx)
	return e
}

// Handle implements [mcp.Handler].
func (e *inProcess) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if e.open.Err() != nil || !e.uses.Begin() {
		return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed}
	}
	defer e.uses.Leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	life := e.open
	if req.Method != mcp.MethodListen {
		life, caller = e.ctx, &inProcessCaller{caller, req}
	}
	stop := context.AfterFunc(life, func() { cancel(mcp.ErrClosed) })
	defer stop()
	result, err := e.handler.Handle(ctx, req, caller)
	if _, isOurs := errors.AsType[*mcp.CallError](err); err == nil || isOurs {
		return result, err
	}
	if ctx.Err() == nil {
		return result, asModern(req, err)
	}
	if life.Err() != nil {
		return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: mcp.ErrClosed}
	}
	return mcp.Result{}, givenUp(ctx, req.Method, mcp.MaybeExecuted, nil)
}

// An inProcessCaller lets nothing through that its request did not ask for, as the
// edge of a modern server does.
type inProcessCaller struct {
	mcp.Caller
	req *mcp.Request
}

// Notify implements [mcp.Caller].
func (c *inProcessCaller) Notify(ctx context.Context, n *mcp.Notification) error {
	switch n.Method {
	case mcp.NotificationMessage:
		if level, _ := n.Params.LookupString("level"); !c.wantsLog(mcp.Level(level)) {
			return nil
		}
	case mcp.NotificationProgress:
		if c.req.Meta.ProgressToken.IsZero() {
			return nil
		}
	}
	return c.Caller.Notify(ctx, n)
}

// wantsLog reports whether the request wants log messages of a level. A legacy
// client that has set none, on whose behalf the request may be made, leaves the
// choice to the server (2025-11-25, server/utilities/logging).
func (c *inProcessCaller) wantsLog(level mcp.Level) bool {
	meta := &c.req.Meta
	return meta.LogLevel.Includes(level) || meta.LogLevel == "" && meta.Revision.Era() == mcp.Legacy
}

// Release implements [mcp.Releaser].
func (c *inProcessCaller) Release(ctx context.Context, retry time.Duration) error {
	return mcp.Release(ctx, c.Caller, retry)
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
func (e *inProcess) Done() <-chan struct{} { return e.open.Done() }

// Err implements [transport.Edge].
func (e *inProcess) Err() error {
	if e.open.Err() != nil {
		return mcp.ErrClosed
	}
	return nil
}

// Retire is Close after the calls in flight have ended, or ctx has.
func (e *inProcess) Retire(ctx context.Context) error {
	ended := e.uses.End()
	e.shut()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return e.Close()
}

// Close implements [transport.Edge].
func (e *inProcess) Close() error {
	e.close()
	return nil
}
