package streamable

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/transport"
)

// Times of event streams.
const (
	// KeepAlive is after how long an idle event stream gets a comment, and a
	// call that has not answered yet an event stream.
	KeepAlive = 15 * time.Second
	// writeTimeout is how long one write to a client may take before its
	// stream is given up.
	writeTimeout = 10 * time.Second
)

var (
	errNoStream = errors.New("the client takes no event stream")
	errFinished = errors.New("the reply has ended")
)

// An exchange is one POST of a request and its reply: one JSON object if
// nothing is sent before the result, an event stream otherwise. Its methods may
// be called concurrently; those that come after the end do nothing.
type exchange struct {
	w      http.ResponseWriter
	accept accepts
	tap    transport.Tap
	timer  *time.Timer

	mu       sync.Mutex
	stream   *eventStream // once it is one, guarded by mu
	finished bool         // guarded by mu
}

func newExchange(w http.ResponseWriter, accept accepts, tap transport.Tap) *exchange {
	x := &exchange{w: w, accept: accept, tap: tap}
	if accept.stream {
		x.timer = time.AfterFunc(KeepAlive, x.beat)
	}
	return x
}

// Send implements session.Outlet: it sends a message before the result.
func (x *exchange) Send(_ context.Context, frame []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.finished {
		return errFinished
	}
	if err := x.open(); err != nil {
		return err
	}
	return x.stream.message(frame)
}

// open makes the reply an event stream.
func (x *exchange) open() error {
	if x.stream != nil {
		return nil
	}
	if !x.accept.stream {
		return errNoStream
	}
	x.stream = openStream(x.w, x.tap)
	return nil
}

// beat keeps a reply alive that is long in coming.
func (x *exchange) beat() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.finished || x.open() != nil || x.stream.comment() != nil {
		return
	}
	x.timer.Reset(KeepAlive)
}

// finish ends the reply with its last message, nil for none. Status counts if
// no event stream was opened.
func (x *exchange) finish(status int, frame []byte) {
	if x.timer != nil {
		x.timer.Stop()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.finished {
		return
	}
	x.finished = true
	if x.stream == nil && !x.accept.json && status == http.StatusOK && frame != nil {
		x.stream = openStream(x.w, x.tap)
	}
	switch {
	case frame == nil && x.stream == nil:
		x.w.WriteHeader(http.StatusAccepted)
	case frame == nil:
	case x.stream == nil:
		if x.tap != nil {
			x.tap(true, frame)
		}
		writeJSON(x.w, status, frame)
	default:
		// A client that has gone needs no telling.
		_ = x.stream.message(frame)
	}
}

// An eventStream writes events to an HTTP reply. It must not be used
// concurrently.
type eventStream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	tap transport.Tap
	buf []byte
}

// openStream begins an event stream.
func openStream(w http.ResponseWriter, tap transport.Tap) *eventStream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h["X-Content-Type-Options"] = nosniff
	w.WriteHeader(http.StatusOK)
	return &eventStream{w: w, rc: http.NewResponseController(w), tap: tap}
}

// message sends one JSON-RPC message as an event.
func (s *eventStream) message(frame []byte) error {
	if s.tap != nil {
		s.tap(true, frame)
	}
	s.buf = append(s.buf[:0], "event: message\ndata: "...)
	s.buf = append(s.buf, frame...)
	s.buf = append(s.buf, "\n\n"...)
	return s.flush()
}

func (s *eventStream) event(e sse.Event) (err error) {
	if s.buf, err = sse.AppendEvent(s.buf[:0], e); err != nil {
		return err
	}
	return s.flush()
}

func (s *eventStream) comment() error {
	s.buf = append(s.buf[:0], ":\n\n"...)
	return s.flush()
}

// maxKeptBuffer bounds the memory that an idle stream keeps.
const maxKeptBuffer = 64 << 10

func (s *eventStream) flush() error {
	// Not every ResponseWriter has deadlines.
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := s.w.Write(s.buf)
	if cap(s.buf) > maxKeptBuffer {
		s.buf = nil
	}
	if err == nil {
		err = s.rc.Flush()
	}
	_ = s.rc.SetWriteDeadline(time.Time{})
	return err
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
