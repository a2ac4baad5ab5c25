package streamable

import (
	"context"
	"errors"
	"time"

	"github.com/mcpsplice/mcpsplice/eventlog"
)

// A delivery takes a stream's events out of the log and to a client, from a place
// in the stream on, until the stream or the client has ended, or another delivery
// of the stream has begun. It runs in the goroutine of the client's HTTP request:
// a client that does not read holds up nobody else.
type delivery struct {
	// Set at construction.
	h      *Handler
	out    *output
	stream eventlog.Stream
	own    *ownStream // if it is a session's own stream, nil if it is that of a call
	polls  bool       // the client takes events without data
	ctx    context.Context
	cancel context.CancelCauseFunc
	before *delivery     // the one whose place it has taken, nil for none
	ended  chan struct{} // closed at its end

	at uint64 // the last event that the client has, 0 if it names none; owned by run
}

// errSuperseded ends a delivery when another one takes its place.
var errSuperseded = errors.New("a newer request has taken the stream")

// A releasedError ends a delivery of which the client is to come back.
type releasedError struct{ retry time.Duration }

// Error implements error.
func (e *releasedError) Error() string { return "the client may come back later" }

// begin makes a new delivery the one of its stream and ends the one before. It
// must be run.
func (h *Handler) begin(d *delivery) *delivery {
	d.h = h
	d.ctx, d.cancel = context.WithCancelCause(d.out.r.Context())
	d.ended = make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.before = h.deliveries[d.stream]; d.before != nil {
		d.before.supersede()
	}
	h.deliveries[d.stream] = d
	return d
}

// supersede ends the delivery in favour of a newer one. It does not wait. h.mu is
// held, so that the HTTP request has not ended.
func (d *delivery) supersede() {
	d.cancel(errSuperseded)
	d.out.hurry()
}

// delivering reports whether a client is there for a stream.
func (h *Handler) delivering(stream eventlog.Stream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deliveries[stream] != nil
}

// release ends the delivery of a stream, if there is one, and asks the client to
// come back.
func (h *Handler) release(stream eventlog.Stream, retry time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.deliveries[stream]; d != nil {
		d.cancel(&releasedError{retry})
	}
}

// end ends the delivery. From then on nobody uses its output.
func (d *delivery) end() {
	d.h.mu.Lock()
	if d.h.deliveries[d.stream] == d {
		delete(d.h.deliveries, d.stream)
	}
	d.h.mu.Unlock()
	d.cancel(nil)
	d.out.writeSoon()
	close(d.ended)
}

// run delivers. Whatever ends it, what was not delivered is in the log.
func (d *delivery) run() {
	defer d.end()
	d.follow()
	var missed error
	if d.at == 0 {
		missed = d.startAnywhere()
	}
	events := openStream(d.out)
	err := d.prime(events, d.h.opts.Retry)
	if missed != nil && err == nil {
		err = events.note(missed.Error())
	}
	for err == nil {
		err = d.step(events)
	}
	if released, ok := errors.AsType[*releasedError](context.Cause(d.ctx)); ok {
		// A client that has gone needs no telling.
		_ = d.prime(events, released.retry)
	}
}

// follow waits for the end of the delivery before, lest both deliver the same, but
// no longer than that may take. It does so even if this one has ended, since the one
// after it waits for nobody else.
func (d *delivery) follow() {
	if d.before == nil {
		return
	}
	patience := time.NewTimer(10 * hurryTime)
	defer patience.Stop()
	select {
	case <-d.before.ended:
	case <-patience.C: // a ResponseWriter without deadlines
	}
	d.before = nil
}

// startAnywhere finds the place to begin at for a client that names no event: after
// what has been sent on the session's own stream. It returns what that client would
// have got and cannot get any more, nil if nothing.
func (d *delivery) startAnywhere() error {
	d.at = d.own.sent()
	_, err := d.h.opts.Events.Read(d.ctx, d.stream, d.at)
	if gone, ok := errors.AsType[*eventlog.GoneError](err); ok {
		d.at = gone.Resume
		return gone
	}
	return nil
}

// prime tells the client where it is in the stream (2025-11-25, transports,
// Sending Messages). Others see at least that the stream is open.
func (d *delivery) prime(events *eventStream, retry time.Duration) error {
	if !d.polls {
		return events.comment()
	}
	return events.prime(d.stream.ID(d.at), retry)
}

// step delivers what there is, or waits until there is something. The error is why
// the delivery ends.
func (d *delivery) step(events *eventStream) error {
	batch, err := d.h.opts.Events.Read(d.ctx, d.stream, d.at)
	switch {
	case err != nil:
		return err
	case len(batch) == 0:
		return d.wait(events)
	}
	return d.write(events, batch)
}

// wait waits for more, and keeps the connection alive meanwhile.
func (d *delivery) wait(events *eventStream) error {
	ctx, cancel := context.WithTimeout(d.ctx, d.out.opts.KeepAlive)
	defer cancel()
	err := d.h.opts.Events.Wait(ctx, d.stream, d.at)
	switch {
	case d.ctx.Err() != nil:
		return context.Cause(d.ctx)
	case ctx.Err() != nil:
		return events.comment()
	}
	return err
}

// write writes events, as many as it may.
func (d *delivery) write(events *eventStream, batch []eventlog.Event) error {
	at := d.at
	for _, e := range batch {
		if d.ctx.Err() != nil {
			break
		}
		at = e.Seq
		if len(e.Data) == 0 {
			continue
		}
		if err := events.event(d.stream.ID(e.Seq), e.Data); err != nil {
			return err
		}
		// Who names no event later gets what was not sent. Of several that are sent
		// in one piece nobody knows which a connection that breaks has carried.
		if d.own == nil {
			continue
		}
		if err := d.sent(at); err != nil {
			return err
		}
	}
	if err := d.sent(at); err != nil {
		return err
	}
	return context.Cause(d.ctx)
}

// sent sends what was written, up to an event.
func (d *delivery) sent(at uint64) error {
	if err := d.out.rc.Flush(); err != nil {
		return err
	}
	d.at = at
	if d.own != nil {
		d.own.delivered(at)
	}
	return nil
}
