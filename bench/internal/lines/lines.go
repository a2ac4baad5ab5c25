// Package lines reads lines of any length without allocating for each.
package lines

import (
	"bytes"
	"io"
)

// A Reader reads lines into one buffer, which grows to the longest of them. It
// is not safe for concurrent use.
type Reader struct {
	r io.Reader
	// buf[from:to] was read and not yet consumed; buf[from:seen] has no end
	// of line.
	buf            []byte
	from, seen, to int
}

const buffer = 256 << 10

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: r, buf: make([]byte, buffer)}
}

// Ready reports whether Next returns without reading.
func (l *Reader) Ready() bool {
	i := bytes.IndexByte(l.buf[l.seen:l.to], '\n')
	if i < 0 {
		l.seen = l.to
		return false
	}
	l.seen += i
	return true
}

// Next returns the next line without its end, valid until the next call. An
// unfinished last line is dropped.
func (l *Reader) Next() ([]byte, error) {
	for !l.Ready() {
		if l.from > 0 {
			l.to = copy(l.buf, l.buf[l.from:l.to])
			l.from, l.seen = 0, l.to
		}
		if l.to == len(l.buf) {
			l.buf = append(l.buf, make([]byte, len(l.buf))...)
		}
		n, err := l.r.Read(l.buf[l.to:])
		l.to += n
		if n == 0 && err != nil {
			return nil, err
		}
	}
	line := l.buf[l.from:l.seen]
	l.from, l.seen = l.seen+1, l.seen+1
	return line, nil
}
