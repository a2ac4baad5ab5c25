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
	asked    int // how often one was put
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
	back   bool               // the server wants no answer, as it seems
	sent   bool               // the server has been sent the answer
}

// update puts to the client what the task asks now, and takes back what it asks no
// longer.
func (qs *taskQuestions) update(ctx context.Context, t *taskWait) error {
	if !t.asksUnsaid() {
		asked, err := readTaskQuestions(t)
		if err != nil {
			return err
		}
		qs.takeBack(asked)
		if err := qs.putNew(ctx, t, asked); err != nil {
			return err
		}
	}
	return qs.send(ctx, t)
}

// asksUnsaid reports whether the task needs input and does not say which, as when that
// was made known for which there is no room.
func (t *taskWait) asksUnsaid() bool {
	_, said := t.state.Lookup("inputRequests")
	return t.task.Status == mcp.InputRequired && !said
}

// readTaskQuestions returns what the state of a task asks.
func readTaskQuestions(t *taskWait) ([]inputRequest, error) {
	if t.task.Status != mcp.InputRequired {
		return nil, nil
	}
	requests := t.state.Get("inputRequests")
	if !requests.IsObject() {
		return nil, badInput(t.d.req.Method, "the server's task needs input, and does not say which")
	}
	return readInputRequests(t.d.req.Method, &requests)
}

// takeBack takes back what is not asked any more. It may be asked once more: servers
// are consistent only after a while (extension tasks, Task Update Requests).
func (qs *taskQuestions) takeBack(asked []inputRequest) {
	for key, q := range qs.seen {
		q.back = !slices.ContainsFunc(asked, func(r inputRequest) bool { return r.key == key })
		if !q.back || q.sent || q.answer != nil {
			continue
		}
		q.cancel()
		delete(qs.seen, key)
	}
}

// putNew puts the questions to the client that are new. One for a page that its user is
// being asked to open waits for the answer, which is its own as well.
func (qs *taskQuestions) putNew(ctx context.Context, t *taskWait, asked []inputRequest) error {
	asked = slices.DeleteFunc(asked, func(r inputRequest) bool { return qs.seen[r.key] != nil || qs.asks(r.page) })
	t.d.pages.answer(asked)
	capabilities := t.d.c.session.capabilitiesOfClient()
	for i := range asked {
		if req := &asked[i].req; asked[i].answer == nil && !mcp.CanAsk(capabilities, req) {
			return mcp.MissingCapability(req)
		}
	}
	for i := range asked {
		if asked[i].answer == nil && twin(asked, i) != nil {
			continue
		}
		if err := qs.put(ctx, t, &taskQuestion{inputRequest: asked[i]}); err != nil {
			return err
		}
	}
	return nil
}

// asks reports whether the user is being asked to open a page.
func (qs *taskQuestions) asks(page string) bool {
	for _, q := range qs.seen {
		if page != "" && q.page == page && q.answer == nil {
			return true
		}
	}
	return false
}

// put puts a question to the client, unless it has been answered before.
func (qs *taskQuestions) put(ctx context.Context, t *taskWait, q *taskQuestion) error {
	if qs.asked >= MaxTaskQuestions {
		return &mcp.CallError{
			Method: t.d.req.Method, Kind: mcp.LimitExceeded, Limit: "MaxTaskQuestions", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the server's task has asked %d questions", qs.asked),
		}
	}
	qs.asked++
	if qs.seen == nil {
		qs.seen = make(map[string]*taskQuestion)
	}
	qs.seen[q.key] = q
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

// take takes up the client's answer, which update sends.
func (qs *taskQuestions) take(t *taskWait, a answeredQuestion) error {
	t.clock.resume()
	if a.back {
		return nil
	}
	a.inputRequest.answer, a.inputRequest.err = a.answer, a.err
	if a.err != nil {
		_, err := joinAnswers(t.d.req.Method, []inputRequest{a.inputRequest})
		return err
	}
	t.d.pages.keep([]inputRequest{a.inputRequest})
	return nil
}

// send gives the answers to the server when all are there: not all servers take
// them one by one.
func (qs *taskQuestions) send(ctx context.Context, t *taskWait) error {
	var answers []inputRequest
	for _, q := range qs.seen {
		switch {
		case q.back || q.sent:
		case q.answer == nil:
			return nil
		default:
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
		if err = nil; qs.stillWanted(ctx, t, answers) {
			return t.refused(mcp.MethodUpdateTask, refused)
		}
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
		q := qs.seen[answers[i].key]
		q.sent, q.inputRequest = true, inputRequest{key: q.key} // the rest is of no use any more
	}
	return nil
}

// stillWanted reports whether a task still waits for answers that its server has refused.
// It may have ended meanwhile, or have had them although the server's word of that got
// lost.
func (qs *taskQuestions) stillWanted(ctx context.Context, t *taskWait, answers []inputRequest) bool {
	if t.poll(ctx) != nil {
		return true
	}
	asked, err := readTaskQuestions(t)
	return err != nil || slices.ContainsFunc(asked, func(r inputRequest) bool {
		return slices.ContainsFunc(answers, func(a inputRequest) bool { return a.key == r.key })
	})
}
