package streamable

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// An sseLink is the [transport.Link] of one session of HTTP with SSE: what is
// posted is read from it, and what is written to it goes to the stream. The
// stream is written by one goroutine, so that no caller is held by another
// one's bytes.
type sseLink struct {
	// Set at construction.
	id        string
	principal mcp.Principal
	grant     string // [mcp.Metadata.Grant]
	origin    string // of the page that has opened it; see guard.foreign
	opts      *HandlerOptions
	limits    *SSEOptions
	total     *unsent // of all links
	inbox     chan *posted
	wake      chan struct{} // says that there is something to send
	gone      chan struct{} // closed by end

	// Atomic.
	last    atomic.Pointer[posted] // read, and not yet acknowledged
	waiting atomic.Int64           // POSTs that wait for a verdict

	mu      sync.Mutex
	err     error         // why the link has ended, guarded by mu like what follows
	queue   []byte        // events in wire form that wait
	spare   []byte        // memory of a queue that has been sent
	sending int           // bytes that were taken and are being written
	room    chan struct{} // closed when the queue has been taken; nil if nobody waits
	still   chan struct{} // closed when all has been written; nil if nobody waits
}

// A posted is a message whose POST waits to hear whether it is taken.
type posted struct {
	data    []byte
	verdict chan *reject // gets one; nil for taken
}

func newSSELink(id string, opts *HandlerOptions, limits *SSEOptions, total *unsent) *sseLink {
	return &sseLink{
		id: id, opts: opts, limits: limits, total: total,
		inbox: make(chan *posted), wake: make(chan struct{}, 1), gone: make(chan struct{}),
	}
}

// deliver hands a message to whoever reads, and returns why it was not taken.
// Who reads may have to wait for the client to take an answer.
func (l *sseLink) deliver(ctx context.Context, data []byte) *reject {
	defer l.waiting.Add(-1)
	limit := max(l.limits.MaxInFlight+l.limits.MaxQueued, l.limits.MaxQueued) // the sum may be too large
	if l.waiting.Add(1) > int64(limit) {
		return unavailable("%d messages wait for the client to read, the limits SSE.MaxInFlight and SSE.MaxQueued", limit)
	}
	p := &posted{data: data, verdict: make(chan *reject, 1)}
	select {
	case l.inbox <- p:
	case <-l.gone:
		return sessionNotFound()
	case <-ctx.Done():
		return unavailable("%v", context.Cause(ctx))
	}
	select {
	case rej := <-p.verdict:
		return rej
	case <-l.gone:
		return sessionNotFound()
	}
}

// Read implements transport.Link.
func (l *sseLink) Read() ([]byte, error) {
	l.Accept()
	select {
	case p := <-l.inbox:
		l.last.Store(p)
		return p.data, nil
	case <-l.gone:
		l.mu.Lock()
		defer l.mu.Unlock()
		return nil, l.err
	}
}

// Accept tells the POST of the message read last that it was taken.
func (l *sseLink) Accept() { l.settle(nil) }

// Refuse tells the POST of the message read last why it was not taken. It
// reports false if that has been answered.
func (l *sseLink) Refuse(id jsonrpc.ID, err *jsonrpc.Error) bool {
	rej := badRequest(id, err)
	if err.Code == jsonrpc.CodeInternalError { // a limit, or the end of the server
		rej.status, rej.later = http.StatusServiceUnavailable, true
	}
	return l.settle(rej)
}

func (l *sseLink) settle(rej *reject) bool {
	p := l.last.Swap(nil)
	if p == nil {
		return false
	}
	p.verdict <- rej
	return true
}

// Recycle takes back the memory of a message that has been served.
func (l *sseLink) Recycle(message []byte) { recycle(message) }

// Write implements transport.Link.
func (l *sseLink) Write(ctx context.Context, frame []byte, _ bool) error {
	if l.opts.Tap != nil {
		l.opts.Tap(true, frame)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && !l.reserve(len(beforeMessage)+len(frame)+len(afterMessage)) {
		if err := l.waitForRoom(ctx); err != nil {
			return err
		}
	}
	if l.err != nil {
		return l.err
	}
	l.queue = append(l.queue, beforeMessage...)
	l.queue = append(l.queue, frame...)
	l.queue = append(l.queue, afterMessage...)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

// What stands around a message in its event.
const (
	beforeMessage = "event: message\ndata: "
	afterMessage  = "\n\n"
)

// reserve reports whether n bytes may be queued, and counts them then. If nothing is
// queued they may: whoever waits for that would hold them as well. l.mu is held.
func (l *sseLink) reserve(n int) bool {
	queued := len(l.queue)
	if queued > 0 && queued+n > l.limits.MaxUnsent {
		return false
	}
	return l.total.add(queued+l.sending, n, queued == 0)
}

// waitForRoom waits until the queue has been taken. l.mu is held before and
// after, and free meanwhile.
func (l *sseLink) waitForRoom(ctx context.Context) error {
	if l.room == nil {
		l.room = make(chan struct{})
	}
	room := l.room
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return l.total.givenUp(ctx, len(l.queue)+l.sending, l.limits.MaxUnsent)
	}
}

// Flush waits until all that was handed in has been written, no longer than ctx.
func (l *sseLink) Flush(ctx context.Context) error {
	l.mu.Lock()
	if l.err != nil || len(l.queue) == 0 && l.sending == 0 {
		defer l.mu.Unlock()
		return l.err
	}
	if l.still == nil {
		l.still = make(chan struct{})
	}
	still := l.still
	l.mu.Unlock()
	select {
	case <-still:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close implements transport.Link.
func (l *sseLink) Close() error {
	l.end(io.EOF)
	return nil
}

// end ends both directions. Only the first reason counts.
func (l *sseLink) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.total.remove(len(l.queue))
	l.err, l.queue = err, nil
	l.tell(&l.room)
	l.tell(&l.still)
	close(l.gone)
}

// tell wakes those who wait for a channel. l.mu is held.
func (*sseLink) tell(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}

// maxSpare bounds the memory that a link keeps between messages.
const maxSpare = 64 << 10

// take returns the events that wait, nil if there are none. What was taken
// before has been given back.
func (l *sseLink) take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sending = len(l.queue); l.sending == 0 {
		l.tell(&l.still)
		return nil
	}
	wire := l.queue
	l.queue, l.spare = l.spare[:0], nil
	l.tell(&l.room)
	return wire
}

// giveBack says that what was taken has been written.
func (l *sseLink) giveBack(wire []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending = 0
	if cap(wire) <= maxSpare {
		l.spare = wire
	}
}

// pump writes to the stream what is written to the link, and keeps it alive,
// until the client has gone, does not read, or the link ends.
func (l *sseLink) pump(client context.Context, stream *eventStream) {
	ticker := time.NewTicker(l.opts.KeepAlive)
	defer ticker.Stop()
	for {
		if wire := l.take(); wire != nil {
			err := stream.events(wire)
			l.total.remove(len(wire))
			if err != nil {
				return
			}
			l.giveBack(wire)
			continue
		}
		select {
		case <-l.wake:
		case <-l.gone:
			return
		case <-client.Done():
			return
		case <-ticker.C:
			if stream.comment() != nil {
				return
			}
		}
	}
}
