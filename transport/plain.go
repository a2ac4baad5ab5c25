package transport

import (
	"context"
	"sync"

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

// AnswerPlainBatch serves a JSON-RPC batch (JSON-RPC 2.0, section 6): its items
// concurrently, but not more than limit at a time, each succeeding or failing
// alone. It appends the array of answers to dst, or nothing if there are none.
func AnswerPlainBatch(ctx context.Context, handler mcp.Handler, data []byte, caller mcp.Caller, limit int, dst []byte) []byte {
	items, err := jsonrpc.SplitBatch(data)
	if err != nil {
		return jsonrpc.AppendNullError(dst, jsonrpc.ToWire(err))
	}
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
	open := byte('[')
	for _, answer := range answers {
		if len(answer) == 0 {
			continue
		}
		dst = append(append(dst, open), answer...)
		open = ','
	}
	if open == '[' {
		return dst
	}
	return append(dst, ']')
}

func answerPlainItem(ctx context.Context, handler mcp.Handler, item []byte, caller mcp.Caller) []byte {
	var m jsonrpc.Message
	if err := jsonrpc.Scan(item, &m); err != nil {
		if m.ID.IsZero() {
			return jsonrpc.AppendNullError(nil, jsonrpc.ToWire(err))
		}
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.ToWire(err))
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
	if !s.workers.run(func() {
		s.sendNonEmpty(func(dst []byte) []byte { return AnswerPlain(s.ctx, s.handler, m, outletCaller{s}, dst) })
	}) && m.Kind == jsonrpc.Request {
		s.refuse(m.ID, s.tooMany())
	}
}

func (s *server) plainBatch(data []byte) {
	if !s.workers.run(func() {
		s.sendNonEmpty(func(dst []byte) []byte {
			return AnswerPlainBatch(s.ctx, s.handler, data, outletCaller{s}, s.opts.MaxInFlight, dst)
		})
	}) {
		s.refuse(jsonrpc.ID{}, s.tooMany())
	}
}

func (s *server) sendNonEmpty(build func(dst []byte) []byte) {
	if frame := build(nil); len(frame) > 0 {
		s.send(func(dst []byte) []byte { return append(dst, frame...) })
	}
}
