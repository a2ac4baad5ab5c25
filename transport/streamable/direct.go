package streamable

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
)

// mayGoDirect reports whether the caller can make the POST itself, which saves a
// goroutine and waking two. Until the reply begins, it hears of nothing but the end
// of its context then, so that nothing else may end the call or come for it. An
// [http.RoundTripper] of somebody else's may not even heed that.
func (t *trip) mayGoDirect() bool { return t.era.undisturbed() && t.conn.opts.Transport == nil }

// direct makes the POST and reads its reply, but for an event stream, which a
// goroutine follows. Hangup ends sending, the context of both.
func (t *trip) direct(ctx, sending context.Context, hangup context.CancelFunc) error {
	if err := t.conn.join(); err != nil {
		return err
	}
	defer t.conn.running.Done()
	inTime := func() bool { return true }
	if t.left > 0 && t.left < inflight.NoLimit {
		began := time.Now()
		defer func() { t.left = max(t.left-time.Since(began), 1) }()
		timer := time.AfterFunc(t.left, func() {
			t.expired.Store(true)
			hangup()
		})
		inTime = timer.Stop
		defer timer.Stop()
	}
	detach := context.AfterFunc(ctx, hangup)
	var rest io.ReadCloser = http.NoBody
	resp, err := t.post(sending)
	switch {
	case err != nil:
	case !isEventStream(resp):
		rest, err = t.readWhole(resp)
	case !detach():
		rest, err = resp.Body, context.Cause(ctx)
	case !inTime():
		rest, err = resp.Body, context.DeadlineExceeded
	default:
		// From here on the reply may outlive ctx a little, as others do.
		t.conn.running.Go(func() {
			defer hangup()
			rest := t.follow(sending, resp.Body)
			t.conn.trips.Done()
			discard(rest)
		})
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

// why returns what has ended a direct trip, nil if nothing has.
func (t *trip) why(ctx context.Context) error {
	if t.expired.Load() && ctx.Err() == nil {
		return context.DeadlineExceeded
	}
	return context.Cause(ctx)
}
