package streamable

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
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
// [http.Handler] it serves GET. It is safe for concurrent use.
//
// Each client first gets the event connected. Then each event has a number as
// its id, and a client that comes back with Last-Event-ID gets what it missed as
// far as that is kept.
type Broadcast struct {
	mu       sync.Mutex
	events   []sse.Event   // the newest, guarded by mu like what follows
	bytes    int           // of their data
	next     int64         // number of the next event
	changed  chan struct{} // closed at the next event
	watchers int
	closed   bool

	run string // tells ids of this process's life from those of another
}

// NewBroadcast returns a stream without clients.
func NewBroadcast() *Broadcast {
	return &Broadcast{next: 1, changed: make(chan struct{}), run: strconv.FormatInt(time.Now().UnixNano(), 36)}
}

// Send sends an event to everybody who watches. It does not wait for anybody.
// The name must not hold line breaks.
func (b *Broadcast) Send(name string, data []byte) error {
	e := sse.Event{Name: name, Data: data}
	if _, err := sse.AppendEvent(nil, e); err != nil {
		return fmt.Errorf("broadcast: %w", err)
	}
	if len(data) > MaxReplayBytes {
		return fmt.Errorf("broadcast: event of %d bytes is over the limit MaxReplayBytes of %d", len(data), MaxReplayBytes)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e.ID = b.run + "-" + itoa(b.next)
	b.next++
	b.events = append(b.events, e)
	b.bytes += len(data)
	for len(b.events) > MaxReplay || b.bytes > MaxReplayBytes {
		b.bytes -= len(b.events[0].Data)
		b.events[0] = sse.Event{}
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

// Close ends all streams.
func (b *Broadcast) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.changed)
	}
}

// after returns the kept events from number from on, the number to go on with,
// and a channel that is closed when there are more; it is nil at the end.
func (b *Broadcast) after(from int64) (events []sse.Event, next int64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, b.next, nil
	}
	oldest := b.next - int64(len(b.events))
	skip := max(from-oldest, 0)
	return b.events[min(skip, int64(len(b.events))):len(b.events):len(b.events)], b.next, b.changed
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

func (b *Broadcast) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.watchers >= MaxWatchers {
		return false
	}
	b.watchers++
	return true
}

func (b *Broadcast) leave() {
	b.mu.Lock()
	b.watchers--
	b.mu.Unlock()
}

// ServeHTTP implements [http.Handler].
func (b *Broadcast) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !b.enter() {
		(&reject{
			status: http.StatusServiceUnavailable,
			err:    jsonrpc.Errorf(jsonrpc.CodeInternalError, "Service Unavailable: the limit MaxWatchers of %d is reached", MaxWatchers),
			null:   true,
		}).write(w)
		return
	}
	defer b.leave()
	stream := openStream(w, nil)
	if stream.event(sse.Event{Name: "connected", Data: []byte(`{"status":"connected"}`)}) != nil {
		return
	}
	b.watch(stream, r, b.start(r.Header.Get(lastEventID)))
}

// watch writes events from number from on until the client or the stream ends.
func (b *Broadcast) watch(stream *eventStream, r *http.Request, from int64) {
	ticker := time.NewTicker(KeepAlive)
	defer ticker.Stop()
	for {
		events, next, changed := b.after(from)
		if missed := next - int64(len(events)) - from; missed > 0 {
			if stream.event(sse.Event{Name: "missed", Data: []byte(`{"missed":` + itoa(missed) + `}`)}) != nil {
				return
			}
		}
		for _, e := range events {
			if stream.event(e) != nil {
				return
			}
		}
		if from = next; changed == nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-ticker.C:
			if stream.comment() != nil {
				return
			}
		}
	}
}
