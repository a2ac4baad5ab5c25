package streamable

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// ErrSessionLost says that the server does not know a legacy session any more.
var ErrSessionLost = errors.New("the server does not know the session any more")

// A trip is one call's way to the server and back: a POST, and the reading of
// its reply up to the response.
type trip struct {
	// Set at construction.
	conn   *Conn
	era    httpEra
	call   *inflight.Call
	header http.Header
	body   []byte
	handed *http.Request // that a goroutine goes on with; nil if none was handed over

	left     time.Duration               // of the time that the call may take, 0 for any; owned by run
	expired  atomic.Bool                 // a direct trip was ended by the limit of its time
	status   atomic.Int32                // of the reply; 0 until there is one
	answered atomic.Bool                 // by the reply to the POST
	busy     atomic.Pointer[StatusError] // why the server did not take the request
}

// appendRequest returns the request that a call sends.
func appendRequest(call *inflight.Call, params *jsonrpc.Value, edits []jsonrpc.Edit) []byte {
	const around = 96 // of params, at most, as methods are short
	size := len(params.Raw()) + around
	for i := range edits {
		size += len(edits[i].Name) + len(edits[i].Value)
	}
	return jsonrpc.AppendRequest(newBody(int64(size))[:0], call.WireID(), call.Request.Method, params, edits...)
}

// run sends the request and waits for its result.
func (t *trip) run(ctx context.Context, caller mcp.Caller) (mcp.Result, error) {
	if ctx.Err() != nil {
		return mcp.Result{}, givenUp(ctx, t.method(), mcp.NotSent, context.Cause(ctx))
	}
	t.left = t.limit()
	sending, stop := context.WithCancel(t.conn.ctx)
	if err := t.leave(ctx, &tripContext{Context: sending, values: ctx}, stop); err != nil {
		stop()
		return mcp.Result{}, &mcp.CallError{Method: t.method(), Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: err}
	}
	m, err := t.call.Wait(ctx, caller, t.left)
	if err != nil {
		return mcp.Result{}, t.failed(ctx, err, stop)
	}
	if !t.answered.Load() {
		stop() // the response came another way
	}
	if m.Failed {
		return mcp.Result{}, t.refusal(m)
	}
	if !m.Body.IsObject() {
		return mcp.Result{}, &mcp.CallError{Method: t.method(), Kind: mcp.BadReply, Outcome: mcp.Answered, Public: "the result is no object"}
	}
	transport.Lend(caller, m.Memory, recycle)
	return mcp.Result{Value: m.Body}, nil
}

// leave has the request sent and its reply read. Sending is its own context, which
// hangup ends.
func (t *trip) leave(ctx context.Context, sending *tripContext, hangup context.CancelFunc) error {
	if t.mayGoDirect() {
		return t.direct(ctx, sending, hangup)
	}
	return t.conn.depart(func() {
		defer hangup()
		rest := t.exchange(sending)
		t.conn.trips.Done()
		// The caller need not wait for this.
		discard(rest)
	})
}

// A tripContext ends with its trip and has the values of the call.
type tripContext struct {
	context.Context
	values   context.Context
	handover *handover // nil if the trip is made by one goroutine
}

// Value implements [context.Context].
func (c *tripContext) Value(key any) any {
	// How the context ends is among its own values.
	if own := c.Context.Value(key); own != nil {
		return own
	}
	return c.values.Value(key)
}

// refusal returns the error that a response holds.
func (t *trip) refusal(m *jsonrpc.Message) error {
	err := jsonrpc.ReadError(&m.Body)
	busy := t.busy.Load()
	if busy == nil {
		return err
	}
	return &busyError{err, busy}
}

// A busyError is a server's error that came with an HTTP status which says that the
// request was not executed, and when it may be.
type busyError struct {
	answer error
	status *StatusError
}

// Error implements error.
func (e *busyError) Error() string { return e.answer.Error() }

// Unwrap returns both.
func (e *busyError) Unwrap() []error { return []error{e.answer, e.status} }

func (t *trip) method() string { return t.call.Request.Method }

// opensConversation reports whether nothing is known of the server yet.
func (t *trip) opensConversation() bool {
	return t.method() == mcp.MethodInitialize || t.method() == mcp.MethodDiscover
}

// limit returns how long the call may take, 0 for as long as it likes.
func (t *trip) limit() time.Duration {
	if t.method() == mcp.MethodListen || t.method() == mcp.MethodTaskResult {
		return 0
	}
	return t.conn.opts.MaxCall
}

// failed returns the error of a call that got no response, and tells the server
// if it may still work on it.
func (t *trip) failed(ctx context.Context, err error, hangup context.CancelFunc) error {
	known, ok := errors.AsType[*mcp.CallError](err)
	// Of a task's result that got lost another answer is waited for.
	lost := ok && known.Outcome == mcp.MaybeExecuted && t.method() != mcp.MethodTaskResult
	abandoned := (!ok || lost) && !t.conn.lostServer()
	// "The initialize request MUST NOT be cancelled by clients" (2025-11-25,
	// utilities/cancellation).
	if abandoned && t.method() != mcp.MethodInitialize && !t.call.MakesTask {
		t.era.cancel(context.WithoutCancel(ctx), t.call, hangup)
	} else {
		hangup()
	}
	if !ok {
		return givenUp(ctx, t.method(), mcp.MaybeExecuted, err)
	}
	err = named(known, t.method())
	if t.call.Heard() {
		return mcp.Begun(err) // or it would be made again for who has seen that
	}
	return err
}

func named(e *mcp.CallError, method string) error {
	n := *e
	n.Method = method
	return &n
}

// givenUp returns the error of a message that ended with its context or its time.
func givenUp(ctx context.Context, method string, outcome mcp.Outcome, err error) error {
	e := &mcp.CallError{Method: method, Kind: mcp.Cancelled, Outcome: outcome, Err: err}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Kind = mcp.TimedOut
	}
	return e
}

// exchange makes the POST, reads its reply to the response, and ends the call.
// It returns the body of which there may be more.
func (t *trip) exchange(ctx context.Context) io.ReadCloser {
	resp, err := t.post(ctx)
	if err != nil {
		t.call.Finish(err)
		return http.NoBody
	}
	return t.answer(ctx, resp)
}

// answer is exchange when the reply has come.
func (t *trip) answer(ctx context.Context, resp *http.Response) io.ReadCloser {
	if err := t.era.accepted(t.call, resp); err != nil {
		t.call.Finish(err)
		return resp.Body
	}
	if isEventStream(resp) {
		return t.follow(ctx, resp.Body)
	}
	rest, err := t.readWhole(resp)
	t.call.Finish(err)
	return rest
}

// follow reads an event stream to the response and ends the call. It returns the
// body of which there may be more.
func (t *trip) follow(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	rest, err := t.respond(ctx, body)
	t.call.Finish(err)
	return rest
}

// post makes the POST. After an error there is nothing to read.
func (t *trip) post(ctx context.Context) (*http.Response, error) {
	var resp *http.Response
	var err error
	if t.handed != nil {
		resp, err = t.conn.complete(t.handed)
	} else {
		resp, err = t.conn.send(ctx, http.MethodPost, t.body, t.header)
	}
	if err != nil {
		return nil, err
	}
	if _, short := resp.Body.(*shortBody); short {
		// Net/http may still write, or look at, a body whose reply has come.
		recycle(t.body)
		t.body = nil
	}
	t.status.Store(int32(resp.StatusCode))
	return resp, nil
}

// readWhole takes the response from a reply that is no event stream. It returns the
// body of which there may be more.
func (t *trip) readWhole(resp *http.Response) (io.ReadCloser, error) {
	whole, err := t.readReply(resp)
	if whole {
		_ = resp.Body.Close()
		return http.NoBody, err
	}
	return resp.Body, err
}

func isEventStream(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream"
}

func mediaType(resp *http.Response) string {
	value := resp.Header.Get("Content-Type")
	if value == "application/json" || value == "text/event-stream" {
		return value
	}
	kind, _, err := mime.ParseMediaType(value)
	if err != nil {
		return ""
	}
	return kind
}

// newHeader returns the headers of a request of an era.
func (c *Conn) newHeader(era httpEra) http.Header {
	header := make(http.Header, len(c.origin.header)+8)
	maps.Copy(header, c.origin.header)
	header["Accept"] = anyReply
	header["Content-Type"] = jsonType
	era.prepare(header)
	return header
}

var anyReply = []string{usualAccept}

// notAnswered returns the error of a request that got no reply.
func (s *site) notAnswered(ctx context.Context, err error) error {
	e := &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: s.origin.brief(err)}
	redirect, isRedirect := errors.AsType[*redirectError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isRedirect:
		e.Kind, e.Outcome, e.Public = mcp.BadReply, mcp.Answered, s.origin.beginning([]byte(redirect.reason), reasonBytes)
	case neverConnected(err):
		e.Kind, e.Outcome, e.Public = mcp.Unreachable, mcp.NotSent, "the server cannot be reached"
	}
	return e
}

// neverConnected reports whether an error is from before there was a connection
// that a request, or any of it, could be sent on.
func neverConnected(err error) bool {
	op, isOp := errors.AsType[*net.OpError](err)
	_, isName := errors.AsType[*net.DNSError](err)
	_, isUnsent := errors.AsType[*unsentError](err)
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	return isOp && (op.Op == "dial" || op.Op == "proxyconnect") ||
		isName || isUnsent || isCertificate || errors.Is(err, http.ErrSchemeMismatch)
}

// Bounds of reading what is left of a reply that has served its purpose, so that
// its connection can be used again.
const (
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// discard reads the rest of a body, within bounds, and closes it.
func discard(body io.ReadCloser) {
	if body == http.NoBody {
		return
	}
	timer := time.AfterFunc(drainTime, func() { _ = body.Close() })
	_, _ = io.CopyN(io.Discard, body, drainBytes)
	timer.Stop()
	_ = body.Close()
}

// believedReply is how many bytes of memory a server gets for announcing a reply of
// that size.
const believedReply = 1 << 20

// readLimited reads the body of a reply, of at most limit bytes.
func readLimited(resp *http.Response, limit int) ([]byte, error) {
	size := resp.ContentLength
	if size > int64(limit) {
		return nil, replyTooLong(limit)
	}
	data, err := readAll(resp.Body, size, int64(limit), believedReply)
	if errors.Is(err, errTooLarge) {
		return nil, replyTooLong(limit)
	}
	return data, err
}

func replyTooLong(limit int) error {
	return &mcp.CallError{
		Kind: mcp.LimitExceeded, Limit: "MaxBody", Outcome: mcp.Answered,
		Public: fmt.Sprintf("the reply is longer than %d bytes", limit),
	}
}
