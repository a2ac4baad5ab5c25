package streamable

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// get opens a session's stream for what belongs to no request. A newer stream
// takes the place of an older one.
func (h *Handler) get(out *output) *reject {
	r := out.r
	isModern := mcp.Revision(r.Header.Get(versionHeader)).Era() == mcp.Modern
	if h.sessionless() || isModern || r.Header.Get(sessionHeader) == "" {
		return notAllowed(h.methods()) // a modern server has no such stream
	}
	if !readAccept(r.Header).stream {
		return invalid(http.StatusNotAcceptable, "Not Acceptable: the client must accept text/event-stream")
	}
	s, rej := h.session(r, jsonrpc.ID{})
	if rej != nil {
		return rej
	}
	defer s.Release()
	g := &getStream{out: out, stream: openStream(out), gone: make(chan struct{})}
	h.addStream(s, g)
	defer h.dropStream(s, g)
	g.beat() // the client sees the stream open when it is
	g.serve(r.Context(), h.ctx, s.Done())
	return nil
}

// addStream makes g the session's stream and ends the one before.
func (h *Handler) addStream(s *session.Held, g *getStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.streams[s]; old != nil {
		old.supersede()
	}
	h.streams[s] = g
	s.SetOutlet(sessionOutlet{h, s})
}

// dropStream ends g and, unless a newer one has taken its place, leaves the
// session without a stream.
func (h *Handler) dropStream(s *session.Held, g *getStream) {
	h.mu.Lock()
	if h.streams[s] == g {
		delete(h.streams, s)
		s.SetOutlet(nil)
	}
	h.mu.Unlock()
	g.end()
}

// A sessionOutlet sends to whatever stream a session has.
type sessionOutlet struct {
	handler *Handler
	session *session.Held
}

// Send implements session.Outlet. A message that one stream did not take goes to
// the next, if there is one. Without a stream it is lost.
func (o sessionOutlet) Send(_ context.Context, frame []byte) error {
	err := errNoStream
	for tried := (*getStream)(nil); ; {
		o.handler.mu.Lock()
		g := o.handler.streams[o.session]
		o.handler.mu.Unlock()
		if g == nil || g == tried {
			return lost(frame, err)
		}
		if err = g.send(frame); err == nil {
			return nil
		}
		tried = g
	}
}

// A getStream is a session's stream for what belongs to no request.
type getStream struct {
	out *output

	mu     sync.Mutex
	stream *eventStream // nil when ended, guarded by mu
	once   sync.Once
	gone   chan struct{} // closed by stop
}

func (g *getStream) send(frame []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stream == nil {
		return errFinished
	}
	err := g.stream.message(frame, false)
	if err != nil {
		g.stop()
	}
	return err
}

// stop makes serve return. Unlike end it does not wait for a client that does
// not read.
func (g *getStream) stop() { g.once.Do(func() { close(g.gone) }) }

// supersedeTime is how long a message that is being written to a stream may hold
// up those for the stream that takes its place.
const supersedeTime = 100 * time.Millisecond

// supersede ends the stream in favour of a newer one. It does not wait.
func (g *getStream) supersede() {
	g.stop()
	// Not every ResponseWriter has deadlines.
	_ = g.out.rc.SetWriteDeadline(time.Now().Add(supersedeTime))
}

// end lets nothing more be written.
func (g *getStream) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stream.end()
	g.stream = nil
}

// serve keeps the stream alive until the client, the listener, the session or a
// newer stream ends it.
func (g *getStream) serve(client, listener context.Context, session <-chan struct{}) {
	ticker := time.NewTicker(g.out.opts.KeepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-client.Done():
			return
		case <-listener.Done():
			return
		case <-session:
			return
		case <-g.gone:
			return
		case <-ticker.C:
			g.beat()
		}
	}
}

func (g *getStream) beat() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stream.comment() != nil {
		g.stop()
	}
}
