package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A StatusError is an HTTP reply that holds no JSON-RPC message.
type StatusError struct {
	Status      int
	ContentType string
	Excerpt     string // the beginning of the body, at most 200 bytes
}

// Error names the status and what came with it.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
	if e.Status == http.StatusOK {
		s = "unexpected content type " + fmt.Sprintf("%q", e.ContentType)
	}
	if e.Excerpt != "" {
		s += fmt.Sprintf(": %q", e.Excerpt)
	}
	return s
}

// An AuthError is a reply of 401 or 403: the server wants authorization.
type AuthError struct {
	Status     int
	Challenges []string // the values of WWW-Authenticate, as they came
}

// Error names the status and the challenges.
func (e *AuthError) Error() string {
	s := fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
	if len(e.Challenges) > 0 {
		s += " [WWW-Authenticate: " + strings.Join(e.Challenges, ", ") + "]"
	}
	return s
}

// roundTrip sends a request for call and waits for its result.
func (c *Conn) roundTrip(ctx context.Context, call *inflight.Call, method string, body []byte, header http.Header, caller mcp.Caller) (mcp.Result, error) {
	sending, stop := context.WithCancel(ctx)
	unhook := context.AfterFunc(c.ctx, stop)
	if !c.start(func() {
		// Goes on beside the caller while the rest of a reply is read.
		defer stop()
		defer unhook()
		c.exchange(sending, call, body, header)
	}) {
		stop()
		call.Finish(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: mcp.ErrClosed})
	}
	limit := c.opts.MaxCall
	if method == mcp.MethodListen {
		limit = 0
	}
	m, err := call.Wait(ctx, caller, limit)
	if err != nil {
		stop()
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

// failed returns the error of a call that got no response.
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
	if c.era != nil && method != mcp.MethodInitialize {
		c.era.cancel(context.WithoutCancel(ctx), call)
	}
	return e
}

// exchange makes the POST of a call, reads its reply to the response, and ends
// the call.
func (c *Conn) exchange(ctx context.Context, call *inflight.Call, body []byte, header http.Header) {
	resp, err := c.send(ctx, http.MethodPost, body, header)
	if err != nil {
		call.Finish(err)
		return
	}
	defer discard(resp.Body)
	if resp.StatusCode == http.StatusNotFound && c.era != nil && c.era.lost() {
		c.mark(ErrSessionLost)
		call.Finish(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: ErrSessionLost})
		c.end(ErrSessionLost)
		return
	}
	if e, ok := c.era.(*legacyEra); ok {
		e.answered(resp)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" && resp.StatusCode == http.StatusOK {
		call.Finish(c.readEvents(ctx, call, resp.Body))
		return
	}
	call.Finish(c.readReply(call, resp, kind))
}

// send makes one HTTP request. The error says whether it reached the server.
func (c *Conn) send(ctx context.Context, method string, body []byte, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: err}
	}
	maps.Copy(req.Header, c.opts.Header)
	maps.Copy(req.Header, header)
	if c.opts.Tap != nil && body != nil {
		c.opts.Tap(true, body)
	}
	resp, err := c.http.Do(req)
	if err == nil {
		return resp, nil
	}
	e := &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: err}
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case isOp && op.Op == "dial", isNameError(err):
		e.Kind, e.Outcome, e.Public = mcp.Unreachable, mcp.NotSent, "the server cannot be reached"
	case strings.Contains(err.Error(), "redirect"):
		e.Kind, e.Outcome, e.Public = mcp.BadReply, mcp.Answered, "the server redirects to where it is not followed"
	}
	return nil, e
}

func isNameError(err error) bool {
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// Bounds of reading what is left of a reply that has served its purpose, so that
// its connection can be used again.
const (
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// discard reads the rest of a body, within bounds, and closes it.
func discard(body io.ReadCloser) {
	timer := time.AfterFunc(drainTime, func() { _ = body.Close() })
	_, _ = io.CopyN(io.Discard, body, drainBytes)
	timer.Stop()
	_ = body.Close()
}

// readReply takes the one message of a reply that is no event stream. It
// returns why there is none.
func (c *Conn) readReply(call *inflight.Call, resp *http.Response, kind string) error {
	data, err := readLimited(resp.Body, c.opts.MaxBody)
	if e, ok := errors.AsType[*mcp.CallError](err); ok {
		return e
	}
	if err != nil {
		return &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: fmt.Errorf("the reply was cut off: %w", err)}
	}
	if c.opts.Tap != nil && len(data) > 0 {
		c.opts.Tap(false, data)
	}
	if kind == "application/json" {
		if done, err := c.take(call, data, resp.StatusCode); done {
			return err
		}
	}
	return c.badStatus(resp, data)
}

// take gives a body's message, or the messages of its batch, to the call, and
// reports whether they settle it.
func (c *Conn) take(call *inflight.Call, data []byte, status int) (bool, error) {
	if jsonrpc.IsBatch(data) && c.batches() {
		items, err := jsonrpc.SplitBatch(data)
		if err != nil {
			return true, badReply(err)
		}
		for _, item := range items {
			if done, err := c.takeOne(call, item, status); done {
				return true, err
			}
		}
		return false, nil
	}
	return c.takeOne(call, data, status)
}

func (c *Conn) batches() bool {
	e, ok := c.era.(*legacyEra)
	return ok && e.client.Revision().HasBatches()
}

func (c *Conn) takeOne(call *inflight.Call, data []byte, status int) (bool, error) {
	var m jsonrpc.Message
	if err := jsonrpc.Scan(data, &m); err != nil {
		if status != http.StatusOK {
			return false, nil
		}
		return true, badReply(err)
	}
	if m.Kind != jsonrpc.Response {
		return false, nil
	}
	// Errors about the HTTP request often carry no id.
	if !(m.ID.IsZero() && m.Failed) && !answers(&m, call) {
		return true, &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Err: fmt.Errorf("the reply is for id %s, not %d", m.ID, call.ID), Public: "the reply is for another id"}
	}
	call.Reply(&m)
	return true, nil
}

func badReply(err error) error {
	return &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Err: err, Public: "the server's reply is no JSON-RPC message"}
}

// answers reports whether a response is for a call.
func answers(m *jsonrpc.Message, call *inflight.Call) bool {
	if n, ok := m.ID.Int(); ok {
		return n == call.ID
	}
	n, ok := m.ID.LooseInt()
	return ok && n == call.ID
}

// badStatus returns what a reply without a message says.
func (c *Conn) badStatus(resp *http.Response, data []byte) error {
	e := &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Public: "the server answered with HTTP status " + resp.Status}
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden && resp.Header.Get("Www-Authenticate") != "":
		e.Err = &AuthError{Status: status, Challenges: resp.Header.Values("Www-Authenticate")}
	case status >= 200 && status < 300 && len(data) == 0:
		e.Public = "the server sent no response"
		e.Err = &StatusError{Status: status, ContentType: resp.Header.Get("Content-Type"), Excerpt: "(empty body)"}
	default:
		e.Err = &StatusError{Status: status, ContentType: resp.Header.Get("Content-Type"), Excerpt: excerpt(data)}
	}
	return e
}

func excerpt(data []byte) string {
	const most = 200
	if len(data) > most {
		data = data[:most]
	}
	return strings.ToValidUTF8(string(data), "")
}

// readEvents takes the events of a reply up to the response, and resumes the
// stream where the revision has that. It returns why there was no response.
func (c *Conn) readEvents(ctx context.Context, call *inflight.Call, body io.Reader) error {
	events := sse.NewReader(body, c.opts.MaxBody)
	for attempt := 0; ; attempt++ {
		progress, err := c.readStream(ctx, call, events)
		if err == nil || ctx.Err() != nil {
			return err
		}
		id, ok := events.LastEventID()
		if progress {
			attempt = 0
		}
		if !ok || id == "" || c.era == nil || !c.era.resumable() || attempt >= maxResumes {
			return err
		}
		resumed, rerr := c.resume(ctx, events, id)
		if rerr != nil {
			return errors.Join(err, rerr)
		}
		defer discard(resumed)
		next := sse.NewReader(resumed, c.opts.MaxBody)
		events = next
	}
}

// maxResumes is how often a stream is resumed that brings nothing new.
const maxResumes = 3

// defaultRetry is the wait before resuming if the server names none.
const defaultRetry = time.Second

// resume opens a broken stream again (2025-11-25, transports, Resumability).
func (c *Conn) resume(ctx context.Context, events *sse.Reader, id string) (io.ReadCloser, error) {
	wait, ok := events.Retry()
	if !ok {
		wait = defaultRetry
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	header := http.Header{"Accept": {"text/event-stream"}, lastEventID: {id}}
	c.era.prepare(header)
	resp, err := c.send(ctx, http.MethodGet, nil, header)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		defer discard(resp.Body)
		return nil, fmt.Errorf("resuming the stream: HTTP %d", resp.StatusCode)
	}
	return resp.Body, nil
}

// readStream takes events until the response of the call, for which it returns
// nil. Progress says that there were events.
func (c *Conn) readStream(ctx context.Context, call *inflight.Call, events *sse.Reader) (progress bool, err error) {
	for {
		e, err := events.Next()
		if err != nil {
			return progress, c.streamEnded(call, events, err)
		}
		progress = true
		if len(e.Data) == 0 || e.Name != "" {
			continue
		}
		if c.opts.Tap != nil {
			c.opts.Tap(false, e.Data)
		}
		if c.event(ctx, call, e.Data) {
			return true, nil
		}
	}
}

// event takes one event's message and reports whether it was the response.
func (c *Conn) event(ctx context.Context, call *inflight.Call, data []byte) bool {
	if jsonrpc.IsBatch(data) && c.batches() {
		items, err := jsonrpc.SplitBatch(data)
		if err != nil {
			c.log.Warn("an event is no message", "err", err)
			return false
		}
		responded := false
		for _, item := range items {
			responded = c.event(ctx, call, item) || responded
		}
		return responded
	}
	var m jsonrpc.Message
	if err := jsonrpc.Scan(data, &m); err != nil {
		c.log.Warn("an event is no message", "err", err)
		if m.Kind == jsonrpc.Response && answers(&m, call) {
			call.Finish(badReply(err))
			return true
		}
		return false
	}
	switch m.Kind {
	case jsonrpc.Notification:
		c.notified(&m, call)
	case jsonrpc.Request:
		c.asked(ctx, &m, call)
	case jsonrpc.Response:
		if !answers(&m, call) && !(m.ID.IsZero() && m.Failed) {
			c.log.Debug("a response answers nothing", "id", m.ID.String())
			return false
		}
		call.Reply(&m)
		return true
	}
	return false
}

func (c *Conn) notified(m *jsonrpc.Message, call *inflight.Call) {
	if c.era != nil {
		c.era.notified(m, call)
	}
}

func (c *Conn) asked(ctx context.Context, m *jsonrpc.Message, call *inflight.Call) {
	if c.era != nil {
		c.era.asked(ctx, m, call)
	}
}

// streamEnded returns the error of a stream that ended before the response. An
// event that the end cut off is lost, as the standard has it, unless it is the
// whole response.
func (c *Conn) streamEnded(call *inflight.Call, events *sse.Reader, err error) error {
	if tooLarge, ok := errors.AsType[*sse.TooLargeError](err); ok {
		return &mcp.CallError{Kind: mcp.LimitExceeded, Limit: "MaxBody", Outcome: mcp.MaybeExecuted, Err: tooLarge}
	}
	if data, _ := events.Partial(); data != nil {
		var m jsonrpc.Message
		if jsonrpc.Scan(data, &m) == nil && m.Kind == jsonrpc.Response && answers(&m, call) {
			c.log.Warn("the response was the last event of a stream and not terminated", "id", m.ID.String())
			call.Reply(&m)
			return nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the event stream ended without a response for id %d", call.ID)
	}
	return &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: err}
}
