package raw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// HTTP is a [Client] over keep-alive connections, one call at a time on each.
type HTTP struct {
	// Set at construction.
	peer     Peer
	endpoint wire.Endpoint

	conns []*conn
	turn  int64
	shape *shape
}

// NewHTTP returns a client of the server that listens at addr.
func NewHTTP(addr string, p Peer) *HTTP {
	return &HTTP{peer: p, endpoint: wire.Endpoint{Addr: addr, Revision: p.Revision}}
}

// Close implements [Client].
func (h *HTTP) Close() error {
	for _, c := range h.conns {
		c.tcp.Close()
	}
	h.conns = nil
	return nil
}

// dial makes sure that there are n connections.
func (h *HTTP) dial(n int) error {
	for len(h.conns) < n {
		tcp, err := net.Dial("tcp", h.endpoint.Addr)
		if err != nil {
			return err
		}
		h.conns = append(h.conns, newConn(tcp))
	}
	return nil
}

// Open implements [Client].
func (h *HTTP) Open() error {
	if h.peer.Echo {
		return nil
	}
	if err := h.dial(1); err != nil {
		return err
	}
	greeting, method := wire.Greeting(h.peer.Revision)
	reply, id, err := h.ask(greeting, method, "")
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if err := wire.CheckGreeting(reply, id, h.peer.Revision); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if h.peer.Revision == wire.Legacy {
		h.endpoint.Session = h.conns[0].session
		const method = "notifications/initialized"
		r, err := h.conns[0].do(wire.Initialized().HTTP(h.endpoint, method, "").Bytes)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		if r.status != http.StatusAccepted {
			return fmt.Errorf("%s: HTTP status %d", method, r.status)
		}
	}
	reply, id, err = h.ask(wire.ListTools(h.peer.Revision), "tools/list", "")
	if err == nil {
		err = wire.CheckList(reply, id)
	}
	if err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	return nil
}

// ask sends one message on the first connection and returns the message that
// answers it, valid until the next one.
func (h *HTTP) ask(m *wire.Message, method, name string) (reply []byte, id int64, err error) {
	req := m.HTTP(h.endpoint, method, name)
	id = slotID(0, h.turn)
	h.turn++
	req.SetID(id)
	r, err := h.conns[0].do(req.Bytes)
	if err != nil {
		return nil, 0, err
	}
	reply, err = r.message(id)
	return reply, id, err
}

// Run implements [Client].
func (h *HTTP) Run(l Load) (*Sample, error) {
	if err := checkInFlight(l.InFlight); err != nil {
		return nil, err
	}
	if err := h.dial(l.InFlight); err != nil {
		return nil, err
	}
	call := wire.CallTool(h.peer.Revision, l.Text)
	if h.shape == nil || h.shape.text != l.Text {
		reply, id, err := h.ask(call, "tools/call", wire.ToolName)
		if err != nil {
			return nil, err
		}
		call.SetID(id)
		if h.shape, err = learn(reply, id, h.peer, l.Text, call.Bytes); err != nil {
			return nil, err
		}
	}

	first := call.HTTP(h.endpoint, "tools/call", wire.ToolName)
	workers := make([]*worker, l.InFlight)
	for i := range workers {
		workers[i] = &worker{slot: i, turn: h.turn, conn: h.conns[i], request: first.Clone(), shape: h.shape}
		switch {
		case h.peer.Typed:
			workers[i].typed = newTypedCall(h.peer.Revision, l.Text, &h.endpoint)
		case h.peer.Copied:
			workers[i].copied = newCopiedCall(l.Text)
		}
	}
	quota := newQuota(l)
	var wg sync.WaitGroup
	start := time.Now()
	for _, w := range workers {
		wg.Go(func() { w.run(quota) })
	}
	wg.Wait()
	elapsed := time.Since(start)

	latencies := make([][]time.Duration, len(workers))
	var errs []error
	for i, w := range workers {
		latencies[i] = w.latencies
		errs = append(errs, w.err)
		h.turn = max(h.turn, w.turn)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return NewSample(elapsed, latencies...), nil
}

// A quota tells the slots of a load whether to send another call. It is safe
// for concurrent use.
type quota struct {
	end  time.Time
	left atomic.Int64
}

func newQuota(l Load) *quota {
	q := &quota{end: time.Now().Add(l.Time)}
	q.left.Store(int64(l.Calls))
	return q
}

// take reports whether one more call is to be sent at time now.
func (q *quota) take(now time.Time) bool {
	return q.left.Add(-1) >= 0 || now.Before(q.end)
}

// A worker makes calls on one connection.
type worker struct {
	slot      int
	turn      int64
	conn      *conn
	request   *wire.Message
	shape     *shape
	typed     *typedCall  // nil: the request is sent as it is
	copied    *copiedCall // nil: as it is
	latencies []time.Duration
	err       error
}

func (w *worker) run(q *quota) {
	now := time.Now()
	for q.take(now) {
		id := slotID(w.slot, w.turn)
		w.turn++
		done, err := w.call(id)
		if err != nil {
			w.err = err
			return
		}
		w.latencies = append(w.latencies, done.Sub(now))
		now = done
	}
}

// call makes one call and returns when its reply was there; that of a typed client is
// there when it is decoded.
func (w *worker) call(id int64) (time.Time, error) {
	if w.typed != nil {
		r, err := w.conn.do(w.typed.request(id))
		if err == nil {
			err = r.checkTyped(w.typed, id)
		}
		return time.Now(), err
	}
	w.request.SetID(id)
	r, err := w.conn.do(w.copied.request(w.request.Bytes))
	w.copied.keep(r.body)
	done := time.Now()
	if err == nil {
		err = r.check(w.shape, id)
	}
	return done, err
}

// A reply is one HTTP response, valid until the next one on its connection.
type reply struct {
	status int
	events bool
	body   []byte
}

// check looks at what all replies of a load have in common.
func (r reply) check(s *shape, id int64) error {
	if r.status != http.StatusOK {
		return r.unexpected()
	}
	body := bytes.TrimSuffix(r.body, []byte("\n"))
	if r.events {
		body, _ = s.event(body)
	}
	if got, ok := s.id(body); !ok || got != id {
		return fmt.Errorf("want %d bytes with id %d, got %s", s.length, id, wire.Excerpt(r.body))
	}
	return nil
}

// message returns the response to id that the reply carries.
func (r reply) message(id int64) ([]byte, error) {
	if r.status != http.StatusOK {
		return nil, r.unexpected()
	}
	if !r.events {
		return bytes.TrimSuffix(r.body, []byte("\n")), nil
	}
	for rest := r.body; len(rest) > 0; {
		var data []byte
		data, rest = nextData(rest)
		if isResponse(data, id) {
			return data, nil
		}
	}
	return nil, fmt.Errorf("no event answers id %d: %s", id, wire.Excerpt(r.body))
}

func (r reply) unexpected() error {
	return fmt.Errorf("HTTP status %d: %s", r.status, wire.Excerpt(r.body))
}

// event returns the data of the event that has the shape's length.
func (s *shape) event(stream []byte) ([]byte, bool) {
	for rest := stream; len(rest) > 0; {
		var data []byte
		data, rest = nextData(rest)
		if len(data) == s.length {
			return data, true
		}
	}
	return nil, false
}

// nextData returns the value of the stream's next data line, and what follows
// it. Contestants write a message as one such line.
func nextData(stream []byte) (data, rest []byte) {
	for len(stream) > 0 {
		line, rest, _ := bytes.Cut(stream, []byte("\n"))
		stream = rest
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			value = bytes.TrimSuffix(value, []byte("\r"))
			return bytes.TrimPrefix(value, []byte(" ")), stream
		}
	}
	return nil, nil
}

// isResponse reports whether a message, decoded, is the response to id.
func isResponse(message []byte, id int64) bool {
	var m struct {
		ID     int64  `json:"id"`
		Method string `json:"method"`
	}
	return json.Unmarshal(message, &m) == nil && m.Method == "" && m.ID == id
}
