package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// message takes one message that has been scanned, and reports whether the caller
// is to read on. Data is its memory, which can be used again once it has been
// served; nil for a message of a batch.
func (s *server) message(m *jsonrpc.Message, data []byte) bool {
	switch {
	case s.opts.Plain:
		s.plain(m)
	case m.Kind == jsonrpc.Response:
		if !s.session.Answered(m) {
			s.log.Debug("a response answers nothing", "id", m.ID.String())
		}
	case m.Kind == jsonrpc.Notification:
		s.notification(m)
	case s.isModern(m):
		return s.modernRequest(m, data)
	case s.opts.Era == mcp.Modern:
		s.refuse(m.ID, s.legacyRefusal(m))
	default:
		return s.legacyRequest(m, data)
	}
	return true
}

// isModern reports whether a request carries its own metadata, or must be told
// that it should.
func (s *server) isModern(m *jsonrpc.Message) bool {
	if s.opts.Era == mcp.Legacy {
		return false
	}
	return mcp.HasReserved(&m.Meta) || mcp.MethodName(m.Method) == mcp.MethodDiscover
}

// legacyRefusal is the answer of a listener for modern clients only.
func (s *server) legacyRefusal(m *jsonrpc.Message) *jsonrpc.Error {
	if mcp.MethodName(m.Method) == mcp.MethodInitialize {
		requested, _ := m.Body.LookupString("protocolVersion")
		return mcp.UnsupportedRevision(mcp.Revision(requested), Served(mcp.Modern))
	}
	_, err := mcp.ReadMetadata(&m.Meta)
	return err
}

// notification serves a notification beside the read loop, so that it cannot
// hold it up, except a cancellation, which overtakes what waits.
func (s *server) notification(m *jsonrpc.Message) {
	method := mcp.MethodName(m.Method)
	if method == mcp.NotificationCancelled {
		s.cancelled(m)
		return
	}
	f := func() { s.session.Notified(s.ctx, m) }
	if method == mcp.NotificationInitialized {
		s.initialized(f)
		return
	}
	if err := s.notifications.run(len(m.Body.Raw()), s.afterInitialize(f)); err != nil {
		s.log.Warn("a notification was dropped", "method", method, "err", err)
	}
}

// initialized serves the end of the handshake. Requests that follow it wait, for a
// bounded time, until the session listens: what they change is to reach the client.
func (s *server) initialized(notified func()) {
	listening := make(chan struct{})
	if err := s.notifications.run(0, s.afterInitialize(func() {
		defer close(listening)
		s.session.SetOutlet(s)
		notified()
	})); err != nil {
		s.log.Warn("a notification was dropped", "method", mcp.NotificationInitialized, "err", err)
		return
	}
	s.initializing = listening
}

// cancelled ends the request that a cancellation names.
func (s *server) cancelled(m *jsonrpc.Message) {
	raw, _ := m.Body.Lookup("requestId")
	id, ok := jsonrpc.RawID(raw)
	if !ok {
		s.log.Debug("a cancellation names no request")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.serving[id.Key()]; r != nil {
		r.cancel(session.ErrCancelled)
	}
}

// legacyRequest serves a request of the session. Those that came with initialize
// wait until it has been answered.
func (s *server) legacyRequest(m *jsonrpc.Message, data []byte) bool {
	switch mcp.MethodName(m.Method) {
	case mcp.MethodPing:
		s.answerLegacy(s.ctx, m, s.send)
		return true
	case mcp.MethodInitialize:
		s.initialize(m)
		return true
	}
	return s.serve(m, false, data, func(ctx context.Context, send sender) {
		s.answerLegacy(ctx, m, send)
		s.recycle(m, data)
	})
}

// A sender sends one message.
type sender func(build func(dst []byte) []byte)

// initialize answers an initialize request, beside the read loop, because the
// handler may have to start a server first.
func (s *server) initialize(m *jsonrpc.Message) {
	answered := make(chan struct{})
	if !s.workers.beside(s.afterInitialize(func() {
		defer close(answered)
		s.answerLegacy(s.ctx, m, s.send)
	})) {
		s.refuse(m.ID, jsonrpc.ToWire(errClosed))
		return
	}
	s.negotiated, s.initializing = answered, answered
}

// afterInitialize returns f as a function that waits for the handshake, if that is
// being made.
func (s *server) afterInitialize(f func()) func() {
	made := s.initializing
	if made == nil {
		return f
	}
	select {
	case <-made:
		s.initializing = nil
		return f
	default:
	}
	return func() {
		<-made
		f()
	}
}

func (s *server) answerLegacy(ctx context.Context, m *jsonrpc.Message, send sender) {
	result, err := s.session.HandleOwned(ctx, m, s)
	if errors.Is(err, session.ErrCancelled) {
		return
	}
	send(func(dst []byte) []byte { return appendReply(dst, m.ID, result, err) })
}

// modernRequest serves a request that carries its own metadata.
func (s *server) modernRequest(m *jsonrpc.Message, data []byte) bool {
	req, refusal := ModernRequest(m, s.opts.Era)
	if refusal != nil {
		s.refuse(m.ID, refusal)
		return true
	}
	req.Meta.Principal, req.Meta.Grant = s.opts.Principal, s.opts.Grant
	req.Meta.Session = s.id
	return s.serve(m, req.Method == mcp.MethodListen, data, func(ctx context.Context, send sender) {
		if caller := s.answerModern(ctx, req, m.ID, send); !caller.Kept() {
			s.recycle(m, data)
		}
	})
}

func (s *server) answerModern(ctx context.Context, req *mcp.Request, id jsonrpc.ID, send sender) *ModernCaller {
	caller := &ModernCaller{Out: s, Request: req, ID: id}
	result, err := s.lot.Handle(ctx, req, caller)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, session.ErrCancelled):
		return caller
	case errors.Is(cause, errDraining):
		result, err = mcp.Result{}, nil
	}
	reply := NewModernReply(req, id, result, err, s.opts.Era)
	send(reply.AppendTo)
	if errors.Is(context.Cause(ctx), errDraining) {
		// "A server MUST send notifications/cancelled referencing a
		// subscriptions/listen request ID when it tears down that subscription
		// stream" (2026-07-28, patterns/cancellation); the response before it
		// says that it ended well.
		params := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "requestId", Value: id.Raw()})
		send(func(dst []byte) []byte { return jsonrpc.AppendNotification(dst, mcp.NotificationCancelled, &params) })
	}
	return caller
}

// serve has f serve a request whose memory is data: beside the others if it is a
// listen call, by the reader itself if requests are served fast, else when its
// turn comes. From now on the client can cancel it. None is taken once Serve is to end,
// whether that has been noticed or not. It reports whether the caller is to read on.
func (s *server) serve(m *jsonrpc.Message, listen bool, data []byte, f func(ctx context.Context, send sender)) bool {
	id, size := m.ID, max(len(data), len(m.Body.Raw())) // a part of a batch has no data
	if s.until.Err() != nil {
		s.refuse(id, jsonrpc.ToWire(errClosed))
		return true
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	r := &serving{s: s, key: id.Key(), cancel: cancel, listen: listen}
	if err := s.begin(r); err != nil {
		cancel(nil)
		s.refuse(id, jsonrpc.ToWire(err))
		return true
	}
	run := func(send sender) {
		defer r.finish()
		// Nobody waits for the answer of one that was cancelled in the queue.
		if !errors.Is(context.Cause(ctx), session.ErrCancelled) {
			r.send = send
			f(ctx, r.answer)
		}
	}
	var refusal error
	started, readOn := true, true
	switch {
	case listen:
		started = s.workers.beside(func() { run(s.sending) })
	case s.mayServeHere(data):
		started, readOn = s.reader.serve(run)
	default:
		refusal = s.workers.run(size, s.afterInitialize(func() {
			began := time.Now()
			run(s.sending)
			s.turn.note(time.Since(began))
		}))
	}
	if !started {
		refusal = errClosed
	}
	if refusal != nil {
		r.finish()
		s.refuse(id, jsonrpc.ToWire(refusal))
	}
	return readOn
}

// mayServeHere reports whether the reader can serve a request itself. What must
// wait for something, or keep an order that another reader would not, cannot.
func (s *server) mayServeHere(data []byte) bool {
	return data != nil && !s.opts.Ordered && s.initializing == nil && s.turn.mayServe() && s.workers.haveRoom()
}

func (s *server) begin(r *serving) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving[r.key] != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid Request: id %.80s is in flight already", r.key)
	}
	if r.listen {
		if s.listens >= maxListens {
			return &mcp.CallError{
				Kind: mcp.LimitExceeded, Limit: "MaxListens", Outcome: mcp.NotSent,
				Public: fmt.Sprintf("%d subscriptions are open", s.listens),
			}
		}
		s.listens++
	}
	s.serving[r.key] = r
	return nil
}

// answer sends a message of the request's answer. The client may use its id again
// as soon as it has read that.
func (r *serving) answer(build func(dst []byte) []byte) {
	r.finish()
	r.send(build)
}

// finish frees the id of the request. It may be called more than once.
func (r *serving) finish() {
	r.cancel(nil)
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.s.serving[r.key] != r {
		return
	}
	delete(r.s.serving, r.key)
	if r.listen {
		r.s.listens--
	}
}

// batch takes a batch, which only one legacy revision has.
func (s *server) batch(data []byte) {
	items, err := jsonrpc.SplitBatch(data)
	switch {
	case err != nil:
		s.refuse(jsonrpc.ID{}, jsonrpc.ToWire(err))
		return
	case s.opts.Plain:
		s.plainBatch(items)
		return
	}
	if s.negotiated != nil {
		<-s.negotiated
	}
	if !s.session.Revision().HasBatches() {
		s.refuse(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Invalid Request: batches are part of revision %s only", mcp.Revision20250326))
		return
	}
	if s.receipts != nil {
		s.receipts.Accept() // each message is answered alone
	}
	for _, item := range items {
		m := new(jsonrpc.Message)
		if err := jsonrpc.Scan(item, m); err != nil {
			s.unreadable(m, err)
			continue
		}
		if mcp.MethodName(m.Method) == mcp.MethodInitialize {
			s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid Request: initialize must not be part of a batch"))
			continue
		}
		s.message(m, nil)
	}
}
