package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Waits of the GET stream of a session.
const (
	minReopen = time.Second
	maxReopen = 30 * time.Second
	// openWait is how long calls that may lead to questions wait for the stream to
	// be open at first. It covers a network connection to a server that is far away
	// or busy; only one that takes the request and says nothing costs all of it.
	openWait = 2 * time.Second
)

// listen keeps the session's GET stream open while the server offers one. Its
// failure never harms the calls, unless it shows that the session is lost.
func (e *legacyEra) listen(ctx context.Context) {
	patience := time.AfterFunc(openWait, e.settle)
	defer patience.Stop()
	defer e.settle()
	var at cursor
	wait := minReopen
	warned := false
	for ctx.Err() == nil {
		opened := time.Now()
		events, err := e.listenOnce(ctx, &at)
		if errors.Is(err, errNotOffered) {
			return
		}
		busy, isBusy := errors.AsType[*busyStreamError](err)
		level := slog.LevelDebug
		isBad := isBusy || isGivenUp(err)
		if isBad && !warned {
			level = slog.LevelWarn
		}
		warned = isBad // once in a row
		e.conn.opts.Logger.Log(ctx, level, "the stream outside calls has ended", "err", err)
		if !isGivenUp(err) && (events > 0 || time.Since(opened) > maxReopen) {
			wait = minReopen
		}
		pause := wait
		if at.told {
			pause = max(at.retry, minRetry)
		}
		if events == 0 {
			pause = max(pause, wait)
		}
		if isBusy {
			pause = max(pause, min(busy.after, maxReopen))
		}
		wait = min(2*wait, maxReopen)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (e *legacyEra) settle() { e.openOnce.Do(func() { close(e.opened) }) }

var errNotOffered = errors.New("the server offers no stream outside calls")

// A busyStreamError is why there is no stream now, with how long the server wants to be
// left alone; 0 if it does not say.
type busyStreamError struct {
	error
	after time.Duration
}

// Unwrap returns the reason.
func (e *busyStreamError) Unwrap() error { return e.error }

// isBusy reports whether a server that refuses a stream with a status may open it later.
func isBusy(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// listenOnce opens the GET stream, reads it to its end, and returns how many
// events came.
func (e *legacyEra) listenOnce(ctx context.Context, at *cursor) (events int, err error) {
	resp, err := e.conn.openStream(ctx, e, at)
	if err != nil {
		return 0, err
	}
	e.settle()
	if !isEventStream(resp) {
		defer discard(resp.Body)
		return 0, e.refused(resp, at)
	}
	defer resp.Body.Close()
	if e.streamed && at.lastID == "" {
		e.conn.calls.Missed()
	}
	e.streamed = true
	e.reading.Store(true)
	defer e.reading.Store(false)
	reader := eventsOf(&pulse{ReadCloser: resp.Body}, e.conn.opts.MaxBody)
	defer at.update(reader)
	for {
		event, err := reader.Next()
		if _, tooLarge := errors.AsType[*sse.TooLargeError](err); tooLarge {
			e.conn.skip("an event was passed over", err)
			e.conn.calls.Missed()
			continue
		}
		if isGivenUp(err) {
			return 0, fmt.Errorf("it is over the limit MaxBody: %w", err) // whatever came before
		}
		if err != nil {
			return events, e.conn.origin.brief(err)
		}
		events++
		if len(event.Data) > 0 && event.Name == "" {
			e.outside(event.Data)
		}
	}
}

// refused returns what a reply to GET that is no stream means. Most servers that
// have no stream say so with the status 405; others have other ways. One that has
// had a stream does not keep what came after the event that we named, or does not
// know the session any more.
func (e *legacyEra) refused(resp *http.Response, at *cursor) error {
	if e.streamed && saysSessionLost(resp, resp.Request.Header, excerptOf(resp)) {
		e.conn.end(ErrSessionLost)
		return errNotOffered
	}
	err := fmt.Errorf("HTTP %d with the content type %q", resp.StatusCode, e.conn.origin.excerpt([]byte(mediaType(resp))))
	if status := resp.StatusCode; at.lastID != "" && (status == http.StatusBadRequest || status == http.StatusGone) {
		e.conn.opts.Logger.Warn("what came outside calls in the meantime is lost", "err", err)
		at.lastID = ""
		return err
	}
	level := slog.LevelInfo
	switch status := resp.StatusCode; {
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		level = slog.LevelDebug
	case status == http.StatusConflict && e.streamed:
		return err // it has not found out yet that our last stream has ended
	case isBusy(status):
		return &busyStreamError{err, retryAfter(resp)} // may be different next time
	case wantsAuthorization(resp):
		level = slog.LevelWarn
	}
	e.conn.opts.Logger.Log(context.Background(), level, "the server offers no stream outside calls", "err", err)
	return errNotOffered
}

// outside takes the message, or the messages of the batch, that an event of the
// GET stream holds.
func (e *legacyEra) outside(data []byte) {
	if e.conn.opts.Tap != nil {
		e.conn.opts.Tap(false, data)
	}
	items := [][]byte{data}
	if jsonrpc.IsBatch(data) && e.batches() {
		var err error
		if items, err = jsonrpc.SplitBatch(data); err != nil {
			e.conn.skip("an event is of no use", err)
			return
		}
	}
	for _, item := range items {
		e.outsideMessage(item)
	}
}

func (e *legacyEra) outsideMessage(data []byte) {
	var m jsonrpc.Message
	if err := jsonrpc.Scan(data, &m); err != nil {
		e.conn.skip("an event is of no use", err)
		e.conn.passedOver(&m)
		return
	}
	switch m.Kind {
	case jsonrpc.Notification:
		e.client.Notified(&m, nil)
	case jsonrpc.Request:
		e.asked(&m, nil)
	case jsonrpc.Response:
		// Some servers answer calls here. An error without an id is that of none: the
		// POST of the call in flight has a reply.
		if call := e.answered(&m); call == nil {
			e.conn.opts.Logger.Debug("a response answers nothing", "id", m.ID.String(), "method", mcp.MethodListen)
		}
	}
}

// answered gives a response to the call whose id it names, and returns that, nil if
// there is none.
func (e *legacyEra) answered(m *jsonrpc.Message) *inflight.Call {
	if m.ID.IsZero() {
		return nil
	}
	call, _ := e.conn.calls.Respond(m)
	return call
}
