package streamable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/mcpsplice/mcpsplice/eventlog"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// get opens a session's own stream, for what belongs to no request, or any stream
// of the session again after the event that Last-Event-ID names. A newer request
// takes the place of an older one.
func (h *Handler) get(out *output) *reject {
	r := out.r
	isModern := mcp.Revision(r.Header.Get(versionHeader)).Era() == mcp.Modern
	if h.sessionless() || isModern || r.Header.Get(sessionHeader) == "" {
		return h.sessionsOnly(r) // a modern server has no such stream
	}
	if !readAccept(r.Header).stream {
		return invalid(http.StatusNotAcceptable, "Not Acceptable: the client must accept text/event-stream")
	}
	s, rej := h.session(r, jsonrpc.ID{})
	if rej != nil {
		return rej
	}
	defer s.Release()
	d := &delivery{out: out, polls: s.Revision().HasPolling()}
	if rej := h.locate(d, s); rej != nil {
		return rej
	}
	h.begin(d)
	if d.own != nil {
		s.SetOutlet(sessionOutlet{h, s})
		defer context.AfterFunc(h.ctx, func() { d.cancel(errDraining) })()
		defer s.AfterClose(func() { d.cancel(mcp.ErrClosed) })()
	}
	d.run()
	return nil
}

// locate finds out which stream of a session a client wants, and from where on.
func (h *Handler) locate(d *delivery, s *session.Held) *reject {
	ctx, own := d.out.r.Context(), h.ownStream(s)
	if err := own.open(ctx); err != nil {
		return unavailable("%v", err)
	}
	values := d.out.r.Header[lastEventID]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		d.stream, d.own = own.stream, own
		return nil
	}
	if len(values) > 1 {
		return badLastEventID("there are %d", len(values))
	}
	stream, at, err := eventlog.ParseID(s.ID, values[0])
	if err == nil {
		_, err = h.opts.Events.Read(ctx, stream, at)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return badLastEventID("%v", err)
	}
	if d.stream, d.at = stream, at; stream == own.stream {
		d.own = own
		own.delivered(at) // as its client says, whatever became of that connection
	}
	return nil
}

// badLastEventID refuses to resume. The session is as before; a client may open a
// stream without the header.
func badLastEventID(format string, args ...any) *reject {
	return badRequest(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Bad Request: Last-Event-ID: "+format, args...))
}

// A sessionOutlet sends what belongs to no request of a session.
type sessionOutlet struct {
	handler *Handler
	session *session.Held
}

// Send implements [session.Outlet]. What is sent while the client has no stream
// open waits for it, except questions, which it may never come for.
func (o sessionOutlet) Send(ctx context.Context, frame []byte) error {
	own := o.handler.ownStream(o.session)
	if own == nil {
		return lost(frame, mcp.ErrClosed)
	}
	if !o.handler.delivering(own.stream) {
		if err := lost(frame, errNoStream); err != nil {
			return err
		}
	}
	err := own.open(ctx)
	if err == nil {
		_, err = o.handler.opts.Events.Append(ctx, own.stream, frame)
	}
	if err != nil {
		return lost(frame, err)
	}
	return nil
}

// An ownStream is a session's stream for what belongs to no request.
type ownStream struct {
	// Set at construction.
	log    eventlog.Log
	stream eventlog.Stream

	mu   sync.Mutex
	made bool   // guarded by mu
	last uint64 // the last event that a client was sent, guarded by mu
}

// newOwnStream returns the stream of a session. Any process that knows the session
// finds it, and its name does not tell the session's id.
func newOwnStream(log eventlog.Log, session string) *ownStream {
	sum := sha256.Sum256([]byte("stream of session " + session))
	return &ownStream{log: log, stream: eventlog.Stream{Session: session, Name: hex.EncodeToString(sum[:16])}}
}

// open begins the stream, if it is not, with an event that stands for its
// beginning.
func (o *ownStream) open(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made {
		return nil
	}
	first, err := o.log.Append(ctx, o.stream, nil)
	if err != nil {
		return err
	}
	o.made, o.last = true, first
	return nil
}

// sent returns the last event that a client was sent. A client that names no event
// gets what comes after it: nothing else can bring what was kept, and nothing comes
// twice.
func (o *ownStream) sent() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// delivered takes note of what a client has been sent, or has.
func (o *ownStream) delivered(at uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = max(o.last, at)
}

// addStream gives a session its own stream, until it is forgotten.
func (h *Handler) addStream(s *session.Held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.own[s.ID] = newOwnStream(h.opts.Events, s.ID)
}

// ownStream returns the stream of a session for what belongs to no request, nil if
// the session has ended.
func (h *Handler) ownStream(s *session.Held) *ownStream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.own[s.ID]
}

// forget drops the streams of a session that has ended.
func (h *Handler) forget(session string) {
	h.mu.Lock()
	delete(h.own, session)
	h.mu.Unlock()
	if err := h.opts.Events.Drop(context.Background(), session); err != nil {
		h.opts.Logger.Warn("the event streams of a session are not dropped", "err", err)
	}
}
