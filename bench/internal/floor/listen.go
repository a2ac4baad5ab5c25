package floor

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A Listen is the least that holds subscriptions open with net/http: a goroutine
// and a place in a shared list of changes each. It keeps no filter: every stream
// gets every change. What has changed since a stream was last told goes out in
// one write.
type Listen struct {
	// Set at construction.
	rest      Server
	resources []string

	mu      sync.Mutex
	changes []string      // guarded by mu
	changed chan struct{} // closed at the next change, guarded by mu
}

// NewListen returns a server of so many resources.
func NewListen(resources int) *Listen {
	return &Listen{resources: wire.Resources(resources), changed: make(chan struct{})}
}

// ServeHTTP implements [http.Handler].
func (l *Listen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Header.Get("Mcp-Method") {
	case "subscriptions/listen":
		l.serve(w, r)
	case "tools/call":
		if r.Header.Get("Mcp-Name") == wire.ChangeName {
			l.change()
		}
		fallthrough
	default:
		l.rest.ServeHTTP(w, r)
	}
}

// change says of each resource that it has changed.
func (l *Listen) change() {
	for _, uri := range l.resources {
		l.mu.Lock()
		l.changes = append(l.changes, uri)
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
	}
}

// since returns the changes after the first seen ones, and what is closed when
// there are more.
func (l *Listen) since(seen int) ([]string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes[seen:], l.changed
}

// settle is how long changes are collected before they go out.
const settle = 10 * time.Millisecond

// serve holds one stream open.
func (l *Listen) serve(w http.ResponseWriter, r *http.Request) {
	id, err := listenID(r)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	seen := len(l.changes)
	l.mu.Unlock()
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	w.Write(appendEvent(nil, "notifications/subscriptions/acknowledged", `"notifications":{}`, id))
	rc := http.NewResponseController(w)
	rc.Flush()
	for {
		list, changed := l.since(seen)
		if len(list) == 0 {
			select {
			case <-changed:
				time.Sleep(settle)
				continue
			case <-r.Context().Done():
				return
			}
		}
		b := pool.Get().(*buffers)
		b.out = b.out[:0]
		for _, uri := range list {
			b.out = appendEvent(b.out, "notifications/resources/updated", `"uri":"`+uri+`"`, id)
		}
		w.Write(b.out)
		pool.Put(b)
		rc.Flush()
		seen += len(list)
	}
}

// listenID returns the id of the request, as text.
func listenID(r *http.Request) (string, error) {
	b := pool.Get().(*buffers)
	defer pool.Put(b)
	if err := b.readBody(r); err != nil {
		return "", err
	}
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	err := json.Unmarshal(b.in, &m)
	return string(m.ID), err
}

func appendEvent(dst []byte, method, member, id string) []byte {
	dst = append(dst, `data: {"jsonrpc":"2.0","method":"`...)
	dst = append(dst, method...)
	dst = append(dst, `","params":{`...)
	dst = append(dst, member...)
	dst = append(dst, `,"_meta":{"io.modelcontextprotocol/subscriptionId":`...)
	dst = append(dst, id...)
	return append(dst, "}}}\n\n"...)
}
