package streamable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A StatusError is an HTTP reply that holds no JSON-RPC message, or says besides its
// error that it is the wrong time: by the status 429, or by naming another one
// ([StatusError.RetryAfter]).
type StatusError struct {
	Status      int
	ContentType string
	Excerpt     string // the beginning of the body, at most 200 bytes
	// RetryAfter is how long the server wants to be left alone, 0 if it does
	// not say.
	RetryAfter time.Duration
}

// Error names the status and what came with it.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
	switch {
	case e.Excerpt == "":
		return s + " with an empty body"
	case e.Status >= 200 && e.Status < 300 && e.ContentType != "application/json":
		s += fmt.Sprintf(" with the unexpected content type %q", e.ContentType)
	}
	return s + fmt.Sprintf(": %q", e.Excerpt)
}

// retryAfter returns how long a server wants to be left alone, 0 if it does not
// say: seconds, or a date (RFC 9110, section 10.2.3).
func retryAfter(resp *http.Response) time.Duration {
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 && seconds < 1<<31 {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(time.Until(date), 0)
	}
	return 0
}

// An AuthError is a reply of 401 or 403: the server wants authorization.
type AuthError struct {
	Status     int
	Challenges []string // the values of WWW-Authenticate, without our secrets
}

// Error names the status and the challenges.
func (e *AuthError) Error() string {
	s := fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
	if len(e.Challenges) > 0 {
		s += " [WWW-Authenticate: " + strings.Join(e.Challenges, ", ") + "]"
	}
	return s
}

// wantsAuthorization reports whether a reply is a challenge. Whatever its body
// says, it is not the server's answer to the call.
func wantsAuthorization(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusForbidden && resp.Header.Get("Www-Authenticate") != ""
}

func isSuccess(status int) bool { return status >= 200 && status < 300 }

// readReply takes the response from a reply that is no event stream. It returns
// whether the body was read to its end, and why there is no response.
func (t *trip) readReply(resp *http.Response) (whole bool, _ error) {
	data, err := readLimited(resp, t.conn.opts.MaxBody)
	if e, ok := errors.AsType[*mcp.CallError](err); ok { // it is too long
		e.Outcome = outcomeOf(resp.StatusCode)
		return false, e
	}
	if err != nil {
		return false, &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: fmt.Errorf("the reply was cut off: %w", t.conn.origin.brief(err))}
	}
	return true, t.readBody(resp, data)
}

// readBody takes the response from the body of a reply.
func (t *trip) readBody(resp *http.Response, data []byte) error {
	if t.conn.opts.Tap != nil && len(data) > 0 {
		t.conn.opts.Tap(false, data)
	}
	isJSON := mediaType(resp) == "application/json" && len(data) > 0
	lost := saysSessionLost(resp, t.header, data)
	switch {
	case wantsAuthorization(resp), resp.StatusCode == http.StatusMethodNotAllowed, !isJSON && !lost:
		return t.conn.badStatus(resp, data) // whatever the body says, it is no answer to the call
	case lost && !t.refusesMethod(data):
		return t.conn.sessionLost()
	}
	if !isSuccess(resp.StatusCode) {
		if status := t.conn.statusError(resp, data); status.RetryAfter > 0 || status.Status == http.StatusTooManyRequests {
			t.busy.Store(status)
		}
	}
	responded, err := t.takeBody(data)
	switch {
	case responded:
		return nil
	case !isSuccess(resp.StatusCode):
		return t.conn.badStatus(resp, data)
	}
	seen := error(t.conn.statusError(resp, data))
	if err != nil {
		seen = fmt.Errorf("%w (%w)", err, seen)
	}
	failure := badReply(seen)
	failure.Outcome = outcomeOf(resp.StatusCode)
	return failure
}

// saysSessionLost reports whether a reply with data as its body says that the
// session that a request named is not known (2025-11-25, transports, Session
// Management). Many servers say so with the status for requests that name none.
func saysSessionLost(resp *http.Response, sent http.Header, data []byte) bool {
	switch {
	case sent[sessionHeader] == nil:
		return false
	case resp.StatusCode == http.StatusNotFound:
		return true
	case resp.StatusCode != http.StatusBadRequest:
		return false
	}
	var m jsonrpc.Message
	if jsonrpc.Scan(data, &m) != nil || !m.Failed {
		return false
	}
	e := jsonrpc.ReadError(&m.Body)
	return (e.Code == codeNoSession || e.Code == jsonrpc.CodeInvalidRequest) &&
		strings.Contains(strings.ToLower(e.Message), "no valid session")
}

// codeNoSession is what servers made after the examples of the TypeScript SDK
// answer to sessions that they do not know.
const codeNoSession = -32000

// refusesMethod reports whether data says that the method of the call is not
// known, which modern servers answer with the same status as a lost session.
func (t *trip) refusesMethod(data []byte) bool {
	var m jsonrpc.Message
	return jsonrpc.Scan(data, &m) == nil && m.Failed && answers(&m, t.call) &&
		jsonrpc.ReadError(&m.Body).Code == jsonrpc.CodeMethodNotFound
}

// sessionLost ends the connection and returns the error of a call that proves
// that it must: it was not executed.
func (c *Conn) sessionLost() error {
	c.end(ErrSessionLost)
	return &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: ErrSessionLost}
}

func badReply(err error) *mcp.CallError {
	return &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Err: err, Public: "the server's reply is no JSON-RPC response to the request"}
}

// takeBody is take for a body, whose memory is nobody else's.
func (t *trip) takeBody(data []byte) (responded bool, err error) {
	if jsonrpc.IsBatch(data) {
		return t.take(data)
	}
	return t.message(data, data)
}

// take takes the message in data, or the messages of the batch that it is, and
// reports whether the response was among them. The error says what else there
// was.
func (t *trip) take(data []byte) (responded bool, err error) {
	if !jsonrpc.IsBatch(data) || !t.era.batches() {
		return t.message(data, nil)
	}
	items, err := jsonrpc.SplitBatch(data)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		done, ierr := t.message(item, nil)
		responded = responded || done
		err = errors.Join(err, ierr)
	}
	return responded, err
}

// message takes one message and reports whether it was the response. The error
// says what it was if it is of no use. Memory is what may be used again after it.
func (t *trip) message(data, memory []byte) (responded bool, err error) {
	var m jsonrpc.Message
	if err := jsonrpc.Scan(data, &m); err != nil {
		if m.Kind == jsonrpc.Response && answers(&m, t.call) {
			t.call.Finish(badReply(err))
			return true, nil
		}
		t.conn.passedOver(&m)
		return false, err
	}
	switch m.Kind {
	case jsonrpc.Notification:
		t.era.notified(&m, t.call)
		return false, nil
	case jsonrpc.Request:
		t.era.asked(&m, t.call)
		return false, nil
	}
	// Errors about the HTTP request often carry no id.
	if !answers(&m, t.call) && !(m.ID.IsZero() && m.Failed) {
		return false, fmt.Errorf("a response to id %.80s, not %d", m.ID, t.call.ID)
	}
	m.Memory = memory
	t.reply(&m)
	return true, nil
}

// reply gives the call its response.
func (t *trip) reply(m *jsonrpc.Message) {
	t.answered.Store(true)
	t.call.Reply(m)
}

// answers reports whether a response is for a call.
func answers(m *jsonrpc.Message, call *inflight.Call) bool {
	if n, ok := m.ID.Int(); ok {
		return n == call.ID
	}
	n, ok := m.ID.LooseInt()
	return ok && n == call.ID
}

// A cursor is where in a stream a client is, kept for opening it again.
type cursor struct {
	lastID string        // empty if the server named none
	retry  time.Duration // before the stream may be opened again
	told   bool          // the server named retry
}

// update takes up what a stream said until it ended.
func (c *cursor) update(events *sse.Reader) {
	if id, ok := events.LastEventID(); ok {
		// What is not fit for a header cannot be sent back.
		if c.lastID = id; !isFieldValue(id) {
			c.lastID = ""
		}
	}
	if retry, ok := events.Retry(); ok {
		c.retry, c.told = retry, true
	}
}

// Waits before a broken stream of a call is opened again.
const (
	minRetry     = 100 * time.Millisecond // whatever the server says
	defaultRetry = time.Second            // if it says nothing
)

// wait returns how long to wait at the nth attempt since there was news.
func (c *cursor) wait(n int) time.Duration {
	if c.told {
		return max(c.retry, minRetry)
	}
	return defaultRetry << n
}

// maxResumes is how often a stream is opened again that brings nothing new, and
// goodStream how long one must last that does not count: many a proxy cuts what has
// been silent for a while. So does a server that wants to be polled, and sooner
// (2025-11-25, transports, Sending Messages); one that has lost the call holds nothing.
const (
	maxResumes   = 3
	goodStream   = 10 * time.Second
	polledStream = time.Second
)

// good reports whether a stream that lasted so long shows that its server still has the
// call.
func (c *cursor) good(lasted time.Duration) bool {
	return lasted >= goodStream || c.told && lasted >= polledStream
}

// respond takes the events of a reply up to the response, and opens the stream
// again if it breaks and the revision has that (2025-11-25, transports,
// Resumability). It returns the body of which there may be more, and why there
// was no response.
func (t *trip) respond(ctx context.Context, body io.ReadCloser) (io.ReadCloser, error) {
	var at cursor
	var broken, refused error // refused is why it could not be opened again at last
	for n := 0; ; n++ {
		if body != nil {
			before, opened := at.lastID, time.Now()
			body = t.watched(body)
			responded, err := t.readStream(body, &at)
			if responded || ctx.Err() != nil || !isLost(err) || !t.era.resumable() || at.lastID == "" {
				return body, err
			}
			discard(body)
			if broken, refused = err, nil; at.lastID != before || at.good(time.Since(opened)) {
				n = 0
			}
		}
		if n == maxResumes {
			return http.NoBody, notResumed(broken, refused)
		}
		pause := at.wait(n)
		if busy, ok := errors.AsType[*busyStreamError](refused); ok {
			pause = max(pause, min(busy.after, maxReopen))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return http.NoBody, context.Cause(ctx)
		}
		if body, refused = t.resume(ctx, &at); refused != nil && !mayPass(refused) {
			return http.NoBody, notResumed(broken, refused)
		}
	}
}

// mayPass reports whether a stream that could not be opened again can be soon.
func mayPass(err error) bool {
	_, busy := errors.AsType[*busyStreamError](err)
	return busy || isLost(err)
}

// watched returns a stream as one that ends if its server is gone, where nothing else
// would end it.
func (t *trip) watched(body io.ReadCloser) io.ReadCloser {
	if t.limit() != 0 {
		return body
	}
	return &pulse{ReadCloser: body}
}

// notResumed adds to the error of a broken stream why it was not opened again, if
// that is known.
func notResumed(broken, err error) error {
	e, ok := errors.AsType[*mcp.CallError](broken)
	if !ok || err == nil {
		return broken
	}
	both := *e
	both.Err = fmt.Errorf("%w; resuming the stream: %w", e.Err, err)
	return &both
}

// isLost reports whether an error is the loss of a network connection, after
// which another one may do better.
func isLost(err error) bool {
	e, ok := errors.AsType[*mcp.CallError](err)
	return ok && (e.Kind == mcp.ConnectionLost || e.Kind == mcp.Unreachable)
}

// resume opens a broken stream again.
func (t *trip) resume(ctx context.Context, at *cursor) (io.ReadCloser, error) {
	resp, err := t.conn.openStream(ctx, t.era, at)
	if err != nil {
		return nil, err
	}
	if isEventStream(resp) {
		return resp.Body, nil
	}
	defer discard(resp.Body)
	data := excerptOf(resp)
	if saysSessionLost(resp, resp.Request.Header, data) {
		t.conn.end(ErrSessionLost)
		return nil, ErrSessionLost
	}
	refusal := t.conn.badStatus(resp, data)
	// 409: it has not found out yet that the stream is broken.
	if resp.StatusCode == http.StatusConflict || isBusy(resp.StatusCode) {
		return nil, &busyStreamError{refusal, retryAfter(resp)}
	}
	return nil, refusal
}

// openStream asks for a stream with GET.
func (c *Conn) openStream(ctx context.Context, era httpEra, at *cursor) (*http.Response, error) {
	header := c.newHeader(era)
	header["Accept"] = streamType
	delete(header, "Content-Type")
	if at.lastID != "" {
		header[lastEventID] = []string{at.lastID}
	}
	return c.send(ctx, http.MethodGet, nil, header)
}

// readStream takes events until the response, or the stream's end, for which
// it returns why there was none.
func (t *trip) readStream(body io.Reader, at *cursor) (responded bool, err error) {
	events := eventsOf(body, t.conn.opts.MaxBody)
	defer at.update(events)
	for {
		e, err := events.Next()
		if err != nil {
			return t.streamEnded(events, err)
		}
		if e.Name == endpointEvent && t.opensConversation() {
			return false, badReply(errEndpointEvent)
		}
		if len(e.Data) == 0 || e.Name != "" {
			continue
		}
		if t.conn.opts.Tap != nil {
			t.conn.opts.Tap(false, e.Data)
		}
		responded, err := t.take(e.Data)
		if err != nil {
			t.conn.skip("an event is of no use", err)
		}
		if responded {
			return true, nil
		}
	}
}

// isOverLimit reports whether an event stream was given up because of MaxBody.
func isOverLimit(err error) bool {
	_, event := errors.AsType[*sse.TooLargeError](err)
	return event || isGivenUp(err)
}

// isGivenUp reports whether nothing more of an event stream is read because of MaxBody.
func isGivenUp(err error) bool {
	_, flood := errors.AsType[*sse.FloodError](err)
	_, endless := errors.AsType[*sse.EndlessError](err)
	return flood || endless
}

// streamEnded returns the error of a stream that ended before the response. An
// event that the end cut off is lost, as the standard has it, unless it is the
// whole response.
func (t *trip) streamEnded(events *sse.Reader, err error) (responded bool, _ error) {
	if isOverLimit(err) {
		return false, &mcp.CallError{Kind: mcp.LimitExceeded, Limit: "MaxBody", Outcome: mcp.MaybeExecuted, Err: err}
	}
	if data, _ := events.Partial(); data != nil {
		var m jsonrpc.Message
		if jsonrpc.Scan(data, &m) == nil && m.Kind == jsonrpc.Response && answers(&m, t.call) {
			t.conn.skip("the response was the last event of a stream and not terminated", nil)
			t.reply(&m)
			return true, nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the event stream ended without a response to id %d", t.call.ID)
	}
	return false, &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: t.conn.origin.brief(err)}
}
