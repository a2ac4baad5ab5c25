package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Bounds of calls whose results need input.
const (
	// MaxRounds is how often such a call is made again.
	MaxRounds = 16
	// MaxInputRequests is how many questions one result may hold.
	MaxInputRequests = 64
)

// Waits before a call is made again whose result asks nothing.
const (
	minRetryWait = 100 * time.Millisecond
	maxRetryWait = 15 * time.Second
)

// complete makes a call, and makes it again with the answers while its results
// need input (2026-07-28, patterns/mrtr, Client Requirements), or while the server
// wants pages to be opened first.
func (c *Client) complete(ctx context.Context, req *mcp.Request, caller *guardedCaller) (mcp.Result, error) {
	pause := backoff{bound: minRetryWait / 2}
	pages := visits{elicitations: &c.elicitations, client: c}
	for round := 0; ; round++ {
		result, err := c.handle(ctx, req, caller)
		if round > 0 {
			err = mcp.Begun(err)
		}
		switch {
		case err == nil && !mcp.MayNeedInput(req.Method):
			return c.final(req.Method, result, result.Type())
		case !mcp.MayNeedInput(req.Method):
			return result, err
		case err != nil && (round == MaxRounds || !pages.open(ctx, c.link.dialer.opts.Capabilities, err, caller)):
			return result, err
		case err == nil:
			result.Value = result.Indexed()
			if kind := result.Type(); kind != mcp.InputRequired {
				return c.final(req.Method, result, kind)
			}
			if round == MaxRounds {
				return mcp.Result{}, &mcp.CallError{
					Method: req.Method, Kind: mcp.LimitExceeded, Limit: "MaxRounds", Outcome: mcp.Answered,
					Public: fmt.Sprintf("the server still needs input after %d rounds", MaxRounds),
				}
			}
			if req, err = c.answered(ctx, req, &result, caller, &pause); err != nil {
				return mcp.Result{}, err
			}
		}
		caller.clock.progress()  // the server has shown that it is there
		caller.used.Store(false) // what follows is a request of its own
	}
}

// final returns the result, of a type, that a call has ended with: "A resultType of
// any value unrecognized by the client MUST be considered invalid" (2026-07-28,
// basic, ResultType). Who declares extensions has to know theirs.
func (c *Client) final(method string, result mcp.Result, kind string) (mcp.Result, error) {
	if kind == mcp.Complete || c.Verdict().Era != mcp.Modern {
		return result, nil
	}
	declared := jsonrpc.Trusted(c.link.dialer.opts.Capabilities)
	if _, extended := declared.Lookup("extensions"); extended && kind != mcp.InputRequired {
		return result, nil
	}
	return mcp.Result{}, badReply(method, fmt.Errorf("the result is of the type %.40q, which is none for this call", kind))
}

// answered returns the request that answers a result which needs input.
func (c *Client) answered(ctx context.Context, req *mcp.Request, result *mcp.Result, caller *guardedCaller, pause *backoff) (*mcp.Request, error) {
	var need mcp.InputRequiredResult
	if err := result.Decode(&need); err != nil {
		return nil, badReply(req.Method, err)
	}
	state, _ := result.Lookup("requestState")
	if string(state) == "null" {
		state = nil // and not there
	}
	if state == nil && len(need.InputRequests) == 0 {
		return nil, badReply(req.Method, errors.New("the result needs input, and does not say which"))
	}
	responses, err := c.respond(ctx, req.Method, &need, caller)
	if err != nil {
		return nil, err
	}
	if len(need.InputRequests) == 0 && !sleep(ctx, pause.grow(caller.clock.most(maxRetryWait)), c.ctx.Done()) {
		return nil, givenUp(ctx, req.Method, mcp.Answered, nil)
	}
	again := *req
	again.Params = jsonrpc.Edited(&req.Params,
		jsonrpc.Edit{Name: "inputResponses", Value: responses}, jsonrpc.Edit{Name: "requestState", Value: state})
	return &again, nil
}

// respond answers the questions of a result, all at once. It returns nil if there
// are none.
func (c *Client) respond(outer context.Context, method string, need *mcp.InputRequiredResult, caller mcp.Caller) (mcp.JSON, error) {
	switch n := len(need.InputRequests); {
	case n == 0:
		return nil, nil
	case n > MaxInputRequests:
		return nil, &mcp.CallError{
			Method: method, Kind: mcp.LimitExceeded, Limit: "MaxInputRequests", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the server asks %d questions at once", n),
		}
	}
	var (
		asking    sync.WaitGroup
		mu        sync.Mutex
		responses = make(mcp.Object)
		failure   error
	)
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	for key, question := range need.InputRequests {
		asking.Go(func() {
			req := &mcp.Request{Method: question.Method}
			if question.Params != nil && string(question.Params) != "null" {
				req.Params = jsonrpc.Trusted(question.Params)
			}
			result, err := caller.Ask(ctx, req)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if failure == nil {
					failure = fmt.Errorf("answering %s: %w", question.Method, opaque{err})
				}
				cancel() // the other answers would be of no use
				return
			}
			responses[key] = result.Raw()
		})
	}
	asking.Wait()
	switch {
	case failure == nil:
	case outer.Err() != nil:
		return nil, givenUp(outer, method, mcp.Answered, nil)
	case c.ctx.Err() != nil:
		return nil, &mcp.CallError{Method: method, Kind: mcp.ConnectionLost, Outcome: mcp.Answered, Err: mcp.ErrClosed}
	case errors.Is(failure, mcp.ErrCannotAsk):
		return nil, &mcp.CallError{Method: method, Kind: mcp.Unsupported, Outcome: mcp.Answered, Err: failure}
	default:
		return nil, &mcp.CallError{Method: method, Kind: mcp.Cancelled, Outcome: mcp.Answered, Err: failure}
	}
	return mcp.NewJSON(responses)
}

func badReply(method string, err error) error {
	return &mcp.CallError{Method: method, Kind: mcp.BadReply, Outcome: mcp.Answered, Err: err}
}
