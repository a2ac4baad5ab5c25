package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A caller is the way back to the client for one request.
type caller struct {
	session  *Server
	out      Outlet
	req      *mcp.Request  // nil outside requests
	progress atomic.Uint64 // bits of the last that the client was told
}

// progressed returns the progress that the client was last told.
func (c *caller) progressed() float64 { return math.Float64frombits(c.progress.Load()) }

// Notify implements [mcp.Caller]. It lets through what the request, or the
// session, has asked for.
func (c *caller) Notify(ctx context.Context, n *mcp.Notification) error {
	switch n.Method {
	case mcp.NotificationAcknowledged:
		return nil
	case mcp.NotificationProgress:
		// The wait for a task's result has that of the call which made the task.
		if c.req.Meta.ProgressToken.IsZero() && c.req.Method != mcp.MethodTaskResult {
			return nil
		}
		raw, _ := n.Params.Lookup("progress")
		if progress, err := strconv.ParseFloat(string(raw), 64); err == nil {
			c.progress.Store(math.Float64bits(progress))
		}
	case mcp.NotificationTask:
		return nil // not of its revision
	case mcp.NotificationMessage:
		level, _ := n.Params.LookupString("level")
		if !wantsLog(c.req, mcp.Level(level)) {
			return nil
		}
	}
	return sendNotification(ctx, c.out, n)
}

// Release implements [mcp.Releaser], as far as the outlet does.
func (c *caller) Release(ctx context.Context, retry time.Duration) error {
	if out, ok := c.out.(mcp.Releaser); ok {
		return out.Release(ctx, retry)
	}
	return nil
}

func sendNotification(ctx context.Context, out Outlet, n *mcp.Notification) error {
	params := n.Params
	if !mcp.SubscriptionID(&params).IsZero() {
		params = mcp.WithSubscription(&params, jsonrpc.ID{})
	}
	frame := jsonrpc.AppendNotification(make([]byte, 0, len(params.Raw())+128), n.Method, &params)
	return out.Send(ctx, frame)
}

// MaxAnswer is how long a legacy client may take to answer a question. One that has
// gone over HTTP need not tell, and the clock of the call stands still meanwhile.
const MaxAnswer = 24 * time.Hour

func notAnswered(method string) error {
	return &mcp.CallError{
		Method: method, Kind: mcp.LimitExceeded, Limit: "MaxAnswer", Outcome: mcp.MaybeExecuted,
		Public: fmt.Sprintf("the client has not answered for %v", MaxAnswer),
	}
}

// Ask implements [mcp.Caller]: it sends the client a request of ours, if the
// client has declared that it can be asked.
func (c *caller) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	s := c.session
	s.mu.Lock()
	capabilities := s.meta.Capabilities
	s.mu.Unlock()
	if !declares(capabilities, req.Method) {
		return mcp.Result{}, mcp.ErrCannotAsk
	}
	if err := checkMode(capabilities, req); err != nil {
		return mcp.Result{}, fmt.Errorf("%w: %w", mcp.ErrCannotAsk, err)
	}
	call, err := s.asks.Start(req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	id := call.WireID()
	frame := jsonrpc.AppendRequest(make([]byte, 0, len(req.Params.Raw())+128), id, req.Method, &req.Params)
	if err := c.out.Send(ctx, frame); err != nil {
		return mcp.Result{}, err
	}
	m, err := call.Wait(ctx, mcp.NoCaller{}, MaxAnswer)
	if err != nil {
		c.withdraw(id)
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = notAnswered(req.Method)
		}
		return mcp.Result{}, err
	}
	if m.Failed {
		return mcp.Result{}, jsonrpc.ReadError(&m.Body)
	}
	return mcp.Result{Value: m.Body}, nil
}

// withdrawTimeout bounds telling a client that a question needs no answer.
const withdrawTimeout = time.Second

func (c *caller) withdraw(id jsonrpc.ID) {
	ctx, cancel := context.WithTimeout(c.session.ctx, withdrawTimeout)
	defer cancel()
	params := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "requestId", Value: id.Raw()})
	// A client that has gone needs no telling.
	_ = c.out.Send(ctx, jsonrpc.AppendNotification(nil, mcp.NotificationCancelled, &params))
}
