package transport

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/session"
)

// ServeOptions configure a listening edge over a byte stream. The zero value is
// usable.
type ServeOptions struct {
	// Era restricts which clients are served; NoEra serves both.
	Era mcp.Era
	// Fallback names a server that does not name itself.
	Fallback mcp.Implementation
	// Principal is who the client is for certain; the zero value for anonymous.
	Principal mcp.Principal
	// Grant is [mcp.Metadata.Grant] of its requests.
	Grant string
	// MaxInFlight is how many requests are served at a time. Default
	// DefaultMaxInFlight. Listen calls do not count.
	MaxInFlight int
	// MaxQueued is how many further requests wait their turn, with 64 MiB of
	// messages at most; one more is refused. Default DefaultMaxQueued.
	MaxQueued int
	// Backlog bounds what waits here and in others that share it; nil for no more
	// bounds than those. What it refuses is refused like one more than MaxQueued.
	Backlog *Backlog
	// Ordered serves requests one after the other, in the order of their
	// arrival. Listen calls and notifications do not wait for them.
	Ordered bool
	// Plain serves JSON-RPC as it is, with batches, and no MCP: every request
	// and notification goes to the handler.
	Plain bool
	// Park bounds the calls of a modern client that wait for its answer to a
	// question. They do not count against MaxInFlight, and end when the input
	// does.
	Park park.Options
	// MaxTaskWait is how long a call of a legacy client waits for the task that a
	// modern server has made of it. Default session.DefaultMaxTaskWait.
	MaxTaskWait time.Duration
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

// Bounds that are not configured.
const (
	maxListens       = 1024 // calls at a time
	maxNotifications = 256  // that wait for the handler; a further one is dropped
)

// Serve answers the messages of one client on a link by calling handler, until
// the client ends the link or ctx is done. It then takes no more requests, waits
// for those in flight, no longer than opts.Drain, closes the link and returns:
// nil if the client or ctx has ended it, an error if the link failed. Serve owns
// the link.
//
// Handlers run concurrently; notifications are handed to them in their order.
// One that panics fails its request only.
func Serve(ctx context.Context, link Link, handler mcp.Handler, opts ServeOptions) error {
	return newServer(link, handler, opts).run(ctx)
}

// A server is one running Serve.
type server struct {
	// Set at construction.
	link          Link
	handler       mcp.Handler
	opts          ServeOptions
	log           limitedLogger
	id            string // of the connection
	session       *session.Server
	lot           *park.Lot // handler for requests of modern clients
	workers       *workers  // for requests
	notifications *workers  // for notifications, which keep their order

	// Of requests; set by run. They outlive the context of Serve while it
	// drains.
	ctx    context.Context
	cancel context.CancelCauseFunc

	until    context.Context // that of Serve, at whose end no further requests are taken
	turn     turn
	ended    chan error   // gets the error that ended the input
	holder   holder       // the link, if it can hold messages back
	receipts acknowledger // the link, if it acknowledges messages
	sending  sender       // send

	// Owned by whoever has the turn.
	reader       *reader
	negotiated   chan struct{} // closed when the revision is known; nil before initialize
	initializing chan struct{} // closed when the last step of the handshake has been served

	mu      sync.Mutex
	serving map[string]*serving // requests by id, guarded by mu
	listens int                 // of them, guarded by mu
}

// A serving is a request that is being served or waits to be.
type serving struct {
	s      *server
	key    string // its id
	cancel context.CancelCauseFunc
	listen bool
	send   sender // of whoever serves it
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
		id:            "conn:" + rand.Text(),
		workers:       newWorkers(opts.MaxInFlight, opts.MaxQueued, opts.Backlog),
		notifications: newWorkers(1, maxNotifications, opts.Backlog),
		serving:       make(map[string]*serving),
	}
	s.sending = s.send
	s.turn.takeOver = func() { go s.takeOver() }
	s.handler = Guarded(handler, opts.Logger)
	if opts.Park.Logger == nil {
		opts.Park.Logger = opts.Logger
	}
	s.lot = park.New(s.handler, opts.Park)
	s.session = session.NewServer(s.handler, session.ServerOptions{
		Fallback: opts.Fallback, Principal: opts.Principal, Grant: opts.Grant, ID: s.id, Logger: opts.Logger,
		MaxTaskWait: opts.MaxTaskWait,
	})
	return s
}

// Guarded returns handler with a panic turned into the failure of the one
// request that it happened in, logged with its stack.
func Guarded(handler mcp.Handler, logger *slog.Logger) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (result mcp.Result, err error) {
		defer func() {
			if r := recover(); r != nil {
				logger.Error("a handler panicked", "method", req.Method, "id", req.ID.String(), "err", r, "stack", string(debug.Stack()))
				result, err = mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error")
			}
		}()
		return handler.Handle(ctx, req, caller)
	})
}

func (s *server) run(ctx context.Context) error {
	s.until = ctx
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	defer s.cancel(mcp.ErrClosed)
	s.holder, _ = s.link.(holder)
	s.receipts, _ = s.link.(acknowledger)
	s.ended = make(chan error, 1)
	go s.read()
	var err error
	select {
	case err = <-s.ended:
		s.ended <- nil
	case <-ctx.Done():
		// Reading goes on: a handler may wait for the client's answer.
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.cancel(mcp.ErrClosed) // no answer reaches the client
	}
	s.drain()
	closed := s.closeLink()
	s.turn.stop()
	if hungUp(err) {
		return nil
	}
	return errors.Join(err, closed)
}

// closeLink closes the link and waits until nobody reads from it, no longer than
// closeWait: a terminal cannot be unblocked, and on Windows not even closed while it is
// read. Whoever reads or closes it then is left to himself.
func (s *server) closeLink() error {
	closed := make(chan error, 1)
	go func() { closed <- s.link.Close() }()
	late := time.NewTimer(closeWait)
	defer late.Stop()
	select {
	case err := <-closed:
		select {
		case <-s.ended:
		case <-late.C:
		}
		return err
	case <-late.C:
		return nil
	}
}

// hungUp reports whether a link ended with err because the peer has gone, which
// is how clients end it.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// lastMoment is how long requests whose time is up may take to say so, and what
// is still to be written may take to be taken.
const lastMoment = time.Second

// drain ends what waits for changes, and gives requests in flight and what is
// still to be written their time.
func (s *server) drain() {
	s.workers.close()
	s.notifications.close()
	s.endListens()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		// No answer of a modern client comes any more.
		s.lot.Close()
		s.workers.wait()
		s.notifications.wait()
		s.session.Close()
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), max(s.opts.Drain+lastMoment, s.opts.Drain))
	defer cancel()
	if !s.idleInTime(idle) {
		s.cancel(mcp.ErrClosed)
		// A handler that does not end with its context is left to itself.
		go s.session.Close()
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
	if f, ok := s.link.(flusher); ok {
		if err := f.Flush(ctx); err != nil {
			s.log.Debug("the last messages were not sent", "err", err)
		}
	}
}

// idleInTime waits until nothing is in flight, and reports false if that takes
// too long or no answer can reach the client any more.
func (s *server) idleInTime(idle <-chan struct{}) bool {
	timer := time.NewTimer(s.opts.Drain)
	defer timer.Stop()
	for ended := s.ended; ; {
		select {
		case <-idle:
			return true
		case <-timer.C:
			return false
		case err := <-ended:
			s.ended <- nil // run waits for it
			if err != nil && !errors.Is(err, io.EOF) {
				return false
			}
			ended = nil
		}
	}
}

// errDraining ends listen calls gracefully.
var errDraining = errors.New("the server is shutting down")

func (s *server) endListens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.serving {
		if r.listen {
			r.cancel(errDraining)
		}
	}
}

// read takes messages until the input ends or it loses the turn.
func (s *server) read() {
	s.reader = newReader(s)
	for {
		if s.holder != nil && !s.holder.Buffered() {
			s.holder.Kick()
		}
		data, err := s.link.Read()
		var tooLong *jsonrpc.LineTooLongError
		switch {
		case errors.As(err, &tooLong):
			s.refuse(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeParseError, "Parse error: %v", err))
		case err != nil:
			if s.holder != nil {
				s.holder.Kick()
			}
			s.session.EndAnswers()
			s.ended <- err
			return
		default:
			if !s.received(data) {
				return
			}
		}
	}
}

// received takes one line, and reports whether the caller is to read on.
func (s *server) received(data []byte) bool {
	m := messages.Get().(*jsonrpc.Message)
	if err := jsonrpc.Scan(data, m); err != nil {
		if jsonrpc.IsBatch(data) {
			s.batch(data)
		} else {
			s.unreadable(m, err)
		}
		return true
	}
	return s.message(m, data)
}

// messages holds messages to be used again.
var messages = sync.Pool{New: func() any { return new(jsonrpc.Message) }}

// recycle gives back a request that has been served, with the memory of its
// message, which is nil if that is not the request's own.
func (s *server) recycle(m *jsonrpc.Message, data []byte) {
	if data == nil {
		return
	}
	messages.Put(m)
	if r, ok := s.link.(recycler); ok {
		r.Recycle(data)
	}
}

// unreadable answers what is no message, unless it was to be a response or a
// notification, which MCP never answers.
func (s *server) unreadable(m *jsonrpc.Message, err error) {
	s.log.Warn("what the client wrote is no message", "err", err)
	wire := jsonrpc.ToWire(err)
	if m.Kind == jsonrpc.Response ||
		m.Kind == jsonrpc.Notification && wire.Code == jsonrpc.CodeInvalidRequest && !s.opts.Plain {
		if s.receipts != nil {
			s.receipts.Refuse(jsonrpc.ID{}, wire)
		}
		return
	}
	s.refuse(readableID(m), wire)
}

// readableID returns the id of what is no message, absent if it is not even UTF-8.
func readableID(m *jsonrpc.Message) jsonrpc.ID {
	id, _ := jsonrpc.RawID(m.ID.Raw())
	return id
}

// refuse answers a message that is not taken, or one of a batch.
func (s *server) refuse(id jsonrpc.ID, err *jsonrpc.Error) {
	if s.receipts != nil && s.receipts.Refuse(id, err) {
		return
	}
	s.send(func(dst []byte) []byte {
		if id.IsZero() && s.opts.Plain {
			return jsonrpc.AppendNullError(dst, err)
		}
		return jsonrpc.AppendError(dst, id, err)
	})
}

// send sends an answer. It waits for a client that does not read, as long as the
// link lasts.
func (s *server) send(build func(dst []byte) []byte) {
	err := WithFrame(build, func(frame []byte) error {
		return s.link.Write(context.WithoutCancel(s.ctx), frame, s.workers.busy.Load() > 1)
	})
	if err != nil {
		s.log.Debug("a message was not sent", "err", err)
	}
}

// Send implements session.Outlet.
func (s *server) Send(ctx context.Context, frame []byte) error {
	return s.link.Write(ctx, frame, false)
}
