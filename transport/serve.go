package transport

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// ServeOptions configure a listening edge over a byte stream. The zero value is
// usable.
type ServeOptions struct {
	// Era restricts which clients are served; NoEra serves both.
	Era mcp.Era
	// Fallback names a server that does not name itself.
	Fallback  mcp.Implementation
	Principal mcp.Principal
	// MaxInFlight is how many requests are served at a time. Default
	// DefaultMaxInFlight. Listen calls do not count.
	MaxInFlight int
	// MaxQueued is how many further requests wait their turn; one more is
	// refused. Default DefaultMaxQueued.
	MaxQueued int
	// Ordered serves requests one after the other, in the order of their
	// arrival. Listen calls and notifications do not wait.
	Ordered bool
	// Plain serves JSON-RPC as it is, with batches, and no MCP: every request
	// and notification goes to the handler.
	Plain bool
	// Drain is how long Serve waits for requests in flight when the input has
	// ended or ctx is done. Default DefaultDrain.
	Drain  time.Duration
	Logger *slog.Logger // nil for silence
}

// Defaults of [ServeOptions].
const (
	DefaultMaxInFlight = 64
	DefaultMaxQueued   = 1024
	DefaultDrain       = 10 * time.Second
)

// Serve answers the messages of one client on a link by calling handler, until
// the client ends the link or ctx is done. It then waits for requests in flight,
// no longer than opts.Drain, closes the link and returns: nil after an end of
// the input or ctx, an error if the link failed.
//
// Handlers run concurrently. One that panics fails its request only.
func Serve(ctx context.Context, link Link, handler mcp.Handler, opts ServeOptions) error {
	s := newServer(link, handler, opts)
	err := s.run(ctx)
	return errors.Join(err, link.Close())
}

// A server is one running Serve.
type server struct {
	// Set at construction.
	link    Link
	handler mcp.Handler
	opts    ServeOptions
	log     limitedLogger
	session *session.Server
	workers *workers
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	serving map[string]context.CancelCauseFunc // modern requests by id, guarded by mu
}

func newServer(link Link, handler mcp.Handler, opts ServeOptions) *server {
	if opts.MaxInFlight <= 0 {
		opts.MaxInFlight = DefaultMaxInFlight
	}
	if opts.MaxQueued <= 0 {
		opts.MaxQueued = DefaultMaxQueued
	}
	if opts.Ordered {
		opts.MaxInFlight = 1
	}
	if opts.Drain <= 0 {
		opts.Drain = DefaultDrain
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &server{
		link: link, opts: opts, log: limitedLogger{logger: opts.Logger},
		workers: newWorkers(opts.MaxInFlight, opts.MaxQueued),
		serving: make(map[string]context.CancelCauseFunc),
	}
	s.handler = Guarded(handler, opts.Logger)
	s.session = session.NewServer(s.handler, session.ServerOptions{
		Fallback: opts.Fallback, Principal: opts.Principal, ID: "conn:" + rand.Text(), Logger: opts.Logger,
	})
	return s
}

// Guarded returns handler with a panic turned into the failure of the one
// request that it happened in, logged with its stack.
func Guarded(handler mcp.Handler, logger *slog.Logger) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (result mcp.Result, err error) {
		defer func() {
			if r := recover(); r != nil {
				logger.Error("a handler panicked", "method", req.Method, "err", r, "stack", string(debug.Stack()))
				result, err = mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error")
			}
		}()
		return handler.Handle(ctx, req, caller)
	})
}

func (s *server) run(ctx context.Context) error {
	// Requests outlive ctx while Serve drains.
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	defer s.cancel(mcp.ErrClosed)
	ended := make(chan error, 1)
	stop := make(chan struct{})
	go func() { ended <- s.read(stop) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		close(stop)
	}
	s.drain()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// drain ends what waits for changes, and gives requests in flight their time.
func (s *server) drain() {
	s.workers.close()
	s.endListens()
	idle := make(chan struct{})
	go func() {
		s.workers.wait()
		close(idle)
	}()
	timer := time.NewTimer(s.opts.Drain)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		s.cancel(mcp.ErrClosed)
		<-idleOr(idle, time.Second)
	}
	s.session.Close()
}

// idleOr returns a channel that is closed with idle or after d.
func idleOr(idle <-chan struct{}, d time.Duration) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		select {
		case <-idle:
		case <-time.After(d):
		}
	}()
	return out
}

// errDraining ends listen calls gracefully.
var errDraining = errors.New("the server is shutting down")

const listenPrefix = "listen "

func (s *server) endListens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, cancel := range s.serving {
		if len(key) > len(listenPrefix) && key[:len(listenPrefix)] == listenPrefix {
			cancel(errDraining)
		}
	}
}

// read takes messages until the input ends or stop is closed.
func (s *server) read(stop <-chan struct{}) error {
	for {
		data, err := s.link.Read()
		select {
		case <-stop:
			return nil
		default:
		}
		var tooLong *jsonrpc.LineTooLongError
		switch {
		case errors.As(err, &tooLong):
			s.refuse(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeParseError, "Parse error: %v", err))
		case err != nil:
			return err
		default:
			s.received(data)
		}
	}
}

// received takes one line.
func (s *server) received(data []byte) {
	m := new(jsonrpc.Message)
	if err := jsonrpc.Scan(data, m); err != nil {
		if jsonrpc.IsBatch(data) {
			s.batch(data)
			return
		}
		s.unreadable(m, err)
		return
	}
	s.message(m)
}

// unreadable answers what is no message, unless it was to be a response or a
// notification.
func (s *server) unreadable(m *jsonrpc.Message, err error) {
	s.log.Warn("what the client wrote is no message", "err", err)
	if m.Kind == jsonrpc.Response {
		return
	}
	s.refuse(m.ID, jsonrpc.ToWire(err))
}

func (s *server) refuse(id jsonrpc.ID, err *jsonrpc.Error) {
	s.send(func(dst []byte) []byte {
		if id.IsZero() && s.opts.Plain {
			return jsonrpc.AppendNullError(dst, err)
		}
		return jsonrpc.AppendError(dst, id, err)
	})
}

func (s *server) send(build func(dst []byte) []byte) {
	err := WithFrame(build, func(frame []byte) error { return s.link.Write(s.ctx, frame, s.workers.busy.Load() > 1) })
	if err != nil {
		s.log.Debug("a message was not sent", "err", err)
	}
}

// Send implements session.Outlet.
func (s *server) Send(ctx context.Context, frame []byte) error {
	return s.link.Write(ctx, frame, false)
}

// message takes one message that has been scanned.
func (s *server) message(m *jsonrpc.Message) {
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
		s.modernRequest(m)
	case s.opts.Era == mcp.Modern:
		s.refuse(m.ID, s.legacyRefusal(m))
	default:
		s.legacyRequest(m)
	}
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
// hold it up, except those that must act in their order.
func (s *server) notification(m *jsonrpc.Message) {
	switch mcp.MethodName(m.Method) {
	case mcp.NotificationCancelled:
		s.cancelModern(m)
		s.session.Notified(s.ctx, m)
	case mcp.NotificationInitialized:
		s.session.SetOutlet(s)
	default:
		s.workers.beside(func() { s.session.Notified(s.ctx, m) })
	}
}

func (s *server) cancelModern(m *jsonrpc.Message) {
	raw, _ := m.Body.Lookup("requestId")
	id, ok := jsonrpc.RawID(raw)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range [...]string{id.Key(), listenPrefix + id.Key()} {
		if cancel := s.serving[key]; cancel != nil {
			cancel(session.ErrCancelled)
		}
	}
}

// legacyRequest serves a request of the session. Those that change the session
// take effect before the next message is read.
func (s *server) legacyRequest(m *jsonrpc.Message) {
	switch mcp.MethodName(m.Method) {
	case mcp.MethodPing:
		s.answerLegacy(m)
		return
	case mcp.MethodInitialize:
		// Nothing can follow before its answer; and the answer may need the
		// handler, which may need us.
		s.workers.beside(func() { s.answerLegacy(m) })
		return
	}
	if !s.workers.run(func() { s.answerLegacy(m) }) {
		s.refuse(m.ID, s.tooMany())
	}
}

// tooMany is the answer to a request that there is no room for.
func (s *server) tooMany() *jsonrpc.Error {
	return jsonrpc.ToWire(&mcp.CallError{
		Kind: mcp.LimitExceeded, Limit: "MaxQueued", Outcome: mcp.NotSent,
		Public: fmt.Sprintf("%d requests are in flight and %d wait", s.opts.MaxInFlight, s.opts.MaxQueued),
	})
}

func (s *server) answerLegacy(m *jsonrpc.Message) {
	result, err := s.session.Handle(s.ctx, m, s)
	if errors.Is(err, session.ErrCancelled) {
		return
	}
	s.send(func(dst []byte) []byte { return appendReply(dst, m.ID, result, err) })
}

// modernRequest serves a request that carries its own metadata.
func (s *server) modernRequest(m *jsonrpc.Message) {
	req, refusal := ModernRequest(m, s.opts.Era)
	if refusal != nil {
		s.refuse(m.ID, refusal)
		return
	}
	req.Meta.Principal = s.opts.Principal
	req.Meta.Session = "" // the connection of a modern client is no session
	key := m.ID.Key()
	ctx, cancel := context.WithCancelCause(s.ctx)
	if req.Method == mcp.MethodListen {
		key = listenPrefix + key
	}
	if !s.begin(key, cancel) {
		cancel(nil)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid Request: id %.80s is in flight already", m.ID.Raw()))
		return
	}
	run := s.workers.run
	if req.Method == mcp.MethodListen {
		run = s.workers.beside
	}
	if !run(func() {
		defer s.finish(key, cancel)
		s.answerModern(ctx, req, m.ID)
	}) {
		s.finish(key, cancel)
		s.refuse(m.ID, s.tooMany())
	}
}

func (s *server) begin(key string, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.serving[key]; taken {
		return false
	}
	s.serving[key] = cancel
	return true
}

func (s *server) finish(key string, cancel context.CancelCauseFunc) {
	cancel(nil)
	s.mu.Lock()
	delete(s.serving, key)
	s.mu.Unlock()
}

func (s *server) answerModern(ctx context.Context, req *mcp.Request, id jsonrpc.ID) {
	caller := &ModernCaller{Out: s, Request: req, ID: id}
	result, err := s.handler.Handle(ctx, req, caller)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, session.ErrCancelled):
		return
	case errors.Is(cause, errDraining):
		result, err = mcp.Result{}, nil
	}
	reply := NewModernReply(req, id, result, err, s.opts.Era)
	s.send(reply.AppendTo)
}

// batch takes a batch, which only one legacy revision has.
func (s *server) batch(data []byte) {
	if s.opts.Plain {
		s.plainBatch(data)
		return
	}
	items, err := jsonrpc.SplitBatch(data)
	switch {
	case err != nil:
		s.refuse(jsonrpc.ID{}, jsonrpc.ToWire(err))
		return
	case !s.session.Revision().HasBatches():
		s.refuse(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Invalid Request: batches are part of revision %s only", mcp.Revision20250326))
		return
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
		s.message(m)
	}
}
