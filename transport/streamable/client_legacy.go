package streamable

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// A legacyEra speaks to a legacy server: in a session, with a GET stream for
// what belongs to no request.
type legacyEra struct {
	conn   *Conn
	client *session.Client

	mu sync.Mutex
	id string // of the session; empty if the server keeps none, guarded by mu
}

func newLegacyEra(c *Conn) *legacyEra {
	e := &legacyEra{conn: c}
	e.client = session.NewClient(e, &c.calls, session.ClientOptions{
		Info: c.opts.Client, Capabilities: c.opts.Capabilities, Logger: c.log,
	})
	return e
}

// Handle implements [mcp.Handler].
func (e *legacyEra) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	return e.client.Handle(ctx, req, caller)
}

var _ session.Wire = (*legacyEra)(nil)

// Call implements [session.Wire].
func (e *legacyEra) Call(ctx context.Context, call *inflight.Call, method string, params *jsonrpc.Value, caller mcp.Caller) (mcp.Result, error) {
	header := make(http.Header, 6)
	e.prepare(header)
	size := len(params.Raw()) + 96
	body := jsonrpc.AppendRequest(make([]byte, 0, size), jsonrpc.IntID(call.ID), method, params)
	if method != mcp.MethodInitialize {
		return e.conn.roundTrip(ctx, call, method, body, header, caller)
	}
	// The reply to initialize names the session, before the era is known to
	// the connection.
	e.conn.era = e
	return e.conn.roundTrip(ctx, call, method, body, header, caller)
}

// prepare sets the headers of a request of the session.
func (e *legacyEra) prepare(header http.Header) {
	if header["Accept"] == nil {
		header["Accept"] = []string{usualAccept}
		header["Content-Type"] = jsonType
	}
	if id := e.session(); id != "" {
		header[sessionHeader] = []string{id}
	}
	if revision := e.client.Revision(); revision != "" {
		header[versionHeader] = []string{string(revision)}
	}
}

func (e *legacyEra) session() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.id
}

// maxSessionID is how long a session id may be.
const maxSessionID = 1024

// answered takes the session's id from the reply to initialize, and from no
// other.
func (e *legacyEra) answered(resp *http.Response) {
	if e.client.Revision() != "" || resp.StatusCode != http.StatusOK {
		return
	}
	values := resp.Header.Values(sessionHeader)
	if len(values) == 0 {
		return
	}
	if len(values) > 1 || !visible(values[0]) {
		e.conn.log.Warn("the server's session id is not usable", "length", len(values[0]))
		return
	}
	e.mu.Lock()
	e.id = values[0]
	e.mu.Unlock()
}

// visible reports whether an id consists of visible ASCII characters
// (2025-11-25, transports, Session Management).
func visible(id string) bool {
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return false
		}
	}
	return id != "" && len(id) <= maxSessionID
}

// Notify implements [session.Wire].
func (e *legacyEra) Notify(ctx context.Context, method string, params *jsonrpc.Value) error {
	return e.post(ctx, method, jsonrpc.AppendNotification(nil, method, params))
}

// Reply implements [session.Wire].
func (e *legacyEra) Reply(ctx context.Context, id jsonrpc.ID, result mcp.Result, err error) error {
	if err != nil {
		return e.post(ctx, "response", jsonrpc.AppendError(nil, id, jsonrpc.ToWire(err)))
	}
	return e.post(ctx, "response", jsonrpc.AppendResult(nil, id, &result.Value))
}

// notifyTimeout bounds a POST that has no response.
const notifyTimeout = 30 * time.Second

// post sends what has no response. Any 2xx status is fine.
func (e *legacyEra) post(ctx context.Context, method string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	header := make(http.Header, 6)
	e.prepare(header)
	resp, err := e.conn.send(ctx, http.MethodPost, body, header)
	if err != nil {
		return err
	}
	defer discard(resp.Body)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		data, rerr := readLimited(resp.Body, drainBytes)
		if rerr != nil {
			data = nil
		}
		return fmt.Errorf("%s: %w", method, e.conn.badStatus(resp, data))
	}
	return nil
}

func (e *legacyEra) notified(m *jsonrpc.Message, call *inflight.Call) { e.client.Notified(m, call) }

// asked hands a question to the session beside the stream's reader, because its
// answer is a POST.
func (e *legacyEra) asked(_ context.Context, m *jsonrpc.Message, call *inflight.Call) {
	question := *m
	e.conn.start(func() { e.client.Asked(e.conn.ctx, &question, call) })
}

// cancelWait bounds telling a server of a cancellation.
const cancelWait = 2 * time.Second

func (e *legacyEra) cancel(ctx context.Context, call *inflight.Call) {
	params := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "requestId", Value: jsonrpc.IntID(call.ID).Raw()})
	e.conn.start(func() {
		ctx, cancel := context.WithTimeout(ctx, cancelWait)
		defer cancel()
		if err := e.Notify(ctx, mcp.NotificationCancelled, &params); err != nil {
			e.conn.log.Debug("a cancellation was not sent", "err", err)
		}
	})
}

func (e *legacyEra) lost() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	had := e.id != ""
	if had {
		e.id = ""
	}
	return had
}

func (e *legacyEra) resumable() bool { return true }

// end ends the session at the server, which may not allow that.
func (e *legacyEra) end(ctx context.Context) {
	if e.session() == "" {
		return
	}
	header := http.Header{"Accept": {usualAccept}}
	e.prepare(header)
	resp, err := e.conn.send(ctx, http.MethodDelete, nil, header)
	if err != nil {
		e.conn.log.Debug("the session was not ended at the server", "err", err)
		return
	}
	discard(resp.Body)
}

// Waits between attempts to open the GET stream.
const (
	minReopen = time.Second
	maxReopen = 30 * time.Second
)

// listen keeps the session's GET stream open while the server offers one. Its
// failure never harms the calls.
func (e *legacyEra) listen(ctx context.Context) {
	var lastID string
	wait := minReopen
	for ctx.Err() == nil {
		events, offered, err := e.listenOnce(ctx, lastID)
		if !offered {
			e.conn.log.Debug("the server offers no stream outside calls", "err", err)
			return
		}
		pause := wait
		wait = min(2*wait, maxReopen)
		if events != nil {
			if id, ok := events.LastEventID(); ok {
				lastID = id
			}
			pause, wait = minReopen, minReopen
			if retry, ok := events.Retry(); ok {
				pause = retry
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// listenOnce opens the GET stream and reads it to its end. Events is not nil if
// it was opened.
func (e *legacyEra) listenOnce(ctx context.Context, lastID string) (events *sse.Reader, offered bool, err error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if lastID != "" {
		header[lastEventID] = []string{lastID}
	}
	e.prepare(header)
	resp, err := e.conn.send(ctx, http.MethodGet, nil, header)
	if err != nil {
		return nil, true, err
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		retry := resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented || resp.StatusCode == http.StatusTooManyRequests
		return nil, retry, fmt.Errorf("HTTP %d, content type %q", resp.StatusCode, kind)
	}
	events = sse.NewReader(resp.Body, e.conn.opts.MaxBody)
	for {
		event, err := events.Next()
		if err != nil {
			return events, true, err
		}
		if len(event.Data) > 0 && event.Name == "" {
			e.outside(ctx, event.Data)
		}
	}
}

// outside takes a message that came on the GET stream.
func (e *legacyEra) outside(ctx context.Context, data []byte) {
	if e.conn.opts.Tap != nil {
		e.conn.opts.Tap(false, data)
	}
	var m jsonrpc.Message
	if err := jsonrpc.Scan(data, &m); err != nil {
		e.conn.log.Warn("an event is no message", "err", err)
		return
	}
	switch m.Kind {
	case jsonrpc.Notification:
		e.client.Notified(&m, nil)
	case jsonrpc.Request:
		e.asked(ctx, &m, nil)
	case jsonrpc.Response:
		// Some servers answer calls here.
		if call, _ := e.conn.calls.Respond(&m); call == nil {
			e.conn.log.Debug("a response answers nothing", "id", m.ID.String())
		}
	}
}
