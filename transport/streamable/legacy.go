package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
)

// legacy serves a legacy client's message: initialize, or one of a session.
func (p *post) legacy() *reject {
	if p.h.opts.Era == mcp.Modern {
		requested, _ := p.m.Body.LookupString("protocolVersion")
		return badRequest(p.m.ID, mcp.UnsupportedRevision(mcp.Revision(requested), transport.Served(mcp.Modern)))
	}
	if mcp.MethodName(p.m.Method) == mcp.MethodInitialize && p.m.Kind == jsonrpc.Request {
		return p.initialize()
	}
	s, rej := p.session()
	if rej != nil {
		return rej
	}
	defer s.Release()
	switch p.m.Kind {
	case jsonrpc.Response:
		if !s.Answered(&p.m) {
			p.h.opts.Logger.Debug("a response answers nothing", "id", p.m.ID.String())
		}
		p.w.WriteHeader(http.StatusAccepted)
	case jsonrpc.Notification:
		s.Notified(context.WithoutCancel(p.r.Context()), &p.m)
		p.w.WriteHeader(http.StatusAccepted)
	default:
		p.legacyRequest(s)
	}
	return nil
}

// initialize begins a session.
func (p *post) initialize() *reject {
	var principal mcp.Principal
	if p.h.opts.Principal != nil {
		principal = p.h.opts.Principal(p.r)
	}
	s, err := p.h.sessions.New(p.h.handler, session.ServerOptions{
		Fallback: p.h.opts.Fallback, Principal: principal, Logger: p.h.opts.Logger,
	})
	if err != nil {
		return &reject{
			status: http.StatusServiceUnavailable, id: p.m.ID,
			err: jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error: %v", err),
		}
	}
	defer s.Release()
	x := newExchange(p.w, p.accept, p.h.opts.Tap)
	result, err := s.Initialize(p.r.Context(), &p.m)
	if err != nil {
		s.End()
		answerLegacy(x, p.m.ID, mcp.Result{}, err)
		return nil
	}
	p.w.Header().Set(sessionHeader, s.ID)
	answerLegacy(x, p.m.ID, result, nil)
	return nil
}

// session returns the session that a request names. It must be released.
func (p *post) session() (*session.Held, *reject) {
	return p.h.session(p.r, p.m.ID)
}

func (h *Handler) session(r *http.Request, id jsonrpc.ID) (*session.Held, *reject) {
	values := r.Header[sessionHeader]
	if len(values) != 1 || values[0] == "" {
		return nil, badRequest(id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Bad Request: one Mcp-Session-Id header is required"))
	}
	var principal mcp.Principal
	if h.opts.Principal != nil {
		principal = h.opts.Principal(r)
	}
	s, ok := h.sessions.Use(values[0], principal)
	if !ok {
		return nil, &reject{status: http.StatusNotFound, id: id, err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Session not found")}
	}
	if version := mcp.Revision(r.Header.Get(versionHeader)); version != "" && version.Era() != mcp.Legacy {
		s.Release()
		return nil, badRequest(id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Bad Request: unsupported MCP-Protocol-Version %.40q", version))
	}
	return s, nil
}

// legacyRequest serves one request of a session. A client that drops its
// connection has not cancelled (2025-11-25, transports, Sending Messages).
func (p *post) legacyRequest(s *session.Held) {
	x := newExchange(p.w, p.accept, p.h.opts.Tap)
	result, err := s.Handle(context.WithoutCancel(p.r.Context()), &p.m, x)
	if errors.Is(err, session.ErrCancelled) {
		err = jsonrpc.Errorf(jsonrpc.CodeInternalError, "Request cancelled")
	}
	if err == nil && mcp.MethodName(p.m.Method) == mcp.MethodListTools {
		result = p.h.learn(result)
	}
	answerLegacy(x, p.m.ID, result, err)
}

// answerLegacy ends an exchange; legacy errors have the status 200.
func answerLegacy(x *exchange, id jsonrpc.ID, result mcp.Result, err error) {
	// finish reports nothing that could be done anything about.
	_ = transport.WithFrame(func(dst []byte) []byte {
		if err != nil {
			return jsonrpc.AppendError(dst, id, jsonrpc.ToWire(err))
		}
		return jsonrpc.AppendResult(dst, id, &result.Value)
	}, func(frame []byte) error {
		x.finish(http.StatusOK, frame)
		return nil
	})
}

// batch serves a JSON-RPC batch, which one legacy revision has: its items
// concurrently, their answers as one array or, if something is sent before
// them, as events of one stream.
func (p *post) batch() *reject {
	items, err := jsonrpc.SplitBatch(p.body)
	if err != nil {
		return badRequest(jsonrpc.ID{}, jsonrpc.ToWire(err))
	}
	if p.r.Header.Get(sessionHeader) == "" {
		return badRequest(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Invalid Request: batches are part of revision %s only, within a session", mcp.Revision20250326))
	}
	s, rej := p.session()
	if rej != nil {
		return rej
	}
	defer s.Release()
	if !s.Revision().HasBatches() {
		return badRequest(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Invalid Request: batches are part of revision %s only", mcp.Revision20250326))
	}
	x := newExchange(p.w, p.accept, p.h.opts.Tap)
	b := batch{session: s, x: x, ctx: context.WithoutCancel(p.r.Context())}
	b.serve(items, p.h.opts.MaxBatch)
	return nil
}

// A batch is being served.
type batch struct {
	session *session.Held
	x       *exchange
	ctx     context.Context // of this one POST

	mu      sync.Mutex
	answers [][]byte // guarded by mu
}

func (b *batch) serve(items [][]byte, limit int) {
	slots := make(chan struct{}, limit)
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
	if err := jsonrpc.Scan(item, &m); err != nil {
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.ToWire(err))
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
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Invalid Request: initialize must not be part of a batch"))
	}
	result, err := b.session.Handle(b.ctx, &m, b.x)
	if err != nil {
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.ToWire(err))
	}
	return jsonrpc.AppendResult(nil, m.ID, &result.Value)
}

// finish sends the answers: as single events if the reply has become a stream,
// else as an array.
func (b *batch) finish() {
	if len(b.answers) == 0 {
		b.x.finish(http.StatusAccepted, nil)
		return
	}
	if b.x.streaming() {
		for _, answer := range b.answers[1:] {
			// A client that has gone needs no telling.
			_ = b.x.Send(b.ctx, answer)
		}
		b.x.finish(http.StatusOK, b.answers[0])
		return
	}
	array := []byte{'['}
	for i, answer := range b.answers {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, answer...)
	}
	b.x.finish(http.StatusOK, append(array, ']'))
}

// streaming reports whether the reply has become an event stream.
func (x *exchange) streaming() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stream != nil || !x.accept.json
}

// get opens a session's stream for what belongs to no request. A newer stream
// takes the place of an older one.
func (h *Handler) get(w http.ResponseWriter, r *http.Request) {
	if h.opts.Plain || h.opts.Era == mcp.Modern {
		h.refuse(w, h.notAllowed())
		return
	}
	if !readAccept(r.Header).stream {
		h.refuse(w, &reject{status: http.StatusNotAcceptable, err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Not Acceptable: the client must accept text/event-stream")})
		return
	}
	if r.Header.Get(sessionHeader) == "" {
		h.refuse(w, h.notAllowed()) // a modern server has no GET stream
		return
	}
	s, rej := h.session(r, jsonrpc.ID{})
	if rej != nil {
		h.refuse(w, rej)
		return
	}
	defer s.Release()
	g := &getStream{stream: openStream(w, h.opts.Tap), gone: make(chan struct{})}
	// So that the client sees the stream open before anything happens.
	if g.stream.comment() != nil {
		return
	}
	h.replaceStream(s, g)
	defer h.dropStream(s, g)
	g.serve(r.Context(), h.ctx)
}

// replaceStream makes g the session's stream and ends the one before.
func (h *Handler) replaceStream(s *session.Held, g *getStream) {
	h.legacyMu.Lock()
	old := h.outlets[s]
	h.outlets[s] = g
	h.legacyMu.Unlock()
	if old != nil {
		old.end()
	}
	s.SetOutlet(g)
}

func (h *Handler) dropStream(s *session.Held, g *getStream) {
	g.end()
	h.legacyMu.Lock()
	defer h.legacyMu.Unlock()
	if h.outlets[s] == g {
		delete(h.outlets, s)
		s.SetOutlet(nil)
	}
}

// A getStream is a session's stream for what belongs to no request.
type getStream struct {
	mu     sync.Mutex
	stream *eventStream // nil when ended, guarded by mu
	once   sync.Once
	gone   chan struct{}
}

// Send implements session.Outlet.
func (g *getStream) Send(_ context.Context, frame []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stream == nil {
		return errFinished
	}
	err := g.stream.message(frame)
	if err != nil {
		g.stop()
	}
	return err
}

func (g *getStream) stop() { g.once.Do(func() { close(g.gone) }) }

// end lets nothing more be written.
func (g *getStream) end() {
	g.stop()
	g.mu.Lock()
	g.stream = nil
	g.mu.Unlock()
}

// serve keeps the stream alive until the client, the listener or a newer stream
// ends it.
func (g *getStream) serve(client, listener context.Context) {
	ticker := time.NewTicker(KeepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-client.Done():
			return
		case <-listener.Done():
			return
		case <-g.gone:
			return
		case <-ticker.C:
			g.mu.Lock()
			if g.stream != nil && g.stream.comment() != nil {
				g.stop()
			}
			g.mu.Unlock()
		}
	}
}

// delete ends a session.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request) {
	if h.opts.Plain || h.opts.Era == mcp.Modern || r.Header.Get(sessionHeader) == "" {
		h.refuse(w, h.notAllowed())
		return
	}
	s, rej := h.session(r, jsonrpc.ID{})
	if rej != nil {
		h.refuse(w, rej)
		return
	}
	defer s.Release()
	h.legacyMu.Lock()
	g := h.outlets[s]
	h.legacyMu.Unlock()
	if g != nil {
		g.end()
	}
	s.End()
	w.WriteHeader(http.StatusNoContent)
}
