package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/visit"
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
	d := dialogue{c: c, req: req, idle: backoff{wait: minRetryWait}}
	for {
		if result.Type() == mcp.TaskCreated {
			return d.await(ctx, &result)
		}
		next, err := d.next(ctx, &result)
		if err != nil {
			return mcp.Result{}, err
		}
		if result, err = s.handler.Handle(ctx, next, c); !needsInput(req, &result, err) {
			if err == nil || isWire(err) {
				d.closePages(ctx, nil)
			}
			return result, mcp.Begun(err)
		}
	}
}

// A dialogue is a call that is made again while its results need input.
type dialogue struct {
	c      *caller
	req    *mcp.Request
	rounds int
	idle   backoff // while the server asks nothing
	pages  openPages
}

// next returns the request that answers a result.
func (d *dialogue) next(ctx context.Context, result *mcp.Result) (*mcp.Request, error) {
	questions, err := readQuestions(d.req.Method, result)
	if err != nil {
		return nil, err
	}
	d.closePages(ctx, questions)
	var responses []byte
	switch unanswered := d.pages.answer(questions); {
	case len(questions) == 0:
		if err = d.count(); err == nil {
			err = d.idle.pause(ctx)
		}
	case unanswered == 0:
		err = d.waitForPages(ctx)
	default:
		if err = d.count(); err == nil {
			err = d.ask(ctx, questions)
		}
	}
	if err == nil && len(questions) > 0 {
		responses, err = joinAnswers(d.req.Method, questions)
	}
	if err != nil {
		return nil, err
	}
	state := member(&result.Value, "requestState")
	next := *d.req
	next.Params = jsonrpc.Edited(&d.req.Params,
		jsonrpc.Edit{Name: "inputResponses", Value: responses}, jsonrpc.Edit{Name: "requestState", Value: state.Raw()})
	return &next, nil
}

// count counts one round more.
func (d *dialogue) count() error {
	if d.rounds++; d.rounds <= MaxRounds {
		return nil
	}
	return &mcp.CallError{
		Method: d.req.Method, Kind: mcp.LimitExceeded, Limit: "MaxRounds", Outcome: mcp.Answered,
		Public: fmt.Sprintf("the server still needs input after %d rounds", MaxRounds),
	}
}

// ask puts the questions that have no answer yet to the client, all at once.
func (d *dialogue) ask(ctx context.Context, questions []inputRequest) error {
	capabilities := d.c.session.capabilitiesOfClient()
	for i := range questions {
		if q := &questions[i].req; !mcp.CanAsk(capabilities, q) {
			return mcp.MissingCapability(q)
		}
	}
	var asking sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range questions {
		q := &questions[i]
		if q.answer != nil || twin(questions, i) != nil {
			continue
		}
		d.pages.name(q)
		asking.Go(func() {
			if q.err = d.c.put(ctx, q); q.err != nil {
				cancel() // the others' answers would be of no use
			}
		})
	}
	asking.Wait()
	for i := range questions {
		if first := twin(questions, i); first != nil {
			questions[i].answer, questions[i].err = first.answer, first.err
		}
	}
	d.pages.keep(questions)
	return nil
}

// twin returns a question before the one at i that asks for the same page, nil if there
// is none.
func twin(questions []inputRequest, i int) *inputRequest {
	for j := range questions[:i] {
		if url := questions[i].page; url != "" && questions[j].page == url {
			return &questions[j]
		}
	}
	return nil
}

// A backoff waits longer each time.
type backoff struct {
	wait time.Duration
}

func (b *backoff) pause(ctx context.Context) error {
	wait := b.wait
	b.wait = min(2*wait, maxRetryWait)
	return pause(ctx, wait)
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// needsInput reports whether a result needs input, or is a task, and indexes it.
func needsInput(req *mcp.Request, r *mcp.Result, err error) bool {
	if err != nil || r.IsZero() || !mcp.MayNeedInput(req.Method) {
		return false
	}
	r.Value = r.Indexed()
	kind := r.Type()
	return kind == mcp.InputRequired || kind == mcp.TaskCreated && req.Meta.TakesTasks
}

// An inputRequest is one question of a result that needs input.
type inputRequest struct {
	key    string // as it came, with its quotes
	req    mcp.Request
	page   string // of an elicitation by URL: that URL
	answer []byte
	err    error
}

// put asks the client one question.
func (c *caller) put(ctx context.Context, q *inputRequest) error {
	answer, err := c.Ask(ctx, &q.req)
	if err == nil && !answer.IsObject() {
		err = errors.New("the client's answer is no object")
	}
	q.answer = answer.Raw()
	return err
}

// joinAnswers returns the inputResponses that answer all questions.
func joinAnswers(method string, questions []inputRequest) ([]byte, error) {
	if q := unanswered(questions); q != nil {
		return nil, &mcp.CallError{
			Method: method, Kind: mcp.Cancelled, Outcome: mcp.Answered,
			// The client's own error is not the answer to its call.
			Err:    fmt.Errorf("%s: %v", q.req.Method, q.err),
			Public: fmt.Sprintf("the client did not answer what the server asked (%s)", q.req.Method),
		}
	}
	responses := []byte{'{'}
	for i := range questions {
		if i > 0 {
			responses = append(responses, ',')
		}
		responses = append(append(responses, questions[i].key...), ':')
		responses = append(responses, questions[i].answer...)
	}
	return append(responses, '}'), nil
}

// unanswered returns the question that failed, nil if none did. Others that were
// taken back because of it come second.
func unanswered(questions []inputRequest) *inputRequest {
	var first *inputRequest
	for i := range questions {
		q := &questions[i]
		if q.err != nil && (first == nil || errors.Is(first.err, context.Canceled)) {
			first = q
		}
	}
	return first
}

// readQuestions returns the questions of a result, nil if it has none but a
// state.
func readQuestions(method string, result *mcp.Result) ([]inputRequest, error) {
	requests, state := member(&result.Value, "inputRequests"), member(&result.Value, "requestState")
	_, isString := jsonrpc.Unquote(state.Raw())
	switch {
	case !state.IsZero() && !isString, !requests.IsZero() && !requests.IsObject(), requests.Len() == 0 && state.IsZero():
		return nil, badInput(method, "the server's result needs input, and does not say which")
	}
	return readInputRequests(method, &requests)
}

// member returns a member of an object, absent if it is null: languages write that
// which have no absent ones.
func member(object *jsonrpc.Value, name string) jsonrpc.Value {
	if v := object.Get(name); !v.IsNull() {
		return v
	}
	return jsonrpc.Value{}
}

// readInputRequests returns the questions in inputRequests.
func readInputRequests(method string, requests *jsonrpc.Value) ([]inputRequest, error) {
	if requests.Len() > MaxInputRequests {
		return nil, &mcp.CallError{
			Method: method, Kind: mcp.LimitExceeded, Limit: "MaxInputRequests", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the server asks %d questions at once", requests.Len()),
		}
	}
	var questions []inputRequest
	for key, raw := range requests.RawMembers() {
		request := jsonrpc.Trusted(raw)
		name, ok := request.LookupString("method")
		if !ok {
			return nil, badInput(method, "a question of the server has no method")
		}
		params := member(&request, "params")
		if !params.IsZero() && !params.IsObject() {
			return nil, badInput(method, "the params of a question of the server are no object")
		}
		q := inputRequest{key: string(key), req: mcp.Request{Method: name, Params: params}}
		q.page = visit.URL(&q.req)
		questions = append(questions, q)
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
