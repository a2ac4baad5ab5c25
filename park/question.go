package park

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Limits of the questions of one call that are open.
const (
	MaxQuestions     = 256
	MaxQuestionBytes = 1 << 20 // a single larger one is put
)

// A question is open until it is answered or nobody waits for the answer.
type question struct {
	req    *mcp.Request
	key    string
	answer chan mcp.Result // has room for the one answer

	put      bool // the client has been asked it; guarded by call.mu
	answered bool // guarded by call.mu
}

// Ask implements [mcp.Caller]: it has the exchange end with the question and
// waits for a retry with the answer.
func (c *call) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if ctx.Err() != nil {
		return mcp.Result{}, context.Cause(ctx)
	}
	q := &question{req: req, answer: make(chan mcp.Result, 1)}
	if err := c.open(q); err != nil {
		return mcp.Result{}, err
	}
	var err error
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.ctx.Done():
		err = context.Cause(c.ctx)
	}
	if c.withdraw(q) {
		return <-q.answer, nil
	}
	return mcp.Result{}, err
}

// open takes up a question, if the client may be asked it.
func (c *call) open(q *question) error {
	c.mu.Lock()
	capabilities := c.capabilities
	c.mu.Unlock()
	if !mcp.CanAsk(capabilities, q.req) {
		return mcp.ErrCannotAsk
	}
	if err := c.lot.count(c); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.gone {
		return mcp.ErrCannotAsk
	}
	if err := c.roomFor(q); err != nil {
		return err
	}
	c.asked++
	q.key = "q" + strconv.Itoa(c.asked)
	c.questions = append(c.questions, q)
	c.signal()
	return nil
}

// roomFor reports a limit that one more question would break. c.mu is held.
func (c *call) roomFor(q *question) error {
	size := len(q.req.Params.Raw())
	for _, other := range c.questions {
		size += len(other.req.Params.Raw())
	}
	limit := ""
	switch {
	case len(c.questions) >= MaxQuestions:
		limit = "MaxQuestions"
	case len(c.questions) > 0 && size > MaxQuestionBytes:
		limit = "MaxQuestionBytes"
	default:
		return nil
	}
	return &mcp.CallError{
		Method: q.req.Method, Kind: mcp.LimitExceeded, Limit: limit, Outcome: mcp.NotSent,
		Public: fmt.Sprintf("%d questions of the call are open", len(c.questions)),
	}
}

// withdraw takes a question back, and reports whether it has been answered.
func (c *call) withdraw(q *question) (answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions = slices.DeleteFunc(c.questions, func(other *question) bool { return other == q })
	return q.answered
}

// answer gives the answers in params to those who asked. Questions without one
// that is of use stay open. c.mu is held.
func (c *call) answer(params *jsonrpc.Value) {
	responses := params.Get("inputResponses")
	responses = responses.Indexed()
	c.questions = slices.DeleteFunc(c.questions, func(q *question) bool {
		raw, ok := responses.Lookup(q.key)
		// A key that the client has not been told is a guess.
		if !q.put || !ok || raw[0] != '{' {
			return false
		}
		q.answered = true
		// The memory of the retry is not the answer's.
		q.answer <- mcp.RawResult(bytes.Clone(raw))
		return true
	})
}

// inputRequired returns the result that puts questions to the client.
func inputRequired(questions []*question, state string) []byte {
	dst := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range questions {
		q.put = true
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonrpc.AppendString(dst, q.key), `:{"method":`...)
		dst = jsonrpc.AppendString(dst, q.req.Method)
		params := forModernClient(q.req)
		dst = append(params.AppendTo(append(dst, `,"params":`...)), '}')
	}
	dst = append(dst, `},"requestState":`...)
	return append(jsonrpc.AppendString(dst, state), '}')
}

// forModernClient returns the params of a question as a modern client gets them:
// it has no elicitationId, since nothing tells it of the end of an elicitation,
// and it always has params, without which the official Go SDK's client fails
// (v1.8.0), although roots/list needs none.
func forModernClient(q *mcp.Request) jsonrpc.Value {
	if q.Params.IsZero() {
		return jsonrpc.Trusted([]byte("{}"))
	}
	if q.Method != mcp.MethodElicit {
		return q.Params
	}
	if _, ok := q.Params.Lookup("elicitationId"); !ok {
		return q.Params
	}
	return jsonrpc.Edited(&q.Params, jsonrpc.Edit{Name: "elicitationId"})
}
