package streamable

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
)

// DefaultMaxBody is how many bytes a request's body may have.
const DefaultMaxBody = 10 << 20

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
	// MaxBatch is how many items of a batch are served at a time. Default 16.
	MaxBatch int
	// Sessions bounds legacy sessions.
	Sessions session.TableOptions
	// AllowedHosts are hosts, besides loopback names, that requests on a
	// loopback address may be for. On another address any host is served
	// unless some are named here.
	AllowedHosts []string
	// AllowedOrigins are origins, besides the listener's own, whose pages may
	// use it, such as "http://localhost:6274".
	AllowedOrigins []string
	// Principal tells who a request is from. Nil makes everybody anonymous.
	Principal func(*http.Request) mcp.Principal
	Logger    *slog.Logger  // nil for silence
	Tap       transport.Tap // nil for none
}

// A Handler serves an [mcp.Handler] as the MCP endpoint of an HTTP server. It
// is safe for concurrent use. [Handler.Close] ends its streams and sessions.
type Handler struct {
	// Set at construction.
	handler  mcp.Handler
	opts     HandlerOptions
	guard    guard
	sessions *session.Table
	headers  mcp.ToolHeaders
	ctx      context.Context // ends streams that wait for changes
	cancel   context.CancelCauseFunc
	legacyMu sync.Mutex
	outlets  map[*session.Held]*getStream // guarded by legacyMu
}

// NewHandler returns the endpoint of handler.
func NewHandler(handler mcp.Handler, opts *HandlerOptions) *Handler {
	var o HandlerOptions
	if opts != nil {
		o = *opts
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = 16
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{
		opts:     o,
		guard:    newGuard(o.AllowedHosts, o.AllowedOrigins),
		sessions: session.NewTable(o.Sessions),
		outlets:  make(map[*session.Held]*getStream),
	}
	h.handler = transport.Guarded(handler, o.Logger)
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h
}

// Drain ends the streams that wait for changes, gracefully where the protocol
// has a way. Requests in flight go on.
func (h *Handler) Drain() { h.cancel(errDraining) }

// Close ends all streams and sessions.
func (h *Handler) Close() {
	h.Drain()
	h.sessions.Close()
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if rej := h.guard.check(w, r); rej != nil {
		h.refuse(w, rej)
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.get(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	case http.MethodOptions:
		preflight(w, r, h.methods())
	default:
		h.refuse(w, h.notAllowed())
	}
}

// methods are those that the endpoint has.
func (h *Handler) methods() string {
	if h.opts.Plain || h.opts.Era == mcp.Modern {
		return "POST, OPTIONS"
	}
	return allowedMethods
}

func (h *Handler) notAllowed() *reject {
	return &reject{
		status: http.StatusMethodNotAllowed, allow: h.methods(),
		err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Method Not Allowed: use %s", h.methods()),
	}
}

func (h *Handler) refuse(w http.ResponseWriter, rej *reject) {
	rej.null = h.opts.Plain
	h.opts.Logger.Debug("a request was refused", "status", rej.status, "err", rej.err)
	rej.write(w)
}

// post serves one POST: it reads the one message in the body and hands it to
// the era that it belongs to.
func (h *Handler) post(w http.ResponseWriter, r *http.Request) {
	if rej := checkContentType(r); rej != nil {
		h.refuse(w, rej)
		return
	}
	accept := readAccept(r.Header)
	if !accept.json && !accept.stream {
		h.refuse(w, &reject{status: http.StatusNotAcceptable, err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Not Acceptable: the client must accept application/json and text/event-stream")})
		return
	}
	body, rej := readBody(w, r, h.opts.MaxBody)
	if rej != nil {
		h.refuse(w, rej)
		return
	}
	if h.opts.Tap != nil {
		h.opts.Tap(false, body)
	}
	p := &post{h: h, w: w, r: r, accept: accept, body: body}
	if rej := p.serve(); rej != nil {
		h.refuse(w, rej)
	}
}

// A post is one POST whose body has been read.
type post struct {
	h      *Handler
	w      http.ResponseWriter
	r      *http.Request
	accept accepts
	body   []byte
	m      jsonrpc.Message
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
	version := mcp.Revision(p.r.Header.Get(versionHeader))
	isInitialize := mcp.MethodName(p.m.Method) == mcp.MethodInitialize
	switch {
	case mcp.HasReserved(&p.m.Meta), version.Era() == mcp.Modern && !isInitialize:
		return mcp.Modern
	case isInitialize, p.r.Header.Get(sessionHeader) != "":
		return mcp.Legacy
	case version != "" && version.Era() == mcp.NoEra:
		return mcp.Modern // of a revision that we do not know
	}
	return mcp.NoEra
}

// eraless refuses a message that names neither a revision nor a session.
func (p *post) eraless() *reject {
	if p.h.opts.Era == mcp.Modern {
		return badRequest(p.m.ID, jsonrpc.Errorf(jsonrpc.CodeHeaderMismatch, "Header mismatch: %s is missing", versionHeader))
	}
	return badRequest(p.m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
		"Invalid Request: neither _meta[%q] (modern) nor %s (legacy) is there", mcp.MetaProtocolVersion, sessionHeader))
}

// plain serves JSON-RPC without MCP.
func (p *post) plain(err error) *reject {
	caller := mcp.NoCaller{}
	if err != nil && !jsonrpc.IsBatch(p.body) {
		return badRequest(p.m.ID, jsonrpc.ToWire(err))
	}
	x := newExchange(p.w, accepts{json: true}, p.h.opts.Tap)
	if err != nil {
		answer := transport.AnswerPlainBatch(p.r.Context(), p.h.handler, p.body, caller, p.h.opts.MaxBatch, nil)
		x.finish(statusOf(answer), answer)
		return nil
	}
	x.finish(http.StatusOK, transport.AnswerPlain(p.r.Context(), p.h.handler, &p.m, caller, nil))
	return nil
}

// statusOf returns the status of a batch's answer: an error for the whole of it
// is no array.
func statusOf(answer []byte) int {
	if len(answer) > 0 && answer[0] != '[' {
		return http.StatusBadRequest
	}
	return http.StatusOK
}
