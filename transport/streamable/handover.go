package streamable

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// A handover lets the caller of a legacy call make its POST itself for as long as
// nothing else wants the caller: it waits for the first byte of the reply, and when it
// is interrupted a goroutine waits on in its place. Only a [shortcut] can do that, on a
// connection that is there.
type handover struct {
	mu      sync.Mutex
	wanted  bool       // something wants the caller, guarded by mu, like what follows
	waiting *shortConn // that the caller waits on
	reading bool       // the caller, and cannot be interrupted
	rest    *time.Timer

	over bool          // a goroutine does the rest; owned by who makes the trip, like what follows
	req  *http.Request // of the trip, when it has been handed over
	sent *shortBody    // the reply that is awaited; nil if nothing was sent
}

// errHandedOver says that a request has been handed over.
var errHandedOver = errors.New("the request has been handed over")

// past is a deadline that ends a read.
var past = time.Unix(1, 0)

// replyRest is how long a reply that has begun may take to come to its end, if the call
// has ended meanwhile.
const replyRest = 100 * time.Millisecond

// interrupt has the caller hand the request over, if it does not read the reply already.
func (h *handover) interrupt() { h.end(nil) }

// end is interrupt at the end of the call. If the caller reads the reply already, hangup
// ends that soon.
func (h *handover) end(hangup func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = true
	if h.waiting != nil {
		_ = h.waiting.conn.SetReadDeadline(past) // fails only if it has been closed
	}
	if h.reading && h.rest == nil && hangup != nil {
		h.rest = time.AfterFunc(replyRest, hangup)
	}
}

// settle makes it known that the caller reads no more. It reports false the first time
// if that is too late: the call has been hung up on, or is being so.
func (h *handover) settle() (inTime bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = false
	return h.rest == nil || h.rest.Stop()
}

// await waits until a reply begins on c. It reports false if it was interrupted, and
// nothing is lost.
func (h *handover) await(c *shortConn) bool {
	if !h.wait(c) {
		return false
	}
	_, _ = c.reader.Peek(1) // whoever reads meets the error again
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = nil
	if h.wanted {
		_ = c.conn.SetReadDeadline(time.Time{})
	}
	h.reading = !h.wanted
	return h.reading
}

func (h *handover) wait(c *shortConn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = false
	if h.wanted {
		return false
	}
	h.waiting = c
	return true
}

// handoverOf returns what a request is part of as long as it may be handed over.
func handoverOf(req *http.Request) *handover {
	if ctx, ok := req.Context().(*tripContext); ok && ctx.handover != nil && !ctx.handover.over {
		return ctx.handover
	}
	return nil
}

// handOver hands a request over that has not been sent, if there is somebody to do so.
func handOver(req *http.Request) error {
	h := handoverOf(req)
	if h == nil {
		return nil
	}
	h.req = req
	return errHandedOver
}

// pending takes the reply to a request that was handed over when it had been sent.
func pending(req *http.Request) *shortBody {
	ctx, ok := req.Context().(*tripContext)
	if !ok || ctx.handover == nil {
		return nil
	}
	b := ctx.handover.sent
	ctx.handover.sent = nil
	return b
}
