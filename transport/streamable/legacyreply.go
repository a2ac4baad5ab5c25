package streamable

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/eventlog"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A legacyReply is the reply to one POST of a session whose client takes event
// streams: one JSON text if nothing is sent before the result, else a stream that
// goes through the log, so that the client can drop its connection and come back.
// Two goroutines have it: that of the call, which sends and finishes, and that of
// the HTTP request, which delivers. The call goes on without the other.
type legacyReply struct {
	holding

	// Set at construction.
	out    *output
	accept accepts
	m      *jsonrpc.Message // used again after the last goroutine has left
	ctx    context.Context  // of the one call, which does not end with its HTTP request
	ready  chan struct{}    // closed when the reply is a stream or is whole
	timer  *time.Timer      // makes it a stream

	users atomic.Int32 // goroutines that have it

	mu       sync.Mutex
	delivery *delivery  // once the reply is a stream, guarded by mu
	left     bool       // the client went before it was one, guarded by mu
	finished bool       // guarded by mu
	whole    legacyBody // if it is none, set before ready is closed
}

// A legacyBody is what a reply holds: the response to a request, or a frame.
type legacyBody struct {
	status   int
	response bool
	result   mcp.Result
	err      error
	frame    []byte
}

// newLegacyReply returns the reply to a post, and takes over what that holds until
// both goroutines have ended.
func newLegacyReply(ctx context.Context, p *post) *legacyReply {
	r := &legacyReply{
		holding: p.holding, out: p.out, accept: p.accept,
		m: messages.Get().(*jsonrpc.Message), ctx: ctx, ready: make(chan struct{}),
	}
	*r.m, p.handed = p.m, true
	r.reuse = p.m.Kind == jsonrpc.Request
	r.users.Store(2)
	r.h.callBegins()
	wait := min(p.h.opts.StreamAfter, p.h.opts.KeepAlive)
	if !p.accept.json {
		wait = 0
	}
	r.timer = time.AfterFunc(wait, r.openLate)
	return r
}

var messages = sync.Pool{New: func() any { return new(jsonrpc.Message) }}

// serve makes the call of a request.
func (r *legacyReply) serve() {
	defer r.ended()
	result, err := r.h.handleLegacy(r.ctx, r.session, r.m, r)
	r.end(&legacyBody{status: http.StatusOK, response: true, result: result, err: err})
}

// ended is called at the end of the call's goroutine.
func (r *legacyReply) ended() {
	r.leave()
	r.h.callEnded()
}

// leave gives back what the reply holds if nobody else has it. Who keeps it
// nevertheless, as a Caller, finds it finished.
func (r *legacyReply) leave() {
	if r.users.Add(-1) > 0 {
		return
	}
	*r.m = jsonrpc.Message{}
	messages.Put(r.m)
	r.giveBack()
}

var errLeft = errors.New("the client has gone")

// Send implements [session.Outlet]: it sends a message before the result. What has
// no place in this reply goes to the session's own stream.
func (r *legacyReply) Send(ctx context.Context, frame []byte) error {
	if r.sendWithin(ctx, frame) == nil {
		return nil
	}
	return sessionOutlet{r.h, r.session}.Send(ctx, frame)
}

func (r *legacyReply) send(frame []byte) error { return r.sendWithin(r.ctx, frame) }

func (r *legacyReply) sendWithin(ctx context.Context, frame []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return errFinished
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	_, err := r.log().Append(ctx, r.delivery.stream, frame)
	return err
}

func (r *legacyReply) log() eventlog.Log { return r.h.opts.Events }

// open makes the reply an event stream, which begins with an event that stands for
// its beginning. A client that has gone before does not know the stream. r.mu is
// held.
func (r *legacyReply) open(ctx context.Context) error {
	switch {
	case r.delivery != nil:
		return nil
	case r.left || r.out.r.Context().Err() != nil:
		return errLeft
	}
	s := r.session
	stream := eventlog.Stream{Session: s.ID, Name: rand.Text()}
	first, err := r.log().Append(ctx, stream, nil)
	if err != nil {
		r.h.opts.Logger.Warn("a reply cannot be a stream", "err", err)
		return err
	}
	r.delivery = r.h.begin(&delivery{out: r.out, stream: stream, polls: s.Revision().HasPolling(), at: first})
	close(r.ready)
	return nil
}

// openLate makes the reply a stream because it is long in coming.
func (r *legacyReply) openLate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.finished {
		// What cannot be a stream is JSON when it is whole.
		_ = r.open(r.ctx)
	}
}

// Release implements [mcp.Releaser].
func (r *legacyReply) Release(ctx context.Context, retry time.Duration) error {
	if !r.session.Revision().HasPolling() {
		return nil
	}
	if retry <= 0 {
		retry = r.h.opts.Retry
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.finished && r.open(ctx) == nil {
		r.h.release(r.delivery.stream, retry)
	}
	return nil
}

var _ mcp.Releaser = (*legacyReply)(nil)

// streaming reports whether the reply has become an event stream, or must.
func (r *legacyReply) streaming() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delivery != nil || !r.accept.json
}

// finish ends the reply with its last message, nil for none.
func (r *legacyReply) finish(status int, frame []byte) {
	r.end(&legacyBody{status: status, frame: frame})
}

// end ends the reply. One that is no stream is written by whoever delivers.
func (r *legacyReply) end(body *legacyBody) {
	r.timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.delivery == nil && !r.accept.json && !body.isEmpty() {
		// What cannot be a stream is JSON nevertheless.
		_ = r.open(r.ctx)
	}
	r.finished = true
	if r.delivery == nil {
		r.whole = *body
		close(r.ready)
		return
	}
	if err := r.append(body); err != nil {
		r.h.opts.Logger.Warn("a response is lost", "err", err)
	}
}

func (b *legacyBody) isEmpty() bool { return !b.response && b.frame == nil }

// append puts the last message into the log. r.mu is held.
func (r *legacyReply) append(body *legacyBody) error {
	stream := r.delivery.stream
	var err error
	if !body.isEmpty() {
		err = r.encode(body, func(frame []byte) error {
			_, err := r.log().Append(r.ctx, stream, frame)
			return err
		})
	}
	return errors.Join(err, r.log().Finish(r.ctx, stream))
}

// encode gives write the bytes of a body.
func (r *legacyReply) encode(body *legacyBody, write func(frame []byte) error) error {
	if !body.response {
		return write(body.frame)
	}
	return transport.WithFrame(func(dst []byte) []byte {
		return appendReply(dst, r.m.ID, body.result, body.err)
	}, write)
}

// deliver serves the client until it has the reply or goes.
func (r *legacyReply) deliver() {
	defer r.leave()
	select {
	case <-r.ready:
	case <-r.out.r.Context().Done():
		if r.abandon() {
			return
		}
	}
	if r.delivery != nil {
		r.delivery.run()
		return
	}
	r.write()
}

// abandon has the call go on without a client, unless the reply is ready.
func (r *legacyReply) abandon() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = r.delivery == nil && !r.finished
	return r.left
}

// write writes a reply that is no stream.
func (r *legacyReply) write() {
	out := r.out
	if r.whole.isEmpty() {
		out.empty(r.whole.status)
		return
	}
	// Writing reports nothing that could be done anything about.
	_ = r.encode(&r.whole, func(frame []byte) error {
		if out.opts.Tap != nil {
			out.opts.Tap(true, frame)
		}
		out.json(r.whole.status, frame)
		return nil
	})
}
