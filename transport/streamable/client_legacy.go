package streamable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// A legacyEra speaks to a legacy server: in a session, with a GET stream for
// what belongs to no request.
type legacyEra struct {
	conn   *Conn
	client *session.Client

	// opened is closed when the GET stream is open, or will not be soon.
	opened   chan struct{}
	openOnce sync.Once
	streamed bool        // the GET stream has been open; owned by listen
	reading  atomic.Bool // the GET stream is open

	asking  chan struct{} // holds a value for each question that is being taken
	answers chan struct{} // and for each answer that is being posted

	mu       sync.Mutex
	status   int      // of the reply to initialize, 0 before; guarded by mu
	session  []string // its id as a header; nil if the server keeps none, guarded by mu
	revision []string // as a header, once it is negotiated, guarded by mu
}

func newLegacyEra(c *Conn) *legacyEra {
	e := &legacyEra{
		conn: c, opened: make(chan struct{}),
		asking: make(chan struct{}, maxPosting), answers: make(chan struct{}, maxPosting),
	}
	e.client = session.NewClient(e, &c.calls, session.ClientOptions{
		Info: c.opts.Client, Capabilities: c.opts.Capabilities, Logger: c.opts.Logger,
		MaxTaskWait: c.opts.MaxCall, Overtaken: e.reading.Load,
	})
	return e
}

// Handle implements [mcp.Handler].
func (e *legacyEra) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if mcp.MayNeedInput(req.Method) && mcp.NeedsUser(e.conn.opts.Capabilities) {
		// Some servers ask on the GET stream.
		select {
		case <-e.opened:
		case <-ctx.Done():
		case <-e.conn.ctx.Done():
		}
	}
	return e.client.Handle(ctx, req, caller)
}

var _ session.Wire = (*legacyEra)(nil)

// Call implements [session.Wire].
func (e *legacyEra) Call(ctx context.Context, call *inflight.Call, params *jsonrpc.Value, caller mcp.Caller, edits ...jsonrpc.Edit) (mcp.Result, error) {
	t := &trip{
		conn: e.conn, era: e, call: call, header: e.conn.newHeader(e),
		body: appendRequest(call, params, edits),
	}
	return t.run(ctx, caller)
}

func (e *legacyEra) prepare(header http.Header) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != nil {
		header[sessionHeader] = e.session
	}
	if e.revision != nil {
		header[versionHeader] = e.revision
	}
}

// maxSessionID is how long a session id may be.
const maxSessionID = 1024

// accepted takes the session's id from the reply to initialize, and from no
// other.
func (e *legacyEra) accepted(call *inflight.Call, resp *http.Response) error {
	if call.Request.Method != mcp.MethodInitialize {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = resp.StatusCode
	if e.status != http.StatusOK {
		return nil
	}
	values := resp.Header.Values(sessionHeader)
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil
	}
	if err := checkSessionID(values); err != nil {
		return &mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered, Err: err, Public: "the server's session id is not usable"}
	}
	e.session = values
	e.conn.origin.secrets.add(values...) // who knows it has the session
	return nil
}

// notBegun returns err, which the handshake failed with, and how it was refused.
func (e *legacyEra) notBegun(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &refusedError{e.status, err}
}

// checkSessionID returns what is wrong with a session id: it must consist of
// visible ASCII characters (2025-11-25, transports, Session Management).
func checkSessionID(values []string) error {
	if len(values) > 1 {
		return fmt.Errorf("the server named %d session ids", len(values))
	}
	id := values[0]
	if len(id) > maxSessionID {
		return fmt.Errorf("the server's session id of %d bytes is over the limit of %d", len(id), maxSessionID)
	}
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return fmt.Errorf("the server's session id holds the byte %#02x; only visible ASCII is allowed", id[i])
		}
	}
	return nil
}

// Notify implements [session.Wire].
func (e *legacyEra) Notify(ctx context.Context, method string, params *jsonrpc.Value) error {
	if method == mcp.NotificationInitialized {
		e.mu.Lock()
		e.revision = []string{string(e.client.Revision())}
		e.mu.Unlock()
	}
	return e.post(ctx, method, jsonrpc.AppendNotification(nil, method, params))
}

// Reply implements [session.Wire]. Unlike on a byte stream an answer is a round
// trip, so that the context of one that was meant for the other does not end it: a
// server that is slow to take it holds up nobody, since it goes on alone.
func (e *legacyEra) Reply(ctx context.Context, id jsonrpc.ID, result mcp.Result, err error) error {
	body := appendReply(nil, id, result, err)
	if err := take(ctx, e.conn.ctx, e.answers); err != nil {
		return err
	}
	posted := make(chan error, 1)
	if !e.conn.start(func() {
		defer func() { <-e.answers }()
		posted <- e.post(e.conn.ctx, "response", body)
	}) {
		return mcp.ErrClosed
	}
	select {
	case err := <-posted:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// postTimeout bounds a POST that has no response.
const postTimeout = 30 * time.Second

// post sends what has no response.
func (e *legacyEra) post(ctx context.Context, what string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	err := e.postOnce(ctx, body)
	if err == nil {
		return nil
	}
	if failure, ok := errors.AsType[*mcp.CallError](err); ok {
		return named(failure, what)
	}
	return givenUp(ctx, what, mcp.MaybeExecuted, err)
}

// postOnce sends a message. Any 2xx status is fine.
func (e *legacyEra) postOnce(ctx context.Context, body []byte) error {
	header := e.conn.newHeader(e)
	resp, err := e.conn.send(ctx, http.MethodPost, body, header)
	if err != nil {
		return err
	}
	defer discard(resp.Body)
	if isSuccess(resp.StatusCode) {
		return nil
	}
	data := excerptOf(resp)
	if saysSessionLost(resp, header, data) {
		return e.conn.sessionLost()
	}
	return e.conn.badStatus(resp, data)
}

func (e *legacyEra) notified(m *jsonrpc.Message, call *inflight.Call) { e.client.Notified(m, call) }

// asked hands a question to the session beside the stream's reader, because its
// answer is a POST. The reader waits while there are too many.
func (e *legacyEra) asked(m *jsonrpc.Message, call *inflight.Call) {
	if take(e.conn.ctx, e.conn.ctx, e.asking) != nil {
		return // the connection has ended
	}
	put := e.client.TakeUp(m) // what follows it may withdraw it
	e.conn.start(func() {
		defer func() { <-e.asking }()
		put(e.conn.ctx, call)
	})
}

// cancelWait bounds telling a server of a cancellation.
const cancelWait = 2 * time.Second

// cancel tells the server before it closes the stream: some servers forget a
// request whose stream has gone, and what they are told of it then.
func (e *legacyEra) cancel(ctx context.Context, call *inflight.Call, hangup context.CancelFunc) {
	params := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "requestId", Value: call.WireID().Raw()})
	told := call.Telling()
	if !e.conn.start(func() {
		defer told()
		defer hangup()
		ctx, cancel := context.WithTimeout(ctx, cancelWait)
		defer cancel()
		if err := e.Notify(ctx, mcp.NotificationCancelled, &params); err != nil {
			e.conn.opts.Logger.Debug("a cancellation was not sent", "err", err)
		}
	}) {
		hangup()
		told()
	}
}

func (e *legacyEra) undisturbed() bool { return false }

func (e *legacyEra) batches() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.revision != nil && mcp.Revision(e.revision[0]).HasBatches()
}

func (e *legacyEra) resumable() bool { return true }

// end ends the session at the server, which may not allow that.
func (e *legacyEra) end(ctx context.Context) {
	header := e.conn.newHeader(e)
	if header[sessionHeader] == nil {
		return
	}
	delete(header, "Content-Type")
	resp, err := e.conn.send(ctx, http.MethodDelete, nil, header)
	if err != nil {
		e.conn.opts.Logger.Debug("the session was not ended at the server", "err", err)
		return
	}
	discard(resp.Body)
}
