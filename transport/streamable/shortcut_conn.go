package streamable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// A shortConn is a network connection of a [shortcut]. It belongs to one request at a
// time, or is idle.
type shortConn struct {
	conn   net.Conn
	reader *bufio.Reader // of the shortConn
	hangup func()        // closes conn
	peeker

	kept  bool      // it has been idle
	since time.Time // when it became so

	head   []byte // of the request
	pieces [2][]byte
	sent   int        // bytes of the request
	late   chan error // gets the result of writing the end of the request; nil if that is written

	limit int64 // bytes that the header of a reply may have
	left  int64 // bytes that may still be read
}

func newShortConn(conn net.Conn, limit int64) *shortConn {
	c := &shortConn{conn: conn, hangup: func() { _ = conn.Close() }, limit: limit}
	c.reader = bufio.NewReader(c)
	if sc, ok := conn.(syscall.Conn); ok {
		c.peeker = newPeeker(sc)
	}
	return c
}

var errHeaderTooLong = errors.New("the header of the reply is too long")

// Read implements [io.Reader]. It begins nothing beyond the limit that holds.
func (c *shortConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHeaderTooLong
	}
	n, err := c.conn.Read(p)
	c.left -= int64(n)
	return n, err
}

// An unsentError is why nothing of a request was written.
type unsentError struct{ err error }

// Error implements error.
func (e *unsentError) Error() string { return e.err.Error() }

// Unwrap returns the error of the network.
func (e *unsentError) Unwrap() error { return e.err }

// mayRepeat reports whether a request that failed on a kept connection may be made again:
// nothing of it was sent, or it is a GET and nothing came for it. The latter is what
// net/http does.
func (c *shortConn) mayRepeat(req *http.Request, err error) bool {
	_, unsent := errors.AsType[*unsentError](err)
	return unsent || req.Method == http.MethodGet && c.left == c.limit
}

// send writes a request, whose head is in c.
func (c *shortConn) send(req *http.Request) error {
	c.sent, c.late = 0, nil
	var n int64
	var err error
	if body, ok := req.Body.(io.WriterTo); ok && req.ContentLength > 0 {
		n, err = body.WriteTo(c)
	} else {
		_, err = c.Write(nil)
	}
	if err == nil && n != req.ContentLength {
		err = fmt.Errorf("a body of %d bytes, not %d", n, req.ContentLength)
	}
	if err != nil && c.sent == 0 {
		return &unsentError{err}
	}
	return err
}

// Bounds of writing a request before anything is read. Any peer takes copiedBody
// bytes without reading them, and it is cheaper to copy them. One that takes longer
// than writePatience for more may be answering already.
const (
	copiedBody    = 8 << 10
	writePatience = 100 * time.Millisecond
)

// Write implements [io.Writer]: it sends p as the whole body of the request.
func (c *shortConn) Write(p []byte) (int, error) {
	if len(p) <= copiedBody {
		c.head = append(c.head, p...)
		n, err := c.conn.Write(c.head)
		c.sent += n
		return len(p), err
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(writePatience)); err != nil {
		return 0, err
	}
	c.pieces = [2][]byte{c.head, p}
	pieces := net.Buffers(c.pieces[:])
	n, err := pieces.WriteTo(c.conn)
	c.pieces = [2][]byte{}
	c.sent += int(n)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return len(p), errors.Join(err, c.conn.SetWriteDeadline(time.Time{}))
	}
	c.writeLate(append(c.head, p...)[n:])
	return len(p), nil
}

// writeLate writes the end of a request while its reply is awaited. Done waits for
// that.
func (c *shortConn) writeLate(rest []byte) {
	c.late = make(chan error, 1)
	go func(late chan<- error) {
		err := c.conn.SetWriteDeadline(time.Time{})
		if err == nil {
			_, err = c.conn.Write(rest)
		}
		late <- err
	}(c.late)
}

// done ends a request. It closes the connection if that is of no more use, which it
// reports.
func (c *shortConn) done(keep bool) bool {
	if c.late != nil && keep {
		select {
		case err := <-c.late:
			keep, c.late = err == nil, nil
		default:
			keep = false
		}
	}
	// What has come unasked would be taken for the next reply.
	if keep && c.reader.Buffered() == 0 && c.raw != nil {
		return false
	}
	_ = c.conn.Close()
	if c.late != nil {
		<-c.late
	}
	return true
}

// receive reads the header of a reply. Informational ones before it are passed over,
// within the same limit. The wait for each may be handed over, if h is not nil.
func (c *shortConn) receive(req *http.Request, h *handover) (*http.Response, error) {
	c.left = c.limit
	for {
		if h != nil && !h.await(c) {
			return nil, errHandedOver
		}
		resp, err := http.ReadResponse(c.reader, req)
		switch {
		case err != nil && c.left <= 0:
			return nil, fmt.Errorf("the header of the reply is over the limit MaxReplyHeader of %d bytes", c.limit)
		case err != nil:
			return nil, err
		case resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols:
			c.left = math.MaxInt64 // whoever reads a body has a limit for it
			return resp, nil
		}
	}
}
