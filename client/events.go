package client

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// An Event is something that a server has told without being asked.
type Event struct {
	// Method is that of the notification; Resynced if there was none.
	Method string
	// Params are the notification's, nil if it has none.
	Params mcp.JSON
	// Lost is how many events came between the last one and this one that the
	// subscriber did not take in time.
	Lost int
}

// size returns what an event counts: servers may make up methods of any length.
func (e *Event) size() int { return len(e.Method) + len(e.Params) }

// Resynced is the method of an event that stands for changes that may have been
// missed: the connection was lost, and is there again. Whoever keeps a copy of
// something should get it anew.
const Resynced = "resynced"

// URI returns the resource that an event is about, "" if none.
func (e *Event) URI() string {
	params := jsonrpc.Trusted(e.Params)
	uri, _ := params.LookupString("uri")
	return uri
}

// MaxEvents is how many events wait for a subscriber, and MaxEventBytes how large
// their methods and params are together. Of more the oldest are dropped, and the next one says
// how many ([Event].Lost). A change that waits already is not put in again.
const (
	MaxEvents     = 256
	MaxEventBytes = 1 << 20
)

// A queue holds the events of one subscription.
type queue struct {
	wake chan struct{} // holds a value if there are events

	mu     sync.Mutex
	events []Event // guarded by mu, like what follows
	bytes  int     // of their methods and params
	lost   int     // events dropped since the last one in events, if that is empty
}

func newQueue() queue { return queue{wake: make(chan struct{}, 1)} }

// put adds what a notification tells. It does not wait.
func (q *queue) put(n *mcp.Notification) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := Event{Method: n.Method, Params: n.Params.Raw()}
	if isChange(n.Method) && q.holds(&e) {
		return
	}
	e.Params = bytes.Clone(e.Params)
	for len(q.events) > 0 && (len(q.events) >= MaxEvents || q.bytes+e.size() > MaxEventBytes) {
		q.lost += 1 + q.events[0].Lost
		q.remove()
		if len(q.events) > 0 {
			q.events[0].Lost += q.lost
			q.lost = 0
		}
	}
	e.Lost, q.lost = q.lost, 0
	q.events = append(q.events, e)
	q.bytes += e.size()
	q.signal()
}

// isChange reports whether hearing of something twice tells no more than once.
func isChange(method string) bool {
	return method == Resynced || method == mcp.NotificationResourceUpdated || listsOf[method] != nil
}

func (q *queue) holds(e *Event) bool {
	return slices.ContainsFunc(q.events, func(other Event) bool {
		return other.Method == e.Method && bytes.Equal(other.Params, e.Params)
	})
}

// remove removes the first event. q.mu is held.
func (q *queue) remove() {
	q.bytes -= q.events[0].size()
	q.events = slices.Delete(q.events, 0, 1)
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop returns the first event, if there is one.
func (q *queue) pop() (Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		return Event{}, false
	}
	e := q.events[0]
	q.remove()
	if len(q.events) > 0 {
		q.signal() // somebody else may wait
	}
	return e, true
}

// take waits for an event until ctx ends, or done and there is none left.
func (q *queue) take(ctx context.Context, done <-chan struct{}) (Event, bool) {
	for {
		if e, ok := q.pop(); ok {
			return e, true
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return Event{}, false
		case <-done:
			return q.pop()
		}
	}
}
