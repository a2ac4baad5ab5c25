package streamable

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// batch serves a JSON-RPC batch, which one legacy revision has: its items
// concurrently, their answers as one array or, if something is sent before
// them, as events of one stream.
func (p *post) batch() *reject {
	unsupported := jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
		"Invalid Request: batches are part of revision %s only, within a session", mcp.Revision20250326)
	items, err := jsonrpc.SplitBatch(p.body)
	if err != nil {
		return badRequest(jsonrpc.ID{}, jsonrpc.ToWire(err))
	}
	if !p.hasSession() {
		return badRequest(jsonrpc.ID{}, unsupported)
	}
	s, rej := p.h.session(p.out.r, jsonrpc.ID{})
	if rej != nil {
		return rej
	}
	p.session = s
	if !s.Revision().HasBatches() {
		return badRequest(jsonrpc.ID{}, unsupported)
	}
	atOnce, rej := p.enterBatch(len(items))
	if rej != nil {
		return rej
	}
	b := batch{h: p.h, session: s, atOnce: atOnce, ctx: context.WithoutCancel(p.out.r.Context())}
	if !p.accept.stream {
		b.reply = newExchange(p.out, p.accept, sessionOutlet{p.h, s})
		b.serve(items)
		return nil
	}
	r := newLegacyReply(b.ctx, p)
	b.reply = r
	go func() {
		defer r.ended()
		b.serve(items)
	}()
	r.deliver()
	return nil
}

// A batchReply is the reply to a batch.
type batchReply interface {
	session.Outlet
	streaming() bool
	send(frame []byte) error
	finish(status int, frame []byte)
}

// A batch is being served.
type batch struct {
	h       *Handler
	session *session.Held
	atOnce  int // how many items are served at a time
	reply   batchReply
	ctx     context.Context // of this one POST

	asks atomic.Bool // there is an item that is, or was to be, a request

	mu      sync.Mutex
	answers [][]byte // guarded by mu
}

func (b *batch) serve(items [][]byte) {
	slots := make(chan struct{}, b.atOnce)
	var running sync.WaitGroup
	for _, item := range items {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if answer := b.item(item); answer != nil {
				b.mu.Lock()
				b.answers = append(b.answers, answer)
				b.mu.Unlock()
			}
		})
	}
	running.Wait()
	b.finish()
}

// item serves one message of the batch and returns its answer, nil for none.
func (b *batch) item(item []byte) []byte {
	var m jsonrpc.Message
	err := jsonrpc.Scan(item, &m)
	if m.Kind == jsonrpc.Request || m.Kind == jsonrpc.Invalid {
		b.asks.Store(true)
	}
	if err != nil {
		if m.Kind == jsonrpc.Response {
			m.ID = jsonrpc.ID{} // that of a request of ours: the client has others
		}
		return appendReply(nil, m.ID, mcp.Result{}, err)
	}
	switch m.Kind {
	case jsonrpc.Response:
		b.session.Answered(&m)
		return nil
	case jsonrpc.Notification:
		b.session.Notified(b.ctx, &m)
		return nil
	}
	if mcp.MethodName(m.Method) == mcp.MethodInitialize {
		return appendReply(nil, m.ID, mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Invalid Request: initialize must not be part of a batch"))
	}
	result, err := b.h.handleLegacy(b.ctx, b.session, &m, b.reply)
	return appendReply(nil, m.ID, result, err)
}

// finish sends the answers: as single events if the reply has become a stream,
// else as an array. Responses and notifications that are not accepted are refused by
// the status (2025-03-26, transports, Sending Messages).
func (b *batch) finish() {
	if len(b.answers) == 0 {
		b.reply.finish(http.StatusAccepted, nil)
		return
	}
	if !b.asks.Load() {
		b.reply.finish(http.StatusBadRequest, b.answers[0])
		return
	}
	if b.reply.streaming() {
		for _, answer := range b.answers[1:] {
			// A client that has gone needs no telling.
			_ = b.reply.send(answer)
		}
		b.reply.finish(http.StatusOK, b.answers[0])
		return
	}
	array := []byte{'['}
	for i, answer := range b.answers {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, answer...)
	}
	b.reply.finish(http.StatusOK, append(array, ']'))
}
