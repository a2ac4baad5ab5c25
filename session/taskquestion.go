package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// taskQuestions are what a task has asked. Each has a key of its own for the task's
// whole life, so that none is put to the client twice (extension tasks, Task Update
// Requests).
type taskQuestions struct {
	seen     map[string]*taskQuestion
	answered chan answeredQuestion
}

// An answeredQuestion comes from who has put it to the client.
type answeredQuestion struct {
	*taskQuestion
	answer []byte
	err    error
}

// A taskQuestion is one question of a task.
type taskQuestion struct {
	inputRequest
	cancel context.CancelFunc // takes it back from the client; nil if it was not put to it
	over   bool               // the server wants no answer, or has been sent one
}

// update puts to the client what the task asks now, and takes back what it asks no
// longer.
func (qs *taskQuestions) update(ctx context.Context, t *taskWait) error {
	var asked []inputRequest
	if t.task.Status == mcp.InputRequired {
		var err error
		if asked, err = readTaskQuestions(t); err != nil {
			return err
		}
	}
	for key, q := range qs.seen {
		if !slices.ContainsFunc(asked, func(r inputRequest) bool { return string(r.key) == key }) {
			q.over = true
			if q.cancel != nil {
				q.cancel()
			}
		}
	}
	asked = slices.DeleteFunc(asked, func(r inputRequest) bool { return qs.seen[string(r.key)] != nil })
	t.d.pages.answer(asked)
	capabilities := t.d.c.session.capabilitiesOfClient()
	for i := range asked {
		if req := &asked[i].req; asked[i].answer == nil && !mcp.CanAsk(capabilities, req) {
			return mcp.MissingCapability(req)
		}
	}
	for i := range asked {
		if err := qs.put(ctx, t, &taskQuestion{inputRequest: asked[i]}); err != nil {
			return err
		}
	}
	return qs.send(ctx, t)
}

// readTaskQuestions returns what the state of a task asks; nothing if it came with
// the task, which has no room for that.
func readTaskQuestions(t *taskWait) ([]inputRequest, error) {
	requests := t.state.Get("inputRequests")
	if requests.IsZero() {
		return nil, nil
	}
	if !requests.IsObject() {
		return nil, badInput(t.d.req.Method, "the server's task needs input, and does not say which")
	}
	return readInputRequests(t.d.req.Method, &requests)
}

// put puts a question to the client, unless it has been answered before.
func (qs *taskQuestions) put(ctx context.Context, t *taskWait, q *taskQuestion) error {
	if len(qs.seen) >= MaxTaskQuestions {
		return &mcp.CallError{
			Method: t.d.req.Method, Kind: mcp.LimitExceeded, Limit: "MaxTaskQuestions", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the server's task has asked %d questions", len(qs.seen)),
		}
	}
	if qs.seen == nil {
		qs.seen = make(map[string]*taskQuestion)
	}
	qs.seen[string(q.key)] = q
	if q.answer != nil {
		return nil
	}
	t.d.pages.name(&q.inputRequest)
	ctx, q.cancel = context.WithCancel(ctx)
	t.clock.pause()
	asked := q.inputRequest
	t.running.Go(func() {
		defer q.cancel()
		err := t.d.c.put(ctx, &asked)
		select {
		case qs.answered <- answeredQuestion{q, asked.answer, err}:
		case <-t.clock.ctx.Done(): // nobody reads any more
		}
	})
	return nil
}

// take takes up the client's answer.
func (qs *taskQuestions) take(ctx context.Context, t *taskWait, a answeredQuestion) error {
	t.clock.resume()
	if a.over {
		return nil // taken back
	}
	a.inputRequest.answer, a.inputRequest.err = a.answer, a.err
	if a.err != nil {
		_, err := joinAnswers(t.d.req.Method, []inputRequest{a.inputRequest})
		return err
	}
	t.d.pages.keep([]inputRequest{a.inputRequest})
	return qs.send(ctx, t)
}

// send gives the answers to the server when all are there: not all servers take
// them one by one.
func (qs *taskQuestions) send(ctx context.Context, t *taskWait) error {
	var answers []inputRequest
	for _, q := range qs.seen {
		if !q.over && q.answer == nil {
			return nil
		}
		if !q.over {
			answers = append(answers, q.inputRequest)
		}
	}
	if len(answers) == 0 {
		return nil
	}
	responses, err := joinAnswers(t.d.req.Method, answers)
	if err != nil {
		return err
	}
	_, err = t.handle(ctx, mcp.MethodUpdateTask, jsonrpc.Edit{Name: "inputResponses", Value: responses})
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && jsonrpc.FromPeer(err) {
		return t.refused(mcp.MethodUpdateTask, refused)
	}
	if err != nil && ctx.Err() == nil {
		if t.failures++; t.failures < MaxTaskPollFailures {
			return nil // they are sent again when the task has been looked at
		}
	}
	if err != nil {
		return err
	}
	for i := range answers {
		qs.seen[string(answers[i].key)].over = true
	}
	return nil
}
