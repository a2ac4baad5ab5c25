package sse

import (
	"bytes"
	"io"
	"sync"
)

const (
	// baseSize is what a reader holds while its stream is idle: a server keeps
	// thousands of idle streams.
	baseSize = 4 << 10

	// chunkSize is the unit in which long lines are gathered.
	chunkSize = 64 << 10

	// maxEmptyReads in a row are taken for a broken io.Reader.
	maxEmptyReads = 100
)

type chunk [chunkSize]byte

// chunks is shared by all readers: a long line borrows chunks until it has been
// copied into the one slice that its event keeps.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// lines finds line ends in a byte stream. A line that outgrows the base buffer is
// gathered in chunks, so nothing is copied more than once on the way in and no
// memory has to be had in one piece before the line's length is known.
//
// A line end is looked for once in every byte. The current line is the chunks in
// spill followed by buf[pos:i], where i is its end as reported by next; pos is 0
// while spill is not empty.
type lines struct {
	// Set at construction.
	src  io.Reader
	base []byte

	buf      []byte // base, or all of last
	last     *chunk
	spill    []*chunk
	pos, end int  // buf[pos:end] is unread
	scanned  int  // buf[pos:scanned] holds no line end
	lf       int  // buf[scanned:lf] holds no LF
	afterCR  bool // a leading LF belongs to the line before
	err      error
}

func newLines(src io.Reader) lines {
	base := make([]byte, baseSize)
	return lines{src: src, base: base, buf: base}
}

// next returns the end of the current line, the offset of its CR or LF, or false
// if more input is needed. A CR ends its line at once: what follows may be long in
// coming, and if it is the LF of a CRLF it is dropped then.
func (l *lines) next() (int, bool) {
	if l.afterCR && l.pos < l.end {
		l.afterCR = false
		if l.buf[l.pos] == '\n' {
			l.pos++
		}
	}
	// A known LF is kept while CRs before it are used up: looking for it anew at
	// each CR would be quadratic.
	l.scanned = max(l.scanned, l.pos)
	l.lf = max(l.lf, l.scanned)
	if i := bytes.IndexByte(l.buf[l.lf:l.end], '\n'); i >= 0 {
		l.lf += i
	} else {
		l.lf = l.end
	}
	if i := bytes.IndexByte(l.buf[l.scanned:l.lf], '\r'); i >= 0 {
		return l.scanned + i, true
	}
	l.scanned = l.lf
	return l.lf, l.lf < l.end
}

// consume ends the current line at the line end i.
func (l *lines) consume(i int) {
	l.afterCR = l.buf[i] == '\r'
	l.pos = i + 1
	l.dropSpill()
}

// drop forgets what has been read of the current line.
func (l *lines) drop() {
	l.pos = l.end
	l.dropSpill()
}

func (l *lines) dropSpill() {
	for _, c := range l.spill {
		chunks.Put(c)
	}
	clear(l.spill)
	l.spill = l.spill[:0]
}

// size is the length of the current line if it ends at i.
func (l *lines) size(i int) int { return len(l.spill)*chunkSize + i - l.pos }

// head returns the current line up to i, or the first chunk of a longer one.
func (l *lines) head(i int) []byte {
	if len(l.spill) > 0 {
		return l.spill[0][:]
	}
	return l.buf[l.pos:i]
}

// tailSize is the length of what appendTail appends.
func (l *lines) tailSize(i int) int {
	if len(l.spill) == 0 {
		return 0
	}
	return (len(l.spill)-1)*chunkSize + i
}

// appendTail appends what of the current line up to i follows after head.
func (l *lines) appendTail(dst []byte, i int) []byte {
	if len(l.spill) == 0 {
		return dst
	}
	for _, c := range l.spill[1:] {
		dst = append(dst, c[:]...)
	}
	return append(dst, l.buf[:i]...)
}

// fill reads once from the source, as much as it gives. It returns an error only
// if it got nothing, and then the same error for ever.
func (l *lines) fill() error {
	if l.err != nil {
		return l.err
	}
	l.makeRoom()
	for range maxEmptyReads {
		n, err := l.src.Read(l.buf[l.end:])
		l.end += n
		l.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	l.err = io.ErrNoProgress
	return l.err
}

func (l *lines) makeRoom() {
	if l.pos > 0 {
		l.toFront()
		return
	}
	if l.end < len(l.buf) {
		return
	}
	c := chunks.Get().(*chunk)
	if l.last == nil {
		copy(c[:], l.buf)
	} else {
		l.spill = append(l.spill, l.last)
		l.end, l.scanned, l.lf = 0, 0, 0
	}
	l.last, l.buf = c, c[:]
}

// toFront moves the unread bytes to the front of the buffer. Since it is called
// when they hold no line end, they are from the last read, and each byte moves
// once. They go back to the base buffer if they fit: the read that follows may
// last for hours and should not hold a chunk.
func (l *lines) toFront() {
	unread := l.buf[l.pos:l.end]
	if l.last == nil || len(unread) >= len(l.base) {
		copy(l.buf, unread)
	} else {
		copy(l.base, unread)
		chunks.Put(l.last)
		l.last, l.buf = nil, l.base
	}
	l.scanned -= l.pos
	l.lf -= l.pos
	l.pos, l.end = 0, len(unread)
}
