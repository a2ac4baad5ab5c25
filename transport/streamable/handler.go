package streamable

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/eventlog"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
)

// Defaults of [HandlerOptions].
const (
	DefaultMaxBody      = 10 << 20
	DefaultMaxInFlight  = 10_000
	DefaultMaxBatch     = 16
	DefaultBodyTimeout  = 30 * time.Second
	DefaultWriteTimeout = 10 * time.Second
	DefaultKeepAlive    = 15 * time.Second
	DefaultStreamAfter  = time.Second
	DefaultRetry        = time.Second
)

// HandlerOptions configure a [Handler]. The zero value is usable.
type HandlerOptions struct {
	// Era restricts which clients are served; NoEra serves both.
	Era mcp.Era
	// Plain serves JSON-RPC as it comes, with batches and without MCP.
	Plain bool
	// Fallback names a server that does not name itself.
	Fallback mcp.Implementation
	// MaxBody is how many bytes a body may have. Default DefaultMaxBody.
	MaxBody int64
	// MaxInFlight is how many messages, subscriptions and those of batches among
	// them, are served at a time; further ones get the status 503. Default
	// DefaultMaxInFlight.
	MaxInFlight int
	// MaxBatch is how many items of a batch are served at a time. Default
	// DefaultMaxBatch.
	MaxBatch int
	// BodyTimeout is how long a client may take to send a body. Default
	// DefaultBodyTimeout.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take to take what is written to
	// it, 256 KiB at a time, before its connection is given up. Default
	// DefaultWriteTimeout.
	WriteTimeout time.Duration
	// KeepAlive is after how long an idle event stream gets a comment, and a
	// call that has not answered yet becomes an event stream. Default
	// DefaultKeepAlive.
	KeepAlive time.Duration
	// Park bounds the calls of modern clients that wait for an answer to a
	// question. They do not count against MaxInFlight.
	Park park.Options
	// MaxTaskWait is how long a call of a legacy session waits for the task that a
	// modern server has made of it. Default session.DefaultMaxTaskWait.
	MaxTaskWait time.Duration
	// StreamAfter is after how long a call of a legacy session that has not
	// answered yet becomes an event stream, which its client can resume.
	// Default DefaultStreamAfter; more than KeepAlive counts as KeepAlive.
	StreamAfter time.Duration
	// Retry is after how long legacy clients are asked to come back when an
	// event stream breaks. Default DefaultRetry.
	Retry time.Duration
	// Events keeps the event streams of legacy sessions for clients that come
	// back. Nil for a log in memory with its default limits.
	Events eventlog.Log
	// Sessions bounds legacy sessions.
	Sessions session.TableOptions
	// SSE is for clients of HTTP with SSE ([SSEHandler]); a Handler has none.
	SSE SSEOptions
	// AllowedHosts are hosts, besides loopback names, that requests on a
	// loopback address may be for. On another address any host is served
	// unless some are named here, but pages of a host that has a name only if
	// that is named here.
	AllowedHosts []string
	// AllowedOrigins are origins, besides the listener's own, whose pages may
	// use it, such as "http://localhost:6274".
	AllowedOrigins []string
	// Headers knows which parameters of tools are mirrored into headers. Nil
	// stands for what the handler knows of its own tools, if it has a method
	// ToolHeaders() *mcp.ToolHeaders, and else for what its lists say.
	Headers *mcp.ToolHeaders
	// Principal tells who a request is from. Nil makes everybody anonymous.
	Principal func(*http.Request) mcp.Principal
	Logger    *slog.Logger  // nil for silence
	Tap       transport.Tap // nil for none
}

func (o *HandlerOptions) withDefaults() HandlerOptions {
	var d HandlerOptions
	if o != nil {
		d = *o
	}
	if d.MaxBody <= 0 {
		d.MaxBody = DefaultMaxBody
	}
	if d.MaxInFlight <= 0 {
		d.MaxInFlight = DefaultMaxInFlight
	}
	if d.MaxBatch <= 0 {
		d.MaxBatch = DefaultMaxBatch
	}
	if d.BodyTimeout <= 0 {
		d.BodyTimeout = DefaultBodyTimeout
	}
	if d.WriteTimeout <= 0 {
		d.WriteTimeout = DefaultWriteTimeout
	}
	if d.KeepAlive <= 0 {
		d.KeepAlive = DefaultKeepAlive
	}
	if d.StreamAfter <= 0 {
		d.StreamAfter = DefaultStreamAfter
	}
	if d.Retry <= 0 {
		d.Retry = DefaultRetry
	}
	if d.Events == nil {
		d.Events = eventlog.NewMemory(nil)
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Park.Logger == nil {
		d.Park.Logger = d.Logger
	}
	return d
}

// A Handler serves an [mcp.Handler] as the MCP endpoint of an HTTP server. It
// is safe for concurrent use. [Handler.Close] ends its streams and sessions.
type Handler struct {
	// Set at construction.
	handler mcp.Handler
	opts    HandlerOptions
	lot     *park.Lot // handler for requests of modern clients
	// subscriber takes listen calls of modern clients; nil if the handler is
	// none.
	subscriber mcp.Subscriber
	guard      guard
	sessions   *session.Table
	headers    *mcp.ToolHeaders
	ctx        context.Context // ends streams that wait for changes
	cancel     context.CancelCauseFunc

	inFlight atomic.Int64 // messages being served

	mu         sync.Mutex
	deliveries map[eventlog.Stream]*delivery // guarded by mu
	own        map[string]*ownStream         // by session, guarded by mu
	calls      int                           // goroutines of calls, guarded by mu
	idle       chan struct{}                 // closed when there are none; nil if nobody waits, guarded by mu
}

// NewHandler returns the endpoint of handler.
func NewHandler(handler mcp.Handler, opts *HandlerOptions) *Handler {
	o := opts.withDefaults()
	guarded := transport.Guarded(handler, o.Logger)
	h := &Handler{
		handler:    guarded,
		lot:        park.New(guarded, o.Park),
		opts:       o,
		guard:      newGuard(o.AllowedHosts, o.AllowedOrigins),
		headers:    headersOf(handler, o.Headers),
		deliveries: make(map[eventlog.Stream]*delivery),
		own:        make(map[string]*ownStream),
	}
	h.subscriber, _ = handler.(mcp.Subscriber)
	sessions, ended := o.Sessions, o.Sessions.Ended
	sessions.Ended = func(id string) {
		h.forget(id)
		if ended != nil {
			ended(id)
		}
	}
	h.sessions = session.NewTable(sessions)
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h
}

// headersOf returns what is known of the header annotations of a handler's tools:
// without it those of a tool that nobody has listed yet would go unchecked.
func headersOf(handler mcp.Handler, configured *mcp.ToolHeaders) *mcp.ToolHeaders {
	if configured != nil {
		return configured
	}
	if own, ok := handler.(interface{ ToolHeaders() *mcp.ToolHeaders }); ok {
		return own.ToolHeaders()
	}
	return new(mcp.ToolHeaders)
}

// Drain ends the streams that wait for changes, gracefully where the protocol
// has a way. Requests in flight go on.
func (h *Handler) Drain() { h.cancel(errDraining) }

// Close ends all streams and sessions, and cancels the calls that wait for their
// client's answer. It waits a second at most for calls that do not end with their
// sessions.
func (h *Handler) Close() {
	h.Drain()
	h.lot.Close()
	h.sessions.Close()
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	if !h.settle(ctx) {
		h.opts.Logger.Warn("calls go on although their sessions have ended")
	}
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := newOutput(w, r, &h.opts)
	rej := h.guard.check(w.Header(), r)
	if rej == nil {
		rej = h.serve(out)
	}
	if rej != nil {
		out.refuse(rej)
	}
}

// serve serves a request that the guard has let through, unless it returns why
// not.
func (h *Handler) serve(out *output) *reject {
	switch out.r.Method {
	case http.MethodPost:
		return h.post(out)
	case http.MethodGet:
		return h.get(out)
	case http.MethodDelete:
		return h.delete(out)
	case http.MethodOptions:
		out.preflight(h.methods())
		return nil
	}
	return notAllowed(h.methods())
}

// methods are those that the endpoint has.
func (h *Handler) methods() string {
	if h.sessionless() {
		return "POST, OPTIONS"
	}
	return "GET, POST, DELETE, OPTIONS"
}

// sessionsOnly refuses a method that is there for sessions only to a request that has
// none, such as that of a browser in which somebody opens the address.
func (h *Handler) sessionsOnly(r *http.Request) *reject {
	rej := notAllowed(h.methods())
	if !h.sessionless() {
		rej.err.Message = "Method Not Allowed: this is an endpoint of MCP, to which clients POST; " +
			r.Method + " is for those with a session (Mcp-Session-Id)"
	}
	return rej
}

// sessionless reports whether no client can have a session.
func (h *Handler) sessionless() bool { return h.opts.Plain || h.opts.Era == mcp.Modern }

// post serves one POST: it reads the one message in the body and hands it to
// the era that it belongs to.
func (h *Handler) post(out *output) *reject {
	p := &post{holding: holding{h: h}, out: out}
	defer p.leave()
	if rej := p.enter(1); rej != nil {
		return rej
	}
	if rej := checkContentType(out.r); rej != nil {
		return rej
	}
	accept := readAccept(out.r.Header)
	if !accept.json && (!accept.stream || h.opts.Plain) {
		return invalid(http.StatusNotAcceptable, "Not Acceptable: the client must accept application/json and text/event-stream")
	}
	body, refused := out.readBody()
	if refused != nil {
		return refused
	}
	if h.opts.Tap != nil {
		h.opts.Tap(false, body)
	}
	p.accept, p.body = accept, body
	rej := p.serve()
	if rej != nil && p.m.Kind == jsonrpc.Response {
		rej.id = jsonrpc.ID{} // that of a request of ours: the client has others
	}
	if open := p.open; open != nil {
		h.wait(p, open)
		return nil
	}
	p.reuse = rej == nil && !p.handed && !p.kept && p.m.Kind == jsonrpc.Request && mcp.MethodName(p.m.Method) != mcp.MethodInitialize
	return rej
}

// A post is one POST.
type post struct {
	holding

	out    *output
	accept accepts
	m      jsonrpc.Message
	open   *openSubscription // that the post has begun; nil for none
	kept   bool              // body is in use when the post has been served
	handed bool              // a reply that may outlive the POST holds all now
}

// leave ends the post.
func (p *post) leave() {
	if !p.handed {
		p.giveBack()
	}
}

// A holding is what a message holds while it is served: its place among those in
// flight, or those of a batch, its session, and its body.
type holding struct {
	h       *Handler
	places  int64
	session *session.Held // nil for none
	body    []byte
	reuse   bool // nobody needs the body afterwards
}

// enter takes places among the messages in flight, until giveBack, and returns why the
// message must not be served.
func (h *holding) enter(places int) *reject {
	h.places += int64(places)
	if limit := h.h.opts.MaxInFlight; h.h.inFlight.Add(int64(places)) > int64(limit) {
		return unavailable("the limit MaxInFlight of %d is reached", limit)
	}
	return nil
}

// enterBatch is enter for the further messages of a batch of n that are served at the
// same time. It returns how many are.
func (h *holding) enterBatch(n int) (atOnce int, rej *reject) {
	atOnce = min(n, h.h.opts.MaxBatch, h.h.opts.MaxInFlight)
	return atOnce, h.enter(atOnce - 1)
}

func (h *holding) giveBack() {
	h.h.inFlight.Add(-h.places)
	if h.session != nil {
		h.session.Release()
	}
	if h.reuse {
		recycle(h.body)
	}
}

func (h *Handler) callBegins() {
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
}

func (h *Handler) callEnded() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls--; h.calls == 0 && h.idle != nil {
		close(h.idle)
		h.idle = nil
	}
}

// settle waits until no call has a goroutine, and reports whether that is so.
func (h *Handler) settle(ctx context.Context) bool {
	h.mu.Lock()
	if h.calls == 0 {
		h.mu.Unlock()
		return true
	}
	if h.idle == nil {
		h.idle = make(chan struct{})
	}
	idle := h.idle
	h.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// serve answers the post, unless it returns why not.
func (p *post) serve() *reject {
	err := jsonrpc.Scan(p.body, &p.m)
	switch {
	case p.h.opts.Plain:
		return p.plain(err)
	case err != nil && jsonrpc.IsBatch(p.body):
		return p.batch()
	case err != nil:
		return badRequest(p.m.ID, jsonrpc.ToWire(err))
	}
	switch p.era() {
	case mcp.Modern:
		return p.modern()
	case mcp.Legacy:
		return p.legacy()
	}
	return p.eraless()
}

// era returns the era of a message: its own metadata or its version header
// count first, then what only the legacy era has.
func (p *post) era() mcp.Era {
	version := mcp.Revision(p.out.r.Header.Get(versionHeader))
	isInitialize := mcp.MethodName(p.m.Method) == mcp.MethodInitialize
	switch {
	case mcp.HasReserved(&p.m.Meta), version.Era() == mcp.Modern && !isInitialize:
		return mcp.Modern
	case isInitialize, p.hasSession():
		return mcp.Legacy
	case version != "" && version.Era() == mcp.NoEra:
		return mcp.Modern // of a revision that we do not know
	}
	return mcp.NoEra
}

// hasSession reports whether a request names a session, as far as there are any.
func (p *post) hasSession() bool {
	return p.out.r.Header.Get(sessionHeader) != "" && !p.h.sessionless()
}

// eraless refuses a message that names neither a revision nor a session.
func (p *post) eraless() *reject {
	if p.h.opts.Era == mcp.Modern {
		return badRequest(p.m.ID, mismatch("%s is missing", "MCP-Protocol-Version"))
	}
	return badRequest(p.m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
		"Invalid Request: neither _meta[%q] (modern) nor Mcp-Session-Id (legacy) is there", mcp.MetaProtocolVersion))
}

// plain serves JSON-RPC without MCP.
func (p *post) plain(err error) *reject {
	if err != nil && !jsonrpc.IsBatch(p.body) {
		return badRequest(p.m.ID, jsonrpc.ToWire(err))
	}
	ctx, caller := p.out.r.Context(), mcp.NoCaller{}
	x := newExchange(p.out, accepts{json: true}, nil)
	if err == nil {
		x.finish(http.StatusOK, transport.AnswerPlain(ctx, p.h.handler, &p.m, caller, nil))
		return nil
	}
	items, err := jsonrpc.SplitBatch(p.body)
	if err != nil {
		x.finish(http.StatusBadRequest, jsonrpc.AppendNullError(nil, jsonrpc.ToWire(err)))
		return nil
	}
	atOnce, rej := p.enterBatch(len(items))
	if rej != nil {
		return rej
	}
	x.finish(http.StatusOK, transport.AnswerPlainBatch(ctx, p.h.handler, items, caller, atOnce))
	return nil
}
