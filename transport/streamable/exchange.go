package streamable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

var (
	errNoStream = errors.New("the client takes no event stream")
	errFinished = errors.New("the reply has ended")
)

// An exchange is one POST of a request and its reply: one JSON object if
// nothing is sent before the result, an event stream otherwise. Its methods may
// be called concurrently.
type exchange struct {
	out    *output
	accept accepts
	spare  session.Outlet // takes what cannot be sent here; nil for nobody
	timer  *time.Timer

	mu       sync.Mutex
	stream   *eventStream // once it is one, guarded by mu
	corked   bool         // more comes before the client need get it, guarded by mu
	finished bool         // guarded by mu
}

func newExchange(out *output, accept accepts, spare session.Outlet) *exchange {
	x := &exchange{out: out, accept: accept, spare: spare}
	if accept.stream {
		x.mu.Lock() // against a beat that comes at once
		x.timer = time.AfterFunc(out.opts.KeepAlive, x.beat)
		x.mu.Unlock()
	}
	return x
}

// Send implements session.Outlet: it sends a message before the result. What the
// client cannot be sent here, because it takes no stream or has gone, goes to
// the spare outlet or is lost.
func (x *exchange) Send(ctx context.Context, frame []byte) error {
	err := x.send(frame)
	if err == nil {
		return nil
	}
	if x.spare != nil {
		return x.spare.Send(ctx, frame)
	}
	return lost(frame, err)
}

// lost returns what it means that a message cannot be sent: nobody waits for a
// notification, but a question has no answer.
func lost(frame []byte, err error) error {
	var m jsonrpc.Message
	if jsonrpc.Scan(frame, &m) == nil && m.Kind == jsonrpc.Notification {
		return nil
	}
	return fmt.Errorf("%w: %w", mcp.ErrCannotAsk, err)
}

func (x *exchange) send(frame []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.finished {
		return errFinished
	}
	if err := x.open(); err != nil {
		return err
	}
	return x.stream.message(frame, x.corked)
}

// Cork holds back what is sent, so that many messages go out in one piece. It may
// be overlooked: what is a lot goes out before Uncork.
func (x *exchange) Cork() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.corked = true
}

// Uncork sends what Cork has held back.
func (x *exchange) Uncork() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.corked = false
	if x.stream == nil || x.finished {
		return nil
	}
	return x.stream.flush()
}

// open makes the reply an event stream. x.mu is held.
func (x *exchange) open() error {
	if x.stream != nil {
		return nil
	}
	if !x.accept.stream {
		return errNoStream
	}
	x.stream = openStream(x.out)
	return nil
}

// streaming reports whether the reply has become an event stream, or must.
func (x *exchange) streaming() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stream != nil || !x.accept.json
}

// beat keeps a reply alive that is long in coming.
func (x *exchange) beat() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.finished || x.open() != nil || x.stream.comment() != nil {
		return
	}
	x.timer.Reset(x.out.opts.KeepAlive)
}

// withdraw takes back a header if it has not been sent.
func (x *exchange) withdraw(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stream == nil {
		x.out.w.Header().Del(name)
	}
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
		x.stream = openStream(x.out)
	}
	switch {
	case frame == nil && x.stream == nil:
		x.out.empty(http.StatusAccepted)
	case frame == nil:
		x.out.writeSoon()
	case x.stream == nil:
		if x.out.opts.Tap != nil {
			x.out.opts.Tap(true, frame)
		}
		x.out.json(status, frame)
	default:
		// A client that has gone needs no telling.
		_ = x.stream.message(frame, false)
	}
}

// An eventStream writes events to an HTTP reply. It must not be used
// concurrently.
type eventStream struct {
	out  *output
	held int // bytes that were written and not flushed
}

// openStream begins an event stream.
func openStream(out *output) *eventStream {
	h := out.w.Header()
	h["Content-Type"] = streamType
	h["Cache-Control"] = noTransform
	h["X-Accel-Buffering"] = noBuffering
	h["X-Content-Type-Options"] = nosniff
	out.w.WriteHeader(http.StatusOK)
	return &eventStream{out: out}
}

var (
	streamType  = []string{"text/event-stream"}
	noTransform = []string{"no-cache, no-transform"}
	noBuffering = []string{"no"}
)

// message sends one JSON-RPC message as an event. If more are to follow at once,
// it may stay behind until flush.
func (s *eventStream) message(frame []byte, more bool) error {
	if s.out.opts.Tap != nil {
		s.out.opts.Tap(true, frame)
	}
	if s.held == 0 {
		s.out.writeSoon()
	}
	if _, err := io.WriteString(s.out.w, "event: message\ndata: "); err != nil {
		return err
	}
	if err := s.write(frame); err != nil {
		return err
	}
	if _, err := io.WriteString(s.out.w, "\n\n"); err != nil {
		return err
	}
	if s.held += len(frame); more && s.held < maxPiece {
		return nil
	}
	return s.flush()
}

// write writes a part of an event. The deadline of a small one has been set.
func (s *eventStream) write(p []byte) error {
	if len(p) > maxPiece {
		return s.out.write(p)
	}
	_, err := s.out.w.Write(p)
	return err
}

// flush sends what was written.
func (s *eventStream) flush() error {
	s.held = 0
	return s.out.rc.Flush()
}

// events sends events in their wire form.
func (s *eventStream) events(wire ...[]byte) error {
	for _, e := range wire {
		if err := s.out.write(e); err != nil {
			return err
		}
	}
	return s.flush()
}

// prime sends an event without data, which tells the client where it is in the
// stream and after which time to come back if the stream breaks.
func (s *eventStream) prime(id string, retry time.Duration) error {
	wire, err := sse.AppendEvent(nil, sse.Event{ID: id, Retry: retry})
	if err != nil {
		return err
	}
	return s.events(wire)
}

// event writes one JSON-RPC message as an event with an id. The stream must be
// flushed afterwards.
func (s *eventStream) event(id string, frame []byte) error {
	if s.out.opts.Tap != nil {
		s.out.opts.Tap(true, frame)
	}
	s.out.writeSoon()
	if _, err := io.WriteString(s.out.w, "event: message\nid: "+id+"\ndata: "); err != nil {
		return err
	}
	if err := s.out.write(frame); err != nil {
		return err
	}
	_, err := io.WriteString(s.out.w, "\n\n")
	return err
}

// note sends a text to whoever reads the stream with their eyes.
func (s *eventStream) note(text string) error { return s.events(sse.AppendComment(nil, text)) }

func (s *eventStream) comment() error { return s.events(comment) }

var comment = []byte(":\n\n")

// end lets what net/http writes at the end of the stream wait no longer than any
// other write.
func (s *eventStream) end() { s.out.writeSoon() }
