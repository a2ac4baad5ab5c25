package streamable

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/internal/share"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
)

// Defaults of [SSEOptions].
const (
	DefaultMaxSSE            = 10_000
	DefaultMaxSSEInFlight    = 64
	DefaultMaxSSEQueued      = 256
	DefaultMaxSSEQueuedTotal = 10_000
	DefaultMaxSSEQueuedBytes = 256 << 20
	DefaultMaxSSEUnsent      = 4 << 20
	DefaultMaxSSEUnsentTotal = 256 << 20
)

// SSEOptions configure an [SSEHandler]. The zero value is usable.
type SSEOptions struct {
	// Prefix is the path below which clients see the two endpoints, such as
	// "/api"; empty for none. It is part of where they are told to post.
	Prefix string
	// Max is how many clients are served at a time, of which one principal may have
	// session.MaxSessionShare times what is left; further ones get the status 503.
	// Default DefaultMaxSSE.
	Max int
	// MaxInFlight is how many requests of one client are served at a time.
	// Default DefaultMaxSSEInFlight.
	MaxInFlight int
	// MaxQueued is how many further requests of one client wait their turn,
	// with 64 MiB of messages at most; one more gets the status 503. Default
	// DefaultMaxSSEQueued.
	MaxQueued int
	// MaxQueuedTotal is how many messages of all clients wait their turn after they
	// were taken, and MaxQueuedBytes how many bytes these may have; a further request
	// gets the status 503. One client may have three times what it leaves of each
	// (transport.Backlog). A single larger message is let in. Defaults
	// DefaultMaxSSEQueuedTotal and DefaultMaxSSEQueuedBytes.
	MaxQueuedTotal int
	MaxQueuedBytes int
	// MaxUnsent is how many bytes wait for one client to read before whoever
	// has more for it has to wait. A single larger message is let in. Default
	// DefaultMaxSSEUnsent.
	MaxUnsent int
	// MaxUnsentTotal is how many bytes wait for all clients to read, those that are
	// being written among them. Whoever has more for a client has to wait if that
	// would have more than three times what is left: so clients that do not read
	// leave something to the others, and of these each has a message more than all
	// that. Default DefaultMaxSSEUnsentTotal.
	MaxUnsentTotal int
}

func (o SSEOptions) withDefaults() SSEOptions {
	if o.Prefix = strings.Trim(o.Prefix, "/"); o.Prefix != "" {
		o.Prefix = "/" + o.Prefix
	}
	if o.Max <= 0 {
		o.Max = DefaultMaxSSE
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = DefaultMaxSSEInFlight
	}
	if o.MaxQueued <= 0 {
		o.MaxQueued = DefaultMaxSSEQueued
	}
	if o.MaxQueuedTotal <= 0 {
		o.MaxQueuedTotal = DefaultMaxSSEQueuedTotal
	}
	if o.MaxQueuedBytes <= 0 {
		o.MaxQueuedBytes = DefaultMaxSSEQueuedBytes
	}
	if o.MaxUnsent <= 0 {
		o.MaxUnsent = DefaultMaxSSEUnsent
	}
	if o.MaxUnsentTotal <= 0 {
		o.MaxUnsentTotal = DefaultMaxSSEUnsentTotal
	}
	return o
}

// Paths of the endpoints, after the prefix.
const (
	ssePath     = "/sse"
	messagePath = "/message"
)

// sessionParam is the query parameter that says whose message is posted.
const sessionParam = "sessionId"

// An SSEHandler serves an [mcp.Handler] to clients of HTTP with SSE, the
// transport of revision 2024-11-05 (basic/transports, HTTP with SSE): GET /sse
// opens the stream of a session, whose first event says where messages are to
// be posted, and POST /message takes them. All legacy revisions are negotiated.
//
// A session lives exactly as long as its stream: what is in flight when that
// ends is cancelled, since no answer could be delivered. The status of a POST
// says whether the message was taken; the answer comes on the stream.
//
// It is safe for concurrent use. [SSEHandler.Close] ends its streams.
type SSEHandler struct {
	// Set at construction.
	core    *Handler
	handler mcp.Handler
	opts    SSEOptions
	serving transport.ServeOptions
	unsent  *unsent          // by all clients
	routes  map[string]route // by their paths, without the prefix

	mu      sync.Mutex
	streams map[string]*sseLink   // by session id, guarded by mu
	of      map[mcp.Principal]int // how many, of those that have a name; guarded by mu
	closed  bool                  // guarded by mu
}

// NewSSEHandler returns the two endpoints of handler, to be mounted at the paths
// /sse and /message, or below a prefix ([SSEOptions]) with or without it being
// stripped. With opts.Plain, or for modern clients only, there is nothing to
// serve: every request gets the status 404.
func NewSSEHandler(handler mcp.Handler, opts *HandlerOptions) *SSEHandler {
	core := NewHandler(handler, opts)
	return newSSEHandler(core, core.opts.SSE)
}

// newSSEHandler returns the endpoints beside those of core, with which they
// share their limit of messages in flight and what is known of tools.
func newSSEHandler(core *Handler, opts SSEOptions) *SSEHandler {
	h := &SSEHandler{
		core: core, opts: opts.withDefaults(), streams: make(map[string]*sseLink), of: make(map[mcp.Principal]int),
	}
	h.handler = mcp.HandlerFunc(h.handle)
	h.unsent = &unsent{max: h.opts.MaxUnsentTotal}
	h.serving = transport.ServeOptions{
		Era: mcp.Legacy, Fallback: core.opts.Fallback, Logger: core.opts.Logger,
		MaxInFlight: h.opts.MaxInFlight, MaxQueued: h.opts.MaxQueued,
		Backlog:     transport.NewBacklog(h.opts.MaxQueuedTotal, h.opts.MaxQueuedBytes),
		MaxTaskWait: core.opts.MaxTaskWait,
	}
	if !core.sessionless() {
		stream := route{methods: []string{http.MethodGet}, serve: h.stream}
		h.routes = map[string]route{
			ssePath:       stream,
			ssePath + "/": stream,
			messagePath:   {methods: []string{http.MethodPost}, serve: h.post},
		}
	}
	return h
}

// Drain lets no more clients and requests in, and ends each stream when what is
// in flight on it has been answered.
func (h *SSEHandler) Drain() { h.core.Drain() }

// Close ends all streams at once, and cancels what is in flight.
func (h *SSEHandler) Close() {
	h.mu.Lock()
	h.closed = true
	for _, l := range h.streams {
		l.end(errDraining)
	}
	h.mu.Unlock()
	h.core.Close()
}

// ServeHTTP implements [http.Handler].
func (h *SSEHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := newOutput(w, r, &h.core.opts)
	rej := h.core.guard.check(w.Header(), r)
	if rej == nil {
		rej = h.serve(out)
	}
	if rej != nil {
		out.refuse(rej)
	}
}

func (h *SSEHandler) serve(out *output) *reject {
	route, ok := h.routes[strings.TrimPrefix(out.r.URL.Path, h.opts.Prefix)]
	if !ok {
		return invalid(http.StatusNotFound, "Not found")
	}
	return route.dispatch(out)
}

// handle calls the handler, counts what it serves, and has lists of tools pass
// as the endpoint of the other revisions does.
func (h *SSEHandler) handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Method != mcp.MethodListen {
		h.core.inFlight.Add(1)
		defer h.core.inFlight.Add(-1)
	}
	result, err := h.core.handler.Handle(ctx, req, caller)
	if err == nil && req.Method == mcp.MethodListTools {
		result = h.core.learn(result)
	}
	return result, err
}

// stream serves GET /sse: one session, from its beginning to its end.
func (h *SSEHandler) stream(out *output) *reject {
	if !readAccept(out.r.Header).stream {
		return invalid(http.StatusNotAcceptable, "Not Acceptable: the client must accept text/event-stream")
	}
	l, rej := h.open(out.r)
	if rej != nil {
		return rej
	}
	defer h.drop(l)
	stream := openStream(out)
	defer stream.end()
	if stream.events(h.endpoint(l)) != nil {
		return nil
	}
	opts := h.serving
	opts.Principal, opts.Grant = l.principal, l.grant
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		if err := transport.Serve(h.core.ctx, l, h.handler, opts); err != nil {
			h.core.opts.Logger.Debug("a stream has ended", "err", err)
		}
	})
	l.pump(out.r.Context(), stream)
	h.drop(l) // before the handlers have returned
	return nil
}

// endpoint returns the event that says where messages are to be posted.
func (h *SSEHandler) endpoint(l *sseLink) []byte {
	address := url.URL{Path: h.opts.Prefix + messagePath, RawQuery: sessionParam + "=" + l.id}
	return []byte("event: endpoint\ndata: " + address.String() + "\n\n")
}

// open begins a session. Its id has 130 random bits.
func (h *SSEHandler) open(r *http.Request) (*sseLink, *reject) {
	l := newSSELink(rand.Text(), &h.core.opts, &h.opts, h.unsent)
	l.principal, l.grant = h.core.principal(r), grantOf(r)
	l.origin = h.core.guard.foreign(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed, h.core.ctx.Err() != nil:
		return nil, unavailable("%v", errDraining)
	case len(h.streams) >= h.opts.Max:
		return nil, unavailable("the limit SSE.Max of %d clients is reached", h.opts.Max)
	case !share.Allows(h.of[l.principal], 1, h.opts.Max-len(h.streams)):
		return nil, unavailable("%d of %d clients are of one principal, the limit SSE.Max is %d, and it may have %d times what is left",
			h.of[l.principal], len(h.streams), h.opts.Max, session.MaxSessionShare)
	}
	h.streams[l.id] = l
	if l.principal != (mcp.Principal{}) {
		h.of[l.principal]++
	}
	return l, nil
}

// drop ends a session. It may be called more than once.
func (h *SSEHandler) drop(l *sseLink) {
	h.mu.Lock()
	if h.streams[l.id] == l {
		delete(h.streams, l.id)
		if h.of[l.principal]--; h.of[l.principal] <= 0 {
			delete(h.of, l.principal)
		}
	}
	h.mu.Unlock()
	l.end(io.ErrClosedPipe)
}

// session returns the session that a POST names. Another principal's, or one
// that a page of another origin has opened, is as unknown as none.
func (h *SSEHandler) session(r *http.Request) (*sseLink, *reject) {
	ids := r.URL.Query()[sessionParam]
	if len(ids) != 1 || ids[0] == "" {
		return nil, invalid(http.StatusBadRequest, "Bad Request: one query parameter %s is required", sessionParam)
	}
	h.mu.Lock()
	l := h.streams[ids[0]]
	h.mu.Unlock()
	if l == nil || l.principal != h.core.principal(r) || l.origin != h.core.guard.foreign(r) {
		return nil, sessionNotFound()
	}
	return l, nil
}

func sessionNotFound() *reject { return invalid(http.StatusNotFound, "Session not found") }

// post serves POST /message: it hands one message to the session.
func (h *SSEHandler) post(out *output) *reject {
	defer h.core.inFlight.Add(-1)
	if h.core.inFlight.Add(1) > int64(h.core.opts.MaxInFlight) {
		return unavailable("the limit MaxInFlight of %d is reached", h.core.opts.MaxInFlight)
	}
	l, rej := h.session(out.r)
	if rej != nil {
		return rej
	}
	if rej := checkContentType(out.r); rej != nil {
		return rej
	}
	body, rej := out.readBody()
	if rej != nil {
		return rej
	}
	if h.core.opts.Tap != nil {
		h.core.opts.Tap(false, body)
	}
	if rej := l.deliver(out.r.Context(), body); rej != nil {
		return rej
	}
	out.empty(http.StatusAccepted)
	return nil
}
