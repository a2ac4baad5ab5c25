package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// An Edge is a dialing edge: a Handler that sends requests to one server.
//
// Done is closed when the link to the server has ended, whoever ended it; Err
// then says why (mcp.ErrClosed after Close). Close ends it; calls in flight fail.
// Close may be called more than once and returns within a few seconds even if
// the server never answers.
type Edge interface {
	mcp.Handler
	// Server says what the edge is connected to.
	Server() ServerInfo
	Done() <-chan struct{}
	Err() error
	Close() error
}

// A ServerInfo is what a dialing edge has found out about its server.
type ServerInfo struct {
	Era      mcp.Era
	Revision mcp.Revision
	Discover mcp.Result // the server's DiscoverResult, or what its initialize says
}

// DialOptions configure a dialing edge. The zero value is usable.
type DialOptions struct {
	// Era is the server's, if it is known; NoEra finds out.
	Era mcp.Era
	// Client and Capabilities are what a legacy server is told in its
	// handshake, and a modern one in the probe, as JSON.
	Client       []byte
	Capabilities []byte
	// MaxCall ends a call whatever its progress; the time in which a question
	// of it is open does not count. Default DefaultMaxCall.
	MaxCall time.Duration
	Logger  *slog.Logger // nil for silence
}

// DefaultMaxCall is how long a call may take at most.
const DefaultMaxCall = time.Hour

// ProbeSilence is how long a server on a byte stream may leave server/discover
// unanswered before it is sent initialize as well.
const ProbeSilence = 5 * time.Second

func (o DialOptions) withDefaults() DialOptions {
	if o.Client == nil {
		o.Client = []byte(`{"name":"mcpsplice","version":"0"}`)
	}
	if o.Capabilities == nil {
		o.Capabilities = []byte("{}")
	}
	if o.MaxCall <= 0 {
		o.MaxCall = DefaultMaxCall
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Conn is a dialing edge over a byte stream.
type Conn struct {
	// Set at construction.
	link Link
	opts DialOptions
	log  limitedLogger

	calls inflight.Calls
	noise atomic.Int64

	batches atomic.Bool // the negotiated revision has them

	// Set by Dial before it returns.
	era  era
	info ServerInfo

	early  early // what came before the era was known
	done   chan struct{}
	closed atomic.Bool
	errMu  sync.Mutex
	err    error // guarded by errMu
}

// An era is how a Conn speaks to a server of one era.
type era interface {
	mcp.Handler
	// Notified and Asked are called by the read loop and do not wait.
	Notified(m *jsonrpc.Message, on *inflight.Call)
	Asked(ctx context.Context, m *jsonrpc.Message, on *inflight.Call)
}

// Dial makes a dialing edge of a link to a server: it finds out the server's
// era, unless that is given, and makes a legacy server's handshake. Ctx ends the
// dialing, not the edge. Dial owns the link: it is closed if Dial fails.
//
// If the link ended while the server was probed, errors.Is(err, ErrProbeEnded):
// some legacy servers exit at a request that they do not know.
func Dial(ctx context.Context, link Link, opts DialOptions) (*Conn, error) {
	c := &Conn{link: link, opts: opts.withDefaults(), done: make(chan struct{})}
	c.log = limitedLogger{logger: c.opts.Logger}
	go c.readLoop()
	if err := c.connect(ctx); err != nil {
		closeErr := c.Close()
		return nil, errors.Join(err, closeErr)
	}
	return c, nil
}

// ErrProbeEnded says that a server ended the link when it was asked for its
// era.
var ErrProbeEnded = errors.New("the server ended the link at server/discover")

// Handle implements [mcp.Handler].
func (c *Conn) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	return c.era.Handle(ctx, req, caller)
}

// Server implements [Edge].
func (c *Conn) Server() ServerInfo { return c.info }

// Done implements [Edge].
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err implements [Edge].
func (c *Conn) Err() error {
	c.errMu.Lock()
	defer c.errMu.Unlock()
	return c.err
}

// Close implements [Edge].
func (c *Conn) Close() error {
	c.closed.Store(true)
	err := c.link.Close()
	<-c.done
	return err
}

// Noise returns how many messages of the server were passed over because they
// were none, and Dropped how many notifications because nobody took them.
func (c *Conn) Noise() int64 { return c.noise.Load() }

// Dropped returns how many notifications were dropped because their call did
// not take them fast enough.
func (c *Conn) Dropped() int64 { return c.calls.Dropped() }

func (c *Conn) readLoop() {
	defer close(c.done)
	for {
		data, err := c.link.Read()
		var tooLong *jsonrpc.LineTooLongError
		switch {
		case err == nil:
			c.received(data)
		case errors.As(err, &tooLong):
			c.skip("line passed over", err)
			// It was a reply, most likely; whose cannot be told.
			c.calls.Fail(&mcp.CallError{
				Kind: mcp.LimitExceeded, Limit: "MaxLine", Outcome: mcp.MaybeExecuted, Err: err,
			}, false)
		default:
			c.ended(err)
			return
		}
	}
}

// ended fails what is in flight when the link has ended.
func (c *Conn) ended(err error) {
	switch {
	case c.closed.Load():
		err = mcp.ErrClosed
	case errors.Is(err, io.EOF):
		err = errors.New("the server closed its output")
	}
	if hint, ok := c.link.(framingHint); ok {
		if hint.SawLengthFraming() {
			err = fmt.Errorf("%w (the server seems to use Content-Length framing; MCP frames messages by newlines)", err)
		}
		if hint.Unterminated() {
			err = fmt.Errorf("%w in the middle of a message", err)
		}
	}
	c.errMu.Lock()
	c.err = err
	c.errMu.Unlock()
	c.calls.Fail(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: err}, true)
}

func (c *Conn) skip(what string, err error) {
	c.noise.Add(1)
	c.log.Warn(what, "err", err)
}

// received takes one message of the server.
func (c *Conn) received(data []byte) {
	var m jsonrpc.Message
	if err := jsonrpc.Scan(data, &m); err != nil {
		if jsonrpc.IsBatch(data) && c.batches.Load() {
			c.receivedBatch(data)
			return
		}
		c.unreadable(&m, err)
		return
	}
	switch m.Kind {
	case jsonrpc.Response:
		if call, loosely := c.calls.Respond(&m); call == nil {
			c.log.Debug("a response answers nothing", "id", m.ID.String())
		} else if loosely {
			c.log.Warn("a response has an id of another type", "id", m.ID.String(), "method", call.Request.Method)
		}
	default:
		c.early.dispatch(c, &m)
	}
}

func (c *Conn) receivedBatch(data []byte) {
	items, err := jsonrpc.SplitBatch(data)
	if err != nil {
		c.skip("batch passed over", err)
		return
	}
	for _, item := range items {
		if jsonrpc.IsBatch(item) {
			c.skip("batch within a batch passed over", nil)
			continue
		}
		c.received(item)
	}
}

// unreadable passes over what is no message; the call that it meant to answer,
// if that can be told, fails.
func (c *Conn) unreadable(m *jsonrpc.Message, err error) {
	c.skip("what the server wrote is no message", err)
	if m.Kind != jsonrpc.Response || m.ID.IsZero() {
		return
	}
	if n, ok := m.ID.Int(); ok {
		if call := c.calls.Get(n); call != nil {
			call.Finish(&mcp.CallError{
				Method: call.Request.Method, Kind: mcp.BadReply, Outcome: mcp.Answered,
				Err: err, Public: "the server's response is not valid",
			})
		}
	}
}

// dispatch hands a notification or request of the server to the era.
func (c *Conn) dispatch(m *jsonrpc.Message) {
	if m.Kind == jsonrpc.Request {
		c.era.Asked(context.Background(), m, nil)
		return
	}
	c.era.Notified(m, nil)
}

// maxEarly bounds what is kept until the era is known.
const maxEarly = 100

// early keeps what the server sends before its era is known.
type early struct {
	mu       sync.Mutex
	known    bool
	messages []jsonrpc.Message
}

func (e *early) dispatch(c *Conn, m *jsonrpc.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known {
		c.dispatch(m)
		return
	}
	if m.Kind == jsonrpc.Request && mcp.MethodName(m.Method) == mcp.MethodPing {
		// A legacy server may ping before the handshake is over.
		go func(id jsonrpc.ID) { _ = c.Reply(context.Background(), id, mcp.Result{}, nil) }(m.ID)
		return
	}
	if len(e.messages) < maxEarly {
		e.messages = append(e.messages, *m)
	}
}

// settle makes the era known and gives it what came before.
func (e *early) settle(c *Conn, era era) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.era, e.known = era, true
	for i := range e.messages {
		c.dispatch(&e.messages[i])
	}
	e.messages = nil
}

// Call sends a request for call and waits for its result. It is how an era
// speaks; see session.Wire.
func (c *Conn) Call(ctx context.Context, call *inflight.Call, method string, params *jsonrpc.Value, caller mcp.Caller) (mcp.Result, error) {
	if err := c.send(ctx, func(dst []byte) []byte {
		return jsonrpc.AppendRequest(dst, jsonrpc.IntID(call.ID), method, params)
	}); err != nil {
		return mcp.Result{}, c.notSent(method, err)
	}
	m, err := call.Wait(ctx, caller, c.limitFor(method))
	if err != nil {
		return mcp.Result{}, c.failed(ctx, call, method, err)
	}
	if m.Failed {
		return mcp.Result{}, jsonrpc.ReadError(&m.Body)
	}
	if !m.Body.IsObject() {
		return mcp.Result{}, &mcp.CallError{Method: method, Kind: mcp.BadReply, Outcome: mcp.Answered, Public: "the result is no object"}
	}
	return mcp.Result{Value: m.Body}, nil
}

func (c *Conn) limitFor(method string) time.Duration {
	if method == mcp.MethodListen || method == "tasks/result" {
		return 0
	}
	return c.opts.MaxCall
}

func (c *Conn) send(ctx context.Context, build func(dst []byte) []byte) error {
	return WithFrame(build, func(frame []byte) error {
		return c.link.Write(ctx, frame, c.calls.Len() > 1)
	})
}

func (c *Conn) notSent(method string, err error) error {
	e := &mcp.CallError{Method: method, Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: err}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind = mcp.TimedOut
	case errors.Is(err, context.Canceled):
		e.Kind = mcp.Cancelled
	default:
		if cause := c.Err(); cause != nil {
			e.Err = cause
		}
	}
	return e
}

// failed returns the error of a call that got no response, and tells the server
// if it still works on it.
func (c *Conn) failed(ctx context.Context, call *inflight.Call, method string, err error) error {
	if e, ok := errors.AsType[*mcp.CallError](err); ok {
		named := *e
		named.Method = method
		return &named
	}
	e := &mcp.CallError{Method: method, Kind: mcp.Cancelled, Outcome: mcp.MaybeExecuted, Err: err}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Kind = mcp.TimedOut
	}
	// "The initialize request MUST NOT be cancelled by clients" (2025-11-25,
	// utilities/cancellation).
	if method != mcp.MethodInitialize {
		c.sendCancelled(context.WithoutCancel(ctx), call.ID, string(e.Kind))
	}
	return e
}

// cancelWait bounds how long telling a server of a cancellation may wait for
// room in the queue.
const cancelWait = 100 * time.Millisecond

func (c *Conn) sendCancelled(ctx context.Context, id int64, reason string) {
	ctx, cancel := context.WithTimeout(ctx, cancelWait)
	defer cancel()
	params := jsonrpc.Edited(&jsonrpc.Value{},
		jsonrpc.Edit{Name: "requestId", Value: jsonrpc.IntID(id).Raw()},
		jsonrpc.Edit{Name: "reason", Value: jsonrpc.AppendString(nil, reason)})
	if err := c.Notify(ctx, mcp.NotificationCancelled, &params); err != nil {
		c.log.Debug("a cancellation was not sent", "err", err)
	}
}

// Notify sends a notification.
func (c *Conn) Notify(ctx context.Context, method string, params *jsonrpc.Value) error {
	return c.send(ctx, func(dst []byte) []byte { return jsonrpc.AppendNotification(dst, method, params) })
}

// Reply answers a request of a legacy server.
func (c *Conn) Reply(ctx context.Context, id jsonrpc.ID, result mcp.Result, err error) error {
	return c.send(ctx, func(dst []byte) []byte { return appendReply(dst, id, result, err) })
}

func appendReply(dst []byte, id jsonrpc.ID, result mcp.Result, err error) []byte {
	if err != nil {
		return jsonrpc.AppendError(dst, id, jsonrpc.ToWire(err))
	}
	return jsonrpc.AppendResult(dst, id, &result.Value)
}
