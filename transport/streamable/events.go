package streamable

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Limits of the broadcast stream.
const (
	// MaxReplay is how many events are kept for clients that are slow or come
	// back, and MaxReplayBytes how many bytes of them. A client that falls
	// further behind misses the oldest; its next event says how many.
	MaxReplay      = 256
	MaxReplayBytes = 1 << 20
	// MaxWatchers is how many clients may watch at a time.
	MaxWatchers = 10_000
)

// A Broadcast is an event stream that every client gets: heartbeats, the state
// of a dashboard. It carries nothing that belongs to one client. As an
// [http.Handler] it serves every request, also those of foreign web pages: it is
// for whoever mounts it to let only the right ones through, as [Server] does. It
// is safe for concurrent use.
//
// Each client first gets the event connected. Then each event has a number as
// its id, and a client that comes back with Last-Event-ID gets what it missed as
// far as that is kept.
type Broadcast struct {
	// Set at construction.
	opts        *HandlerOptions
	maxWatchers int
	run         string // tells ids of this process's life from those of another

	mu       sync.Mutex
	events   [][]byte      // the newest in wire form, guarded by mu like what follows
	bytes    int           // of them
	next     int64         // number of the next event
	changed  chan struct{} // closed at the next event
	watchers int
	closed   bool
}

// NewBroadcast returns a stream without clients.
func NewBroadcast() *Broadcast {
	var o *HandlerOptions
	d := o.withDefaults()
	return newBroadcast(&d)
}

func newBroadcast(opts *HandlerOptions) *Broadcast {
	return &Broadcast{
		opts: opts, maxWatchers: MaxWatchers, run: strconv.FormatInt(time.Now().UnixNano(), 36),
		next: 1, changed: make(chan struct{}),
	}
}

// Send sends an event to everybody who watches. It does not wait for anybody.
// The name must not hold line breaks.
func (b *Broadcast) Send(name string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("broadcast: %w", mcp.ErrClosed)
	}
	id := b.run + "-" + strconv.FormatInt(b.next, 10)
	wire, err := sse.AppendEvent(nil, sse.Event{Name: name, ID: id, Data: data})
	if err != nil {
		return fmt.Errorf("broadcast: %w", err)
	}
	if len(wire) > MaxReplayBytes {
		return fmt.Errorf("broadcast: event of %d bytes is over the limit MaxReplayBytes of %d", len(wire), MaxReplayBytes)
	}
	b.next++
	b.events = append(b.events, wire)
	b.bytes += len(wire)
	for len(b.events) > MaxReplay || b.bytes > MaxReplayBytes {
		b.bytes -= len(b.events[0])
		b.events[0] = nil
		b.events = b.events[1:]
	}
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

// Watchers returns how many clients are connected.
func (b *Broadcast) Watchers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watchers
}

// Close ends all streams when their clients have what was sent before.
func (b *Broadcast) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.changed)
	}
}

// after returns the kept events from number from on, the number to go on with,
// and a channel that is closed when there are more; it is nil if there will be
// none.
func (b *Broadcast) after(from int64) (events [][]byte, next int64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest := b.next - int64(len(b.events))
	events = slices.Clone(b.events[max(from-oldest, 0):])
	if b.closed {
		return events, b.next, nil
	}
	return events, b.next, b.changed
}

// start returns the number of the first event for a client.
func (b *Broadcast) start(lastID string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	run, number, _ := strings.Cut(lastID, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || run != b.run || n < 0 || n >= b.next {
		return b.next
	}
	return n + 1
}

// enter counts a client until leave, or returns why it must not watch.
func (b *Broadcast) enter() *reject {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rej *reject
	switch {
	case b.closed:
		rej = unavailable("%v", errDraining)
	case b.watchers >= b.maxWatchers:
		rej = unavailable("the limit MaxWatchers of %d is reached", b.maxWatchers)
	default:
		b.watchers++
		return nil
	}
	rej.null = true
	return rej
}

func (b *Broadcast) leave() {
	b.mu.Lock()
	b.watchers--
	b.mu.Unlock()
}

// ServeHTTP implements [http.Handler].
func (b *Broadcast) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := newOutput(w, r, b.opts)
	if rej := b.serve(out); rej != nil {
		out.refuse(rej)
	}
}

func (b *Broadcast) serve(out *output) *reject {
	if rej := b.enter(); rej != nil {
		return rej
	}
	defer b.leave()
	from := b.start(out.r.Header.Get(lastEventID))
	stream := openStream(out)
	defer stream.end()
	if stream.events([]byte("event: connected\ndata: {\"status\":\"connected\"}\n\n")) == nil {
		b.watch(stream, from)
	}
	return nil
}

// watch writes events from number from on until the client or the stream ends.
func (b *Broadcast) watch(stream *eventStream, from int64) {
	ticker := time.NewTicker(b.opts.KeepAlive)
	defer ticker.Stop()
	for {
		events, next, changed := b.after(from)
		if missed := next - int64(len(events)) - from; missed > 0 {
			events = slices.Insert(events, 0, fmt.Appendf(nil, "event: missed\ndata: {\"missed\":%d}\n\n", missed))
		}
		if len(events) > 0 && stream.events(events...) != nil {
			return
		}
		if from = next; changed == nil {
			return
		}
		select {
		case <-changed:
		case <-stream.out.r.Context().Done():
			return
		case <-ticker.C:
			if stream.comment() != nil {
				return
			}
		}
	}
}
