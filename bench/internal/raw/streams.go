package raw

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// Streams are many subscriptions of one server over HTTP, each on a connection of
// its own.
type Streams struct {
	// Set at construction.
	resources int
	list      []*stream

	told    atomic.Int64 // notifications of changes so far
	readers sync.WaitGroup
}

// A stream is one subscription. It is read by a goroutine of its own.
type stream struct {
	conn net.Conn
	body io.Reader

	// counts is how often each resource was said to have changed. Atomic, as
	// it is read while notifications still come.
	counts []atomic.Int32
}

// openAtOnce is how many streams are opened side by side.
const openAtOnce = 16

// streamBuffer is what one stream is read with.
const streamBuffer = 8 << 10

// OpenStreams opens n subscriptions, each to so many resources, and returns when
// all are acknowledged.
func OpenStreams(addr string, n, resources int) (*Streams, error) {
	s := &Streams{resources: resources}
	listen := wire.Listen(wire.Resources(resources)).HTTP(wire.Endpoint{Addr: addr, Revision: wire.Modern}, "subscriptions/listen", "")
	opened := make([]*stream, n)
	errs := make([]error, openAtOnce)
	var next atomic.Int64
	var openers sync.WaitGroup
	for worker := range openAtOnce {
		openers.Go(func() {
			request := listen.Clone()
			for errs[worker] == nil {
				i := next.Add(1) - 1
				if i >= int64(n) {
					return
				}
				request.SetID(wire.FirstID + i)
				opened[i], errs[worker] = s.open(addr, request.Bytes)
			}
		})
	}
	openers.Wait()
	for _, st := range opened {
		if st != nil {
			s.list = append(s.list, st)
			s.readers.Go(func() { s.read(st) })
		}
	}
	if err := errors.Join(errs...); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Streams) open(addr string, request []byte) (*stream, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	st := &stream{conn: conn, counts: make([]atomic.Int32, s.resources)}
	if err := st.begin(request); err != nil {
		conn.Close()
		return nil, err
	}
	return st, nil
}

// begin sends the request and waits for its acknowledgement.
func (st *stream) begin(request []byte) error {
	const patience = 10 * time.Second
	st.conn.SetDeadline(time.Now().Add(patience))
	defer st.conn.SetDeadline(time.Time{})
	if _, err := st.conn.Write(request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(st.conn, streamBuffer), nil)
	if err != nil {
		return fmt.Errorf("reading the reply to subscriptions/listen: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("subscriptions/listen: HTTP status %d: %s", resp.StatusCode, wire.Excerpt(body))
	}
	lines := bufio.NewReaderSize(resp.Body, streamBuffer)
	st.body = lines
	for {
		line, err := nextEvent(lines)
		if err != nil {
			return fmt.Errorf("waiting for the acknowledgement: %w", err)
		}
		if wire.IsAcknowledged(line) {
			return nil
		}
	}
}

// nextEvent returns the data of the next event that is one line of at most
// streamBuffer bytes, valid until the next one.
func nextEvent(lines *bufio.Reader) ([]byte, error) {
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			return data, nil
		}
	}
}

// read counts changes until the stream ends.
func (s *Streams) read(st *stream) {
	lines := st.body.(*bufio.Reader)
	for {
		line, err := nextEvent(lines)
		if err != nil {
			return
		}
		if resource, ok := wire.Updated(line); ok && resource < s.resources {
			st.counts[resource].Add(1)
			s.told.Add(1)
		}
	}
}

// Told returns how many notifications of changes have come in all.
func (s *Streams) Told() int { return int(s.told.Load()) }

// Count returns how many changes have been lost and how many doubled, if each
// resource has changed so many times.
func (s *Streams) Count(times int) (lost, doubled int) {
	for _, st := range s.list {
		for i := range st.counts {
			n := int(st.counts[i].Load())
			lost += max(0, times-n)
			doubled += max(0, n-times)
		}
	}
	return lost, doubled
}

// Close ends the subscriptions.
func (s *Streams) Close() {
	for _, st := range s.list {
		st.conn.Close()
	}
	s.readers.Wait()
}

// Change has the server say of each resource that it has changed. It returns when
// the server has answered.
func (h *HTTP) Change() error {
	if err := h.dial(1); err != nil {
		return err
	}
	_, _, err := h.ask(wire.CallChange(h.peer.Revision), "tools/call", wire.ChangeName)
	return err
}
