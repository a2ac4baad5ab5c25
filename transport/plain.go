package transport

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// PlainRequest returns a JSON-RPC request or notification for a handler that is
// served without MCP.
func PlainRequest(m *jsonrpc.Message) *mcp.Request {
	return &mcp.Request{
		Method: mcp.MethodName(m.Method), Params: m.Body,
		Notification: m.Kind == jsonrpc.Notification,
		Meta:         mcp.Metadata{ProgressToken: mcp.ReadProgressToken(&m.Meta)},
	}
}

// AnswerPlain serves one message without MCP and appends its answer to dst:
// nothing for a notification or a response.
func AnswerPlain(ctx context.Context, handler mcp.Handler, m *jsonrpc.Message, caller mcp.Caller, dst []byte) []byte {
	if m.Kind == jsonrpc.Response {
		return dst
	}
	result, err := handler.Handle(ctx, PlainRequest(m), caller)
	if m.Kind == jsonrpc.Notification {
		return dst
	}
	return appendReply(dst, m.ID, result, err)
}

// AnswerPlainBatch serves the items of a JSON-RPC batch (JSON-RPC 2.0, section 6), at
// most limit of them at a time, each succeeding or failing alone. It returns the array of
// their answers, nil if there are none. It may be called concurrently.
func AnswerPlainBatch(ctx context.Context, handler mcp.Handler, items [][]byte, caller mcp.Caller, limit int) []byte {
	answers := make([][]byte, len(items))
	slots := make(chan struct{}, max(limit, 1))
	var running sync.WaitGroup
	for i, item := range items {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			answers[i] = answerPlainItem(ctx, handler, item, caller)
		})
	}
	running.Wait()
	return joinAnswers(answers)
}

// joinAnswers returns the array of those answers that are not empty, nil if all
// are.
func joinAnswers(answers [][]byte) []byte {
	var array []byte
	for _, answer := range answers {
		if len(answer) == 0 {
			continue
		}
		open := byte('[')
		if array != nil {
			open = ','
		}
		array = append(append(array, open), answer...)
	}
	if array == nil {
		return nil
	}
	return append(array, ']')
}

func answerPlainItem(ctx context.Context, handler mcp.Handler, item []byte, caller mcp.Caller) []byte {
	var m jsonrpc.Message
	if err := jsonrpc.Scan(item, &m); err != nil {
		id := readableID(&m)
		if id.IsZero() || m.Kind == jsonrpc.Response { // whose id is none of a request of the client's
			return jsonrpc.AppendNullError(nil, jsonrpc.ToWire(err))
		}
		return jsonrpc.AppendError(nil, id, jsonrpc.ToWire(err))
	}
	return AnswerPlain(ctx, handler, &m, caller, nil)
}

// An outletCaller sends notifications as they are, and asks nothing.
type outletCaller struct{ out *server }

// Notify implements [mcp.Caller].
func (c outletCaller) Notify(ctx context.Context, n *mcp.Notification) error {
	return c.out.Send(ctx, jsonrpc.AppendNotification(nil, n.Method, &n.Params))
}

// Ask implements [mcp.Caller].
func (outletCaller) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}

func (s *server) plain(m *jsonrpc.Message) {
	if m.Kind == jsonrpc.Response {
		return
	}
	if err := s.workers.run(len(m.Body.Raw()), func() {
		s.sendNonEmpty(AnswerPlain(s.ctx, s.handler, m, outletCaller{s}, nil))
	}); err != nil && m.Kind == jsonrpc.Request {
		s.refuse(m.ID, jsonrpc.ToWire(err))
	}
}

// plainBatch serves the items of a batch as the requests that they are, and
// answers when the last has ended.
func (s *server) plainBatch(items [][]byte) {
	answers := make([][]byte, len(items))
	var left atomic.Int32
	left.Store(int32(len(items)))
	ended := func() {
		if left.Add(-1) == 0 {
			s.sendNonEmpty(joinAnswers(answers))
		}
	}
	for i, item := range items {
		if err := s.workers.run(len(item), func() {
			answers[i] = answerPlainItem(s.ctx, s.handler, item, outletCaller{s})
			ended()
		}); err != nil {
			answers[i] = plainRefusal(item, err)
			ended()
		}
	}
}

// plainRefusal answers an item of a batch that is not taken.
func plainRefusal(item []byte, err error) []byte {
	var m jsonrpc.Message
	if jsonrpc.Scan(item, &m) != nil || m.Kind != jsonrpc.Request {
		return nil
	}
	return jsonrpc.AppendError(nil, m.ID, jsonrpc.ToWire(err))
}

func (s *server) sendNonEmpty(frame []byte) {
	if len(frame) > 0 {
		s.send(func(dst []byte) []byte { return append(dst, frame...) })
	}
}
