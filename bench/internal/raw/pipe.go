package raw

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/lines"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// Pipe is a [Client] over a server's stdin and stdout, with calls in flight
// side by side.
type Pipe struct {
	// Set at construction.
	peer   Peer
	stdin  io.WriteCloser
	stdout io.ReadCloser

	lines *lines.Reader
	turn  int64
	shape *shape
}

// NewPipe returns a client of the server with the given stdin and stdout.
func NewPipe(stdin io.WriteCloser, stdout io.ReadCloser, p Peer) *Pipe {
	return &Pipe{
		peer: p, stdin: stdin, stdout: stdout,
		lines: lines.NewReader(stdout),
	}
}

// What the pipe to the server surely holds, Linux's 64 KiB less a little:
// writing that much never waits for the server.
const pipeHolds = 56 << 10

// Close implements [Client].
func (p *Pipe) Close() error {
	p.stdin.Close()
	return p.stdout.Close()
}

// Open implements [Client].
func (p *Pipe) Open() error {
	if p.peer.Echo {
		return nil
	}
	greeting, method := wire.Greeting(p.peer.Revision)
	reply, id, err := p.ask(greeting)
	if err == nil {
		err = wire.CheckGreeting(reply, id, p.peer.Revision)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if p.peer.Revision == wire.Legacy {
		if _, err := p.stdin.Write(wire.Initialized().Line().Bytes); err != nil {
			return err
		}
	}
	reply, id, err = p.ask(wire.ListTools(p.peer.Revision))
	if err == nil {
		err = wire.CheckList(reply, id)
	}
	if err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	return nil
}

// ask sends one message and returns the one that answers it, valid until the
// next one.
func (p *Pipe) ask(m *wire.Message) (reply []byte, id int64, err error) {
	line := m.Line()
	id = slotID(0, p.turn)
	p.turn++
	line.SetID(id)
	wrote := make(chan error, 1)
	go func() {
		_, err := p.stdin.Write(line.Bytes)
		wrote <- err
	}()
	for {
		reply, err := p.lines.Next()
		if err != nil {
			return nil, id, fmt.Errorf("reading: %w", err)
		}
		if p.peer.Echo || isResponse(reply, id) {
			return reply, id, <-wrote
		}
		if !isNotification(reply) {
			return nil, id, fmt.Errorf("want a response to %d, got %s", id, wire.Excerpt(reply))
		}
	}
}

// isNotification reports whether a message, decoded, answers nothing.
func isNotification(message []byte) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	return json.Unmarshal(message, &m) == nil && m.Method != "" && m.ID == nil
}

// Run implements [Client].
func (p *Pipe) Run(l Load) (*Sample, error) {
	if err := checkInFlight(l.InFlight); err != nil {
		return nil, err
	}
	call := wire.CallTool(p.peer.Revision, l.Text)
	if p.shape == nil || p.shape.text != l.Text {
		reply, id, err := p.ask(call)
		if err != nil {
			return nil, err
		}
		call.SetID(id)
		if p.shape, err = learn(reply, id, p.peer, l.Text, call.Bytes); err != nil {
			return nil, err
		}
	}

	line := call.Line()
	w := &window{pipe: p, slots: make([]*slot, l.InFlight)}
	for i := range w.slots {
		w.slots[i] = &slot{turn: p.turn, request: line.Clone()}
		switch {
		case p.peer.Typed:
			w.slots[i].typed = newTypedCall(p.peer.Revision, l.Text, nil)
		case p.peer.Copied:
			w.slots[i].copied = newCopiedCall(l.Text)
		}
	}
	if p.peer.Typed {
		w.typed = newTypedCall(p.peer.Revision, l.Text, nil)
	}
	quota := newQuota(l)
	start := time.Now()
	var err error
	switch {
	case p.peer.Apart:
		err = w.runCallers(quota)
	case l.InFlight*len(line.Bytes) <= pipeHolds:
		err = w.runAlone(quota)
	default:
		err = w.runApart(quota)
	}
	elapsed := time.Since(start)
	if err != nil {
		return nil, err
	}
	for _, s := range w.slots {
		p.turn = max(p.turn, s.turn)
	}
	return NewSample(elapsed, w.latencies), nil
}

// A window is the calls in flight of one load.
type window struct {
	pipe      *Pipe
	slots     []*slot
	typed     *typedCall // that decodes all replies; nil: they are compared
	latencies []time.Duration
}

// A slot is one call in flight. One goroutine may write it and another read
// the reply, and only the server stands between them, hence the atomics.
type slot struct {
	turn    int64
	request *wire.Message
	typed   *typedCall   // that writes the requests; nil: they are sent as they are
	copied  *copiedCall  // nil: they are sent as they are
	id      atomic.Int64 // of the call in flight, 0 for none
	sent    atomic.Int64 // nanoseconds since the epoch of the load
}

// runAlone writes and reads in one goroutine, which is possible when all that
// is in flight fits the pipe to the server. Each request is a write of its
// own, as it is with callers that know nothing of each other: the server sees
// as many at once as have come while it was busy.
func (w *window) runAlone(q *quota) error {
	epoch := time.Now()
	free := make([]int, len(w.slots))
	for i := range free {
		free[i] = i
	}
	inFlight := 0
	for {
		for _, i := range free {
			now := time.Now()
			if !q.take(now) {
				break
			}
			if _, err := w.pipe.stdin.Write(w.next(i, now.Sub(epoch))); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
			inFlight++
		}
		free = free[:0]
		if inFlight == 0 {
			return nil
		}
		for more := true; more; more = w.pipe.lines.Ready() {
			i, ok, err := w.receive(epoch)
			if err != nil {
				return err
			}
			if ok {
				free = append(free, i)
				inFlight--
			}
		}
	}
}

// runApart writes in a goroutine of its own. The reader says which slot has
// its turn, so that it knows how many replies are still to come.
func (w *window) runApart(q *quota) error {
	epoch := time.Now()
	turns := make(chan int, len(w.slots))
	inFlight := 0
	for i := range w.slots {
		if q.take(epoch) {
			turns <- i
			inFlight++
		}
	}
	wrote := make(chan error, 1)
	go func() {
		defer close(wrote)
		for i := range turns {
			if _, err := w.pipe.stdin.Write(w.next(i, time.Since(epoch))); err != nil {
				wrote <- fmt.Errorf("writing: %w", err)
				return
			}
		}
	}()
	var err error
	for inFlight > 0 {
		i, ok, e := w.receive(epoch)
		if e != nil {
			err = e
			w.pipe.stdin.Close() // ends a blocked write
			break
		}
		switch {
		case !ok:
		case q.take(time.Now()):
			turns <- i
		default:
			inFlight--
		}
	}
	close(turns)
	return errors.Join(err, <-wrote)
}

// runCallers has each slot's requests written by a goroutine of its own, which waits
// for the reply. One more reads all replies and says to whom each is.
func (w *window) runCallers(q *quota) error {
	epoch := time.Now()
	var (
		joint   = joint{w: w.pipe.stdin}
		callers sync.WaitGroup
		turns   = make([]chan struct{}, len(w.slots))
		failed  = make(chan error, len(w.slots))
	)
	inFlight := 0
	for i := range w.slots {
		turns[i] = make(chan struct{}, 1)
		callers.Go(func() {
			for range turns[i] {
				if err := joint.write(w.next(i, time.Since(epoch))); err != nil {
					failed <- fmt.Errorf("writing: %w", err)
					w.pipe.stdout.Close() // ends the reader
					return
				}
			}
		})
		if q.take(epoch) {
			turns[i] <- struct{}{}
			inFlight++
		}
	}
	var err error
	for inFlight > 0 && err == nil {
		var i int
		var ok bool
		switch i, ok, err = w.receive(epoch); {
		case !ok:
		case q.take(time.Now()):
			turns[i] <- struct{}{}
		default:
			inFlight--
		}
	}
	if err != nil {
		w.pipe.stdin.Close() // ends blocked writes
	}
	for _, turn := range turns {
		close(turn)
	}
	callers.Wait()
	close(failed)
	return errors.Join(err, <-failed)
}

// next prepares the next request of a slot and returns its bytes.
func (w *window) next(i int, now time.Duration) []byte {
	s := w.slots[i]
	id := slotID(i, s.turn)
	s.turn++
	s.id.Store(id)
	s.sent.Store(int64(now))
	if s.typed != nil {
		return s.typed.request(id)
	}
	s.request.SetID(id)
	return s.copied.request(s.request.Bytes)
}

// receive reads one line and returns the slot that it answers. A line that
// answers none, a notification, is not ok.
func (w *window) receive(epoch time.Time) (i int, ok bool, err error) {
	line, err := w.pipe.lines.Next()
	if err != nil {
		return 0, false, fmt.Errorf("reading: %w", err)
	}
	id, err := w.idOf(line)
	if id == 0 || err != nil {
		return 0, false, err
	}
	i = slotOf(id)
	if id < wire.FirstID || i >= len(w.slots) || !w.slots[i].id.CompareAndSwap(id, 0) {
		return 0, false, fmt.Errorf("nothing with id %d is in flight", id)
	}
	w.slots[i].copied.keep(line)
	w.latencies = append(w.latencies, time.Since(epoch)-time.Duration(w.slots[i].sent.Load()))
	return i, true, nil
}

// idOf returns which call a line answers, 0 if it answers none.
func (w *window) idOf(line []byte) (int64, error) {
	if w.typed != nil {
		return w.typed.check(line)
	}
	id, ok := w.pipe.shape.id(line)
	if !ok && !isNotification(line) {
		return 0, fmt.Errorf("want %d bytes, got %s", w.pipe.shape.length, wire.Excerpt(line))
	}
	return id, nil
}
