package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// An Outlet takes messages to a legacy client: the shared channel of a byte
// stream, the event stream of one POST, or the GET stream of a session. A frame
// is one message without line breaks; the outlet does not keep it.
type Outlet interface {
	Send(ctx context.Context, frame []byte) error
}

// ServerOptions configure a [Server]. The zero value is usable.
type ServerOptions struct {
	// Fallback names a server that does not name itself.
	Fallback mcp.Implementation
	// Principal is who the client is for certain; the zero value for anonymous.
	Principal mcp.Principal
	// Grant is [mcp.Metadata.Grant] of the client's requests, until [Server.SetGrant].
	Grant string
	// ID tells this session from all others ([mcp.Metadata.Session]).
	ID string
	// MaxTaskWait is how long a call waits for the task that a modern server has made
	// of it, the time in which the client is being asked not counted. Default
	// DefaultMaxTaskWait.
	MaxTaskWait time.Duration
	Logger      *slog.Logger // nil for silence
}

// A Server is a session with a legacy client: it turns the client's messages
// into calls of a Handler. It is safe for concurrent use. [Server.Close] ends
// it.
type Server struct {
	// Set at construction.
	handler mcp.Handler
	opts    ServerOptions
	ctx     context.Context // of the session: ends what belongs to no request
	cancel  context.CancelFunc
	running sync.WaitGroup
	asks    inflight.Calls // our questions to the client

	mu           sync.Mutex // guards what follows
	closed       bool
	meta         mcp.Metadata
	capabilities mcp.ServerCapabilities
	lists        mcp.Filter                         // whose changes to listen for
	serving      map[string]context.CancelCauseFunc // requests by id
	listens      map[string]*listen                 // by URI; "" is the session's own
	outlet       Outlet                             // for what belongs to no request
	outlets      int                                // how often it was set
	noRoots      bool                               // roots were asked for in vain since
}

// NewServer returns a session that waits for initialize. It must be closed.
func NewServer(handler mcp.Handler, opts ServerOptions) *Server {
	if opts.MaxTaskWait <= 0 {
		opts.MaxTaskWait = DefaultMaxTaskWait
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{
		handler: handler, opts: opts, ctx: ctx, cancel: cancel,
		serving: make(map[string]context.CancelCauseFunc),
		listens: make(map[string]*listen),
	}
}

// Close ends the session: its requests are cancelled, its subscriptions end, its
// questions fail. It waits for those that belong to no request.
func (s *Server) Close() {
	s.cancel()
	s.asks.Fail(mcp.ErrClosed, true)
	s.mu.Lock()
	s.closed = true
	for _, cancel := range s.serving {
		cancel(mcp.ErrClosed)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Done is closed when the session has been closed.
func (s *Server) Done() <-chan struct{} { return s.ctx.Done() }

// AfterClose has f called in a goroutine of its own when the session is closed,
// unless stop is called before.
func (s *Server) AfterClose(f func()) (stop func() bool) { return context.AfterFunc(s.ctx, f) }

// Revision returns the negotiated revision, empty before initialize.
func (s *Server) Revision() mcp.Revision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta.Revision
}

// SetGrant says that requests are made under another grant from now on: clients get new
// tokens while their session lasts.
func (s *Server) SetGrant(grant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta.Revision != "" {
		s.meta.Grant = grant
	}
}

// Initialize answers an initialize request: with our newest legacy revision not
// above the client's, and what the handler says of itself.
func (s *Server) Initialize(ctx context.Context, m *jsonrpc.Message) (mcp.Result, error) {
	text, ok := m.Body.LookupString("protocolVersion")
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: protocolVersion must be a string")
	}
	meta := mcp.Metadata{
		Revision:  mcp.NegotiateLegacy(mcp.Revision(text)),
		Principal: s.opts.Principal,
		Grant:     s.opts.Grant,
		Session:   s.opts.ID,
	}
	if client := m.Body.Get("clientInfo"); client.IsObject() {
		meta.Client = bytes.Clone(client.Raw())
	}
	if capabilities := m.Body.Get("capabilities"); capabilities.IsObject() {
		meta.Capabilities = bytes.Clone(capabilities.Raw())
	}
	s.mu.Lock()
	again := s.meta.Revision != ""
	s.mu.Unlock()
	if again {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid Request: the session is initialized already")
	}
	discover, err := s.handler.Handle(ctx, &mcp.Request{Method: mcp.MethodDiscover, Meta: meta}, mcp.NoCaller{})
	if err != nil {
		return mcp.Result{}, err
	}
	s.mu.Lock()
	s.meta = meta
	s.capabilities = mcp.ReadServerCapabilities(&discover.Value)
	s.lists = listsOf(&discover, &s.capabilities)
	s.mu.Unlock()
	return mcp.InitializeFromDiscover(&discover, meta.Revision, s.opts.Fallback), nil
}

// SetOutlet says where messages go that belong to no request, and opens the
// session's own listen call if there is none yet. It is called again whenever the
// client can be asked anew: servers that have asked for the roots in vain do so
// again then.
func (s *Server) SetOutlet(out Outlet) {
	s.mu.Lock()
	s.outlet = out
	s.outlets++
	missed := s.noRoots && out != nil
	s.noRoots = s.noRoots && !missed
	s.mu.Unlock()
	if out == nil {
		return
	}
	s.openOwnListens()
	if missed {
		s.reopenSessionListen()
	}
}

// ErrCancelled is the cause with which a request ends that the client has
// cancelled; it gets no answer where that is possible.
var ErrCancelled = errors.New("cancelled by the client")

// Handle answers one request of the client. Messages about it go to out. When
// the client cancels it, errors.Is(err, ErrCancelled).
func (s *Server) Handle(ctx context.Context, m *jsonrpc.Message, out Outlet) (mcp.Result, error) {
	return s.handle(ctx, m, out, s.call)
}

// HandleOwned is Handle for a transport that keeps track of requests itself: it
// refuses ids that are in flight, and cancels requests with [ErrCancelled].
func (s *Server) HandleOwned(ctx context.Context, m *jsonrpc.Message, out Outlet) (mcp.Result, error) {
	return s.handle(ctx, m, out, s.callOwned)
}

type callFunc func(ctx context.Context, id jsonrpc.ID, req *mcp.Request, out Outlet) (mcp.Result, error)

func (s *Server) handle(ctx context.Context, m *jsonrpc.Message, out Outlet, call callFunc) (mcp.Result, error) {
	method := mcp.MethodName(m.Method)
	switch method {
	case mcp.MethodInitialize:
		return s.Initialize(ctx, m)
	case mcp.MethodPing:
		return mcp.Result{}, nil
	}
	s.mu.Lock()
	meta := s.meta
	s.mu.Unlock()
	if meta.Revision == "" {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid Request: initialize has not been called")
	}
	if !m.Body.IsZero() && !m.Body.IsObject() {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: an object was expected")
	}
	switch method {
	case mcp.MethodSetLevel:
		return s.setLevel(m)
	case mcp.MethodSubscribe:
		return s.subscribe(ctx, m)
	case mcp.MethodUnsubscribe:
		return s.unsubscribe(m)
	case mcp.MethodListen, mcp.MethodDiscover:
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	if mcp.IsNotificationName(method) {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid Request: a notification has no id")
	}
	meta.ProgressToken = mcp.ReadProgressToken(&m.Meta)
	meta.TakesTasks = method == mcp.MethodCallTool
	return call(ctx, m.ID, &mcp.Request{Method: method, ID: m.ID, Params: m.Body, Meta: meta}, out)
}

// call hands a request to the handler, under the client's id so that it can be
// cancelled.
func (s *Server) call(ctx context.Context, id jsonrpc.ID, req *mcp.Request, out Outlet) (mcp.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	key := id.Key()
	if err := s.begin(key, cancel); err != nil {
		return mcp.Result{}, err
	}
	defer s.end(key)
	return s.callOwned(ctx, id, req, out)
}

func (s *Server) callOwned(ctx context.Context, _ jsonrpc.ID, req *mcp.Request, out Outlet) (mcp.Result, error) {
	result, err := s.complete(ctx, req, &caller{session: s, out: out, req: req})
	if errors.Is(context.Cause(ctx), ErrCancelled) {
		return mcp.Result{}, ErrCancelled
	}
	if err != nil {
		return mcp.Result{}, err
	}
	return forLegacyClient(req.Method, result)
}

// begin takes up a request, until end. Nobody would cancel one that begins after
// Close.
func (s *Server) begin(key string, cancel context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed, Public: "the session has ended"}
	}
	if _, taken := s.serving[key]; taken {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid Request: id %.80s is in flight already", key)
	}
	s.serving[key] = cancel
	return nil
}

func (s *Server) end(key string) {
	s.mu.Lock()
	delete(s.serving, key)
	s.mu.Unlock()
}

// Busy reports whether requests of the client are being served.
func (s *Server) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.serving) > 0
}

// Notified takes a notification of the client. It may wait for the handler.
func (s *Server) Notified(ctx context.Context, m *jsonrpc.Message) {
	method := mcp.MethodName(m.Method)
	switch method {
	case mcp.NotificationInitialized:
		s.openOwnListens()
		s.awaitOwnListens(ctx)
		return
	case mcp.NotificationCancelled:
		s.cancelled(m)
		return
	}
	s.mu.Lock()
	meta := s.meta
	s.mu.Unlock()
	if meta.Revision == "" || !mcp.IsNotificationName(method) {
		return
	}
	req := &mcp.Request{Method: method, Params: m.Body, Notification: true, Meta: meta}
	if _, err := s.handler.Handle(ctx, req, mcp.NoCaller{}); err != nil {
		s.opts.Logger.Debug("a notification was not taken", "method", method, "err", err)
	}
}

func (s *Server) cancelled(m *jsonrpc.Message) {
	raw, _ := m.Body.Lookup("requestId")
	id, ok := jsonrpc.RawID(raw)
	if !ok {
		return
	}
	s.mu.Lock()
	cancel := s.serving[id.Key()]
	s.mu.Unlock()
	if cancel != nil {
		cancel(ErrCancelled)
	}
}

// Answered takes the client's response to a question of ours and reports
// whether it answers one.
func (s *Server) Answered(m *jsonrpc.Message) bool {
	if m.ID.IsZero() {
		return false
	}
	call, loosely := s.asks.Respond(m)
	if loosely && call != nil {
		s.opts.Logger.Warn("the client answered under an id of another type", "id", m.ID.String())
	}
	return call != nil
}

func (s *Server) setLevel(m *jsonrpc.Message) (mcp.Result, error) {
	text, _ := m.Body.LookupString("level")
	level := mcp.Level(text)
	if !level.Valid() {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: level must be one of debug to emergency")
	}
	s.mu.Lock()
	if s.capabilities.Logging == nil {
		s.mu.Unlock()
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	s.meta.LogLevel = level
	s.mu.Unlock()
	s.reopenSessionListen()
	return mcp.Result{}, nil
}

// EndAnswers fails the questions that are open, and later ones: nothing more
// comes from the client.
func (s *Server) EndAnswers() {
	s.asks.Fail(&mcp.CallError{
		Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Public: "the client has stopped sending",
	}, true)
}

// forLegacyClient returns a result as a legacy client must get it.
func forLegacyClient(method string, r mcp.Result) (mcp.Result, error) {
	if r.IsZero() || !mcp.MayNeedInput(method) && method != mcp.MethodListTools {
		return r, nil
	}
	r.Value = r.Indexed() // of no cost if it is already
	if kind := r.Type(); kind != mcp.Complete {
		return mcp.Result{}, &mcp.CallError{
			Method: method, Kind: mcp.Unsupported, Outcome: mcp.Answered,
			Public: fmt.Sprintf("the server's result is of type %.40q, which this client's revision does not have", kind),
		}
	}
	switch method {
	case mcp.MethodCallTool:
		if structured := r.Get("structuredContent"); !structured.IsZero() && !structured.IsObject() {
			r.Value = jsonrpc.Edited(&r.Value, jsonrpc.Edit{Name: "structuredContent"})
		}
	case mcp.MethodListTools:
		r.Value = withoutForeignSchemas(r.Value)
	}
	return r, nil
}

// withoutForeignSchemas leaves out each tool's outputSchema that is not of type
// object, which legacy clients refuse.
func withoutForeignSchemas(list jsonrpc.Value) jsonrpc.Value {
	raw, _ := list.Lookup("tools")
	changed := false
	array := []byte{'['}
	for i, item := range jsonrpc.Elements(raw) {
		if i > 0 {
			array = append(array, ',')
		}
		tool := jsonrpc.Trusted(item)
		tool = tool.Indexed()
		schema := tool.Get("outputSchema")
		if kind, _ := schema.LookupString("type"); !schema.IsZero() && kind != "object" {
			changed = true
			array = jsonrpc.AppendEdited(array, &tool, jsonrpc.Edit{Name: "outputSchema"})
			continue
		}
		array = append(array, item...)
	}
	if !changed {
		return list
	}
	return jsonrpc.Edited(&list, jsonrpc.Edit{Name: "tools", Value: append(array, ']')})
}
