package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mcpsplice/mcpsplice/internal/visit"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A question is what one result asks, under several keys if all want the same page.
type question struct {
	keys   []string
	req    mcp.Request
	page   string // URL that the user is to open; empty if it asks for something else
	answer mcp.JSON
}

// answer readies the request that answers a result which needs input.
func (d *dialogue) answer(ctx context.Context, result *mcp.Result) error {
	var need mcp.InputRequiredResult
	if err := result.Decode(&need); err != nil {
		return badReply(d.req.Method, err)
	}
	state, _ := result.Lookup("requestState")
	if string(state) == "null" {
		state = nil // and not there
	}
	if state == nil && len(need.InputRequests) == 0 {
		return badReply(d.req.Method, errors.New("the result needs input, and does not say which"))
	}
	questions, err := d.questions(&need)
	if err != nil {
		return err
	}
	if err := d.respond(ctx, questions); err != nil {
		return err
	}
	responses, err := joinAnswers(questions)
	if err != nil {
		return err
	}
	d.next.Params = jsonrpc.Edited(&d.req.Params,
		jsonrpc.Edit{Name: "inputResponses", Value: responses}, jsonrpc.Edit{Name: "requestState", Value: state})
	return nil
}

// questions returns what a result asks, with the answers that were given before.
func (d *dialogue) questions(need *mcp.InputRequiredResult) ([]*question, error) {
	if n := len(need.InputRequests); n > MaxInputRequests {
		return nil, &mcp.CallError{
			Method: d.req.Method, Kind: mcp.LimitExceeded, Limit: "MaxInputRequests", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the server asks %d questions at once", n),
		}
	}
	var all []*question
	byPage := make(map[string]*question)
	for key, asked := range need.InputRequests {
		q := &question{keys: []string{key}, req: mcp.Request{Method: asked.Method}}
		if asked.Params != nil && string(asked.Params) != "null" {
			q.req.Params = jsonrpc.Trusted(asked.Params)
		}
		q.page = visit.URL(&q.req)
		if same := byPage[q.page]; same != nil {
			same.keys = append(same.keys, key)
			continue
		}
		if q.page != "" {
			byPage[q.page] = q
		}
		all = append(all, q)
	}
	d.visits.Retain(slices.Collect(maps.Keys(byPage)))
	for _, q := range all {
		q.answer = d.visits.Answer(q.page)
	}
	return all, nil
}

// respond has the questions answered that have not been answered before. If there are
// none, it waits.
func (d *dialogue) respond(ctx context.Context, questions []*question) error {
	unanswered := slices.DeleteFunc(slices.Clone(questions), func(q *question) bool { return q.answer != nil })
	if len(questions) > 0 && len(unanswered) == 0 {
		return d.waitForPages(ctx, nil)
	}
	if err := d.count(nil); err != nil {
		return err
	}
	if len(questions) > 0 {
		return d.ask(ctx, unanswered)
	}
	waiting, done := d.client.untilClosed(ctx)
	defer done()
	if sleep(waiting, d.idle.grow(d.caller.clock.most(maxRetryWait)), nil) {
		return nil
	}
	return d.ended(ctx, nil)
}

// ask has questions answered, all at once.
func (d *dialogue) ask(outer context.Context, questions []*question) error {
	var (
		asking  sync.WaitGroup
		mu      sync.Mutex
		failure error
	)
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	for _, q := range questions {
		asking.Go(func() {
			result, err := d.caller.Ask(ctx, &q.req)
			if err == nil {
				q.answer = result.Raw()
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if failure == nil {
				failure = fmt.Errorf("answering %s: %w", q.req.Method, opaque{err})
			}
			cancel() // the other answers would be of no use
		})
	}
	asking.Wait()
	switch ended := d.ended(outer, nil); {
	case failure == nil:
	case ended != nil:
		return ended
	case errors.Is(failure, mcp.ErrCannotAsk):
		return &mcp.CallError{Method: d.req.Method, Kind: mcp.Unsupported, Outcome: mcp.Answered, Err: failure}
	default:
		return &mcp.CallError{Method: d.req.Method, Kind: mcp.Cancelled, Outcome: mcp.Answered, Err: failure}
	}
	d.visits.Asked()
	for _, q := range questions {
		d.visits.Keep(q.page, q.answer)
	}
	return nil
}

// joinAnswers returns the inputResponses that answer all questions, nil if there are
// none.
func joinAnswers(questions []*question) (mcp.JSON, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	responses := make(mcp.Object)
	for _, q := range questions {
		for _, key := range q.keys {
			responses[key] = q.answer
		}
	}
	return mcp.NewJSON(responses)
}
