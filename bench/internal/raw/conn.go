package raw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// A conn is a client connection that speaks as much of HTTP/1.1 as the
// contestants' responses need.
type conn struct {
	tcp io.ReadWriteCloser
	// buf[from:to] was read and not yet consumed.
	buf      []byte
	from, to int
	session  string // the last Mcp-Session-Id seen
}

const connBuffer = 64 << 10

func newConn(tcp io.ReadWriteCloser) *conn {
	return &conn{tcp: tcp, buf: make([]byte, connBuffer)}
}

// do sends a whole request and returns the reply.
func (c *conn) do(request []byte) (reply, error) {
	c.from, c.to = 0, 0
	if _, err := c.tcp.Write(request); err != nil {
		return reply{}, fmt.Errorf("sending: %w", err)
	}
	head, err := c.head()
	if err != nil {
		return reply{}, fmt.Errorf("reading headers: %w", err)
	}
	r := reply{status: head.status, events: head.events}
	switch {
	case head.chunked:
		r.body, err = c.chunks()
	case head.length >= 0:
		r.body, err = c.take(head.length)
	case r.status != http.StatusAccepted && r.status != http.StatusNoContent:
		err = errors.New("neither length nor chunks")
	}
	if err != nil {
		return reply{}, fmt.Errorf("reading the body of a %d: %w", r.status, err)
	}
	return r, nil
}

// fill reads more.
func (c *conn) fill() error {
	if c.to == len(c.buf) {
		c.buf = append(c.buf, make([]byte, len(c.buf))...)
	}
	n, err := c.tcp.Read(c.buf[c.to:])
	c.to += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// take consumes n bytes.
func (c *conn) take(n int) ([]byte, error) {
	for c.to-c.from < n {
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
	b := c.buf[c.from : c.from+n]
	c.from += n
	return b, nil
}

// until consumes what comes before the mark, and the mark.
func (c *conn) until(mark string) ([]byte, error) {
	seen := c.from
	for {
		if i := bytes.Index(c.buf[seen:c.to], []byte(mark)); i >= 0 {
			b := c.buf[c.from : seen+i]
			c.from = seen + i + len(mark)
			return b, nil
		}
		seen = max(c.from, c.to-len(mark)+1)
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

type head struct {
	status  int
	length  int // -1: not given
	chunked bool
	events  bool
}

func (c *conn) head() (head, error) {
	h := head{length: -1}
	raw, err := c.until("\r\n\r\n")
	if err != nil {
		return h, err
	}
	line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
	const code = len("HTTP/1.1 ")
	if len(line) < code+3 {
		return h, fmt.Errorf("status line %q", line)
	}
	if h.status, err = strconv.Atoi(string(line[code : code+3])); err != nil {
		return h, fmt.Errorf("status line %q", line)
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case equalFold(name, "content-length"):
			if h.length, err = strconv.Atoi(string(value)); err != nil {
				return h, fmt.Errorf("length %q", value)
			}
		case equalFold(name, "transfer-encoding"):
			h.chunked = equalFold(value, "chunked")
		case equalFold(name, "content-type"):
			h.events = bytes.HasPrefix(value, []byte("text/event-stream"))
		case equalFold(name, "mcp-session-id"):
			if string(value) != c.session {
				c.session = string(value)
			}
		case equalFold(name, "connection") && equalFold(value, "close"):
			return h, errors.New("the server closes the connection after each reply")
		}
	}
	return h, nil
}

// chunks consumes a chunked body. The body replaces the chunks in the buffer,
// so that reading it allocates nothing.
func (c *conn) chunks() ([]byte, error) {
	start, end := c.from, c.from
	for {
		line, err := c.until("\r\n")
		if err != nil {
			return nil, err
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(digits), 16, 31)
		if err != nil {
			return nil, fmt.Errorf("chunk size %q", line)
		}
		chunk, err := c.take(int(n))
		if err != nil {
			return nil, err
		}
		end += copy(c.buf[end:], chunk)
		if tail, err := c.take(len("\r\n")); err != nil || string(tail) != "\r\n" {
			return nil, errors.Join(errors.New("chunk without end"), err)
		}
		if n == 0 {
			return c.buf[start:end], nil
		}
	}
}

// equalFold compares without allocating; lower is lower-case ASCII.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
