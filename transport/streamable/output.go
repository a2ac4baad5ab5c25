package streamable

import (
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// An output is the way back to the client of one HTTP request. Every write to it
// has a deadline, so that a client that does not read harms itself only. It must
// not be used concurrently, except for hurry.
type output struct {
	w    http.ResponseWriter
	r    *http.Request
	rc   *http.ResponseController
	opts *HandlerOptions

	unread  bool        // the client may still be sending its body
	hurried atomic.Bool // writes have hurryTime only
}

// newOutput returns the way back to the client of r, and bounds how long that may
// take to send its body, whether or not somebody reads it.
func newOutput(w http.ResponseWriter, r *http.Request, opts *HandlerOptions) *output {
	o := &output{w: w, r: r, rc: http.NewResponseController(w), opts: opts}
	if o.unread = r.ContentLength != 0; o.unread {
		o.readBy(opts.BodyTimeout)
	}
	return o
}

// readBy bounds reading from the client; 0 stands for no bound.
func (o *output) readBy(d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d)
	}
	// Not every ResponseWriter has deadlines.
	_ = o.rc.SetReadDeadline(deadline)
}

// writeSoon gives the next write, and what net/http writes after it, its
// deadline.
func (o *output) writeSoon() {
	if !o.hurried.Load() {
		// Not every ResponseWriter has deadlines.
		_ = o.rc.SetWriteDeadline(time.Now().Add(o.opts.WriteTimeout))
	}
	// It may have been hurried in between.
	if o.hurried.Load() {
		_ = o.rc.SetWriteDeadline(time.Now().Add(hurryTime))
	}
}

// hurryTime is how long a write may take to a client for which another request
// waits.
const hurryTime = 100 * time.Millisecond

// hurry bounds the write that may be going on, and later ones.
func (o *output) hurry() {
	o.hurried.Store(true)
	// Not every ResponseWriter has deadlines.
	_ = o.rc.SetWriteDeadline(time.Now().Add(hurryTime))
}

// maxPiece is how much a client must take within one WriteTimeout.
const maxPiece = 256 << 10

// write writes p, of which each piece has a deadline of its own: a slow line is
// not mistaken for a client that does not read.
func (o *output) write(p []byte) error {
	for {
		piece := p[:min(len(p), maxPiece)]
		o.writeSoon()
		if _, err := o.w.Write(piece); err != nil {
			return err
		}
		if p = p[len(piece):]; len(p) == 0 {
			return nil
		}
	}
}

// json answers with one JSON text.
func (o *output) json(status int, body []byte) {
	h := o.w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	h["X-Content-Type-Options"] = nosniff
	o.w.WriteHeader(status)
	// A client that has gone needs no telling.
	_ = o.write(body)
}

// empty answers with a status and nothing else.
func (o *output) empty(status int) {
	o.writeSoon()
	o.w.WriteHeader(status)
}

// refuse answers with a reject.
func (o *output) refuse(rej *reject) {
	body := rej.body(o.opts.Plain)
	h := o.w.Header()
	if rej.allow != "" {
		h.Set("Allow", rej.allow)
	}
	if rej.later {
		h.Set("Retry-After", "1")
	}
	if o.unread {
		// Else net/http waits for the body before it sends the reply.
		h.Set("Connection", "close")
	}
	o.opts.Logger.Debug("a request was refused", "status", rej.status, "err", rej.err)
	if o.opts.Tap != nil {
		o.opts.Tap(true, body)
	}
	o.json(rej.status, body)
	if o.unread {
		o.linger()
	}
}

// lingerTime is how long a client whose request was refused may go on sending
// its body.
const lingerTime = time.Second

// linger reads what the client still sends: closing a connection on it would
// take the reply away from the client before that has read it.
func (o *output) linger() {
	if o.rc.Flush() != nil {
		return
	}
	o.readBy(min(lingerTime, o.opts.BodyTimeout))
	// The connection is closed whatever comes.
	_, _ = io.Copy(io.Discard, o.r.Body)
}

var (
	jsonType = []string{"application/json"}
	nosniff  = []string{"nosniff"}
)
