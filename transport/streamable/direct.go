package streamable

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// mayGoDirect reports whether the caller can make the POST itself, which saves a
// goroutine and waking two. An [http.RoundTripper] of somebody else's may not even heed
// contexts, and a listen call can end before its context and its connection do.
func (t *trip) mayGoDirect() bool {
	if t.conn.opts.Transport != nil || t.method() == mcp.MethodInitialize || t.method() == mcp.MethodListen {
		return false
	}
	_, interruptible := t.conn.http.Transport.(*shortcut)
	return interruptible || t.era.undisturbed()
}

// direct makes the POST and reads its reply, but for one that has more to say, which a
// goroutine follows. Hangup ends sending, the context of both.
//
// Until the reply begins, the caller hears of nothing but the end of its context. In a
// legacy era something else may end the call, or come for it: then a goroutine goes on
// with the POST. The same is so with the end of the context, because the server is told
// of it before the POST is hung up.
func (t *trip) direct(ctx context.Context, sending *tripContext, hangup context.CancelFunc) error {
	if err := t.conn.join(); err != nil {
		return err
	}
	defer t.conn.running.Done()
	end, h := func() { hangup() }, (*handover)(nil)
	if !t.era.undisturbed() {
		h = new(handover)
		sending.handover, end = h, func() { h.end(hangup) }
		if t.call.WhenNews(h.interrupt) {
			h.interrupt()
		}
		defer t.call.WhenNews(nil)
		defer h.settle()
	}
	inTime := func() bool { return true }
	if t.left > 0 && t.left < inflight.NoLimit {
		began := time.Now()
		defer func() { t.left = max(t.left-time.Since(began), 1) }()
		timer := time.AfterFunc(t.left, func() {
			t.expired.Store(true)
			end()
		})
		inTime = timer.Stop
		defer timer.Stop()
	}
	detach := context.AfterFunc(ctx, end)
	var rest io.ReadCloser = http.NoBody
	resp, err := t.post(sending)
	switch {
	case errors.Is(err, errHandedOver):
		detach()
		h.over, t.handed = true, h.req
		t.goOn(hangup, func() io.ReadCloser { return t.exchange(sending) })
		return nil
	case err != nil:
	case !isEventStream(resp) && (h == nil || resp.ContentLength >= 0):
		// A legacy server that can tell how long its reply is has nothing to ask.
		rest, err = t.readWhole(resp)
	case !detach() && h == nil:
		rest, err = resp.Body, context.Cause(ctx)
	case !inTime() && h == nil:
		rest, err = resp.Body, context.DeadlineExceeded
	case h != nil && !h.settle():
		rest, err = resp.Body, t.why(ctx)
	default:
		if h != nil {
			h.over = true // also for the requests that resume the stream
		}
		// From here on the reply may outlive ctx a little, as others do.
		t.goOn(hangup, func() io.ReadCloser { return t.answer(sending, resp) })
		return nil
	}
	if why := t.why(ctx); err != nil && why != nil {
		err = why // rather than what that has led to
	}
	t.call.Finish(err)
	t.conn.trips.Done()
	detach()
	if rest == http.NoBody {
		hangup()
		return nil
	}
	t.conn.running.Go(func() {
		defer hangup()
		discard(rest)
	})
	return nil
}

// goOn has a goroutine make the rest of the trip.
func (t *trip) goOn(hangup context.CancelFunc, trip func() io.ReadCloser) {
	t.conn.running.Go(func() {
		defer hangup()
		rest := trip()
		t.conn.trips.Done()
		// The caller need not wait for this.
		discard(rest)
	})
}

// why returns what has ended a direct trip, nil if nothing has.
func (t *trip) why(ctx context.Context) error {
	if t.expired.Load() && ctx.Err() == nil {
		return context.DeadlineExceeded
	}
	return context.Cause(ctx)
}
