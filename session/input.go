package session

import (
	"context"
	"crypto/rand"
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

// complete calls the handler for a legacy client. A result that needs input is
// not one of its revision: what it asks is put to the client as requests of ours,
// and the call is made again with the answers (2026-07-28, patterns/mrtr).
func (s *Server) complete(ctx context.Context, req *mcp.Request, c *caller) (mcp.Result, error) {
	result, err := s.handler.Handle(ctx, req, c)
	if !needsInput(req, &result, err) {
		return result, err
	}
	next, wait := *req, minRetryWait
	for range MaxRounds {
		responses, err := c.input(ctx, req.Method, &result)
		if err != nil {
			return mcp.Result{}, err
		}
		if responses == nil {
			if err := pause(ctx, wait); err != nil {
				return mcp.Result{}, err
			}
			wait = min(2*wait, maxRetryWait)
		}
		state, _ := result.Lookup("requestState")
		next.Params = jsonrpc.Edited(&req.Params,
			jsonrpc.Edit{Name: "inputResponses", Value: responses}, jsonrpc.Edit{Name: "requestState", Value: state})
		if result, err = s.handler.Handle(ctx, &next, c); !needsInput(req, &result, err) {
			return result, err
		}
	}
	return mcp.Result{}, &mcp.CallError{
		Method: req.Method, Kind: mcp.LimitExceeded, Limit: "MaxRounds", Outcome: mcp.Answered,
		Public: fmt.Sprintf("the server still needs input when the call has been made %d times", 1+MaxRounds),
	}
}

// needsInput reports whether a result needs input, and indexes it.
func needsInput(req *mcp.Request, r *mcp.Result, err error) bool {
	if err != nil || r.IsZero() || !mcp.MayNeedInput(req.Method) {
		return false
	}
	r.Value = r.Indexed()
	return r.Type() == mcp.InputRequired
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// An inputRequest is one question of a result that needs input.
type inputRequest struct {
	key    string
	req    mcp.Request
	answer []byte
	err    error
}

// input puts the questions of a result to the client, all at once, and returns
// the answers as inputResponses; nil if there are no questions.
func (c *caller) input(ctx context.Context, method string, result *mcp.Result) ([]byte, error) {
	questions, err := readQuestions(method, result)
	if err != nil || questions == nil {
		return nil, err
	}
	capabilities := c.session.capabilitiesOfClient()
	for i := range questions {
		if q := &questions[i].req; !mcp.CanAsk(capabilities, q) {
			return nil, mcp.MissingCapability(q)
		}
	}
	var asking sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range questions {
		q := &questions[i]
		asking.Go(func() {
			if q.err = c.put(ctx, q); q.err != nil {
				cancel() // the others' answers would be of no use
			}
		})
	}
	asking.Wait()
	return joinAnswers(method, questions)
}

// put asks the client one question.
func (c *caller) put(ctx context.Context, q *inputRequest) error {
	q.req.Params = asLegacy(&q.req)
	answer, err := c.Ask(ctx, &q.req)
	if err == nil && !answer.IsObject() {
		err = errors.New("the client's answer is no object")
	}
	q.answer = answer.Raw()
	return err
}

// asLegacy returns the params of a question as a legacy client gets them:
// a URL has an elicitationId, without which 2025-11-25 is no elicitation, and
// which 2026-07-28 has no more. Nothing comes of it: the end of an elicitation
// need not be told.
func asLegacy(q *mcp.Request) jsonrpc.Value {
	mode, _ := q.Params.LookupString("mode")
	if _, there := q.Params.Lookup("elicitationId"); there || q.Method != mcp.MethodElicit || mode != mcp.ElicitURL {
		return q.Params
	}
	id := jsonrpc.AppendString(nil, rand.Text())
	return jsonrpc.Edited(&q.Params, jsonrpc.Edit{Name: "elicitationId", Value: id})
}

// joinAnswers returns the inputResponses that answer all questions.
func joinAnswers(method string, questions []inputRequest) ([]byte, error) {
	responses := []byte{'{'}
	var failed error
	for i := range questions {
		q := &questions[i]
		if q.err != nil && (failed == nil || errors.Is(failed, context.Canceled)) {
			failed = &mcp.CallError{
				Method: method, Kind: mcp.Cancelled, Outcome: mcp.Answered, Err: q.err,
				Public: fmt.Sprintf("the client did not answer what the server asked (%s)", q.req.Method),
			}
		}
		if i > 0 {
			responses = append(responses, ',')
		}
		responses = append(jsonrpc.AppendString(responses, q.key), ':')
		responses = append(responses, q.answer...)
	}
	if failed != nil {
		return nil, failed
	}
	return append(responses, '}'), nil
}

// readQuestions returns the questions of a result, nil if it has none but a
// state.
func readQuestions(method string, result *mcp.Result) ([]inputRequest, error) {
	requests := result.Get("inputRequests")
	state := result.Get("requestState")
	_, isString := jsonrpc.Unquote(state.Raw())
	switch {
	case !state.IsZero() && !isString, !requests.IsZero() && !requests.IsObject(), requests.Len() == 0 && state.IsZero():
		return nil, badInput(method, "the server's result needs input, and does not say which")
	case requests.Len() > MaxInputRequests:
		return nil, &mcp.CallError{
			Method: method, Kind: mcp.LimitExceeded, Limit: "MaxInputRequests", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the server asks %d questions at once", requests.Len()),
		}
	}
	var questions []inputRequest
	for key, raw := range requests.Members() {
		request := jsonrpc.Trusted(raw)
		name, ok := request.LookupString("method")
		if !ok {
			return nil, badInput(method, "a question of the server has no method")
		}
		questions = append(questions, inputRequest{key: key, req: mcp.Request{Method: name, Params: request.Get("params")}})
	}
	return questions, nil
}

func badInput(method, reason string) error {
	return &mcp.CallError{Method: method, Kind: mcp.BadReply, Outcome: mcp.Answered, Public: reason}
}

func (s *Server) capabilitiesOfClient() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta.Capabilities
}
