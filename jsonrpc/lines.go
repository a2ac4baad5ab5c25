package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Limits of a line, in bytes without its newline. What a listening edge lets in
// still passes a dialing edge when it has grown on the way.
const (
	DefaultMaxLineListening = 10 << 20
	DefaultMaxLineDialing   = 16 << 20
)

// MaxPassedOver is how many bytes of an over-long line are passed over, in search
// of its end. A line that goes on is a flood, which ends the reading.
const MaxPassedOver = 1 << 30

// A LineTooLongError says that a line was longer than the limit. It has been
// passed over up to its end, if it had one within [MaxPassedOver]; reading can go
// on.
type LineTooLongError struct {
	Limit int // bytes
	Seen  int // bytes, up to the line's end
}

// Error names the limit and the length seen.
func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("line of %d bytes is longer than the limit MaxLine of %d", e.Seen, e.Limit)
}

// ErrInterrupted is returned by a reader that was told to wait no longer. A
// LineReader over it hands that on, keeps what it has read, and reads on when it
// is asked to.
var ErrInterrupted = errors.New("reading was interrupted")

const (
	blockSize     = 64 << 10 // what a pipe gives at once
	maxBlock      = 2 << 20  // longer lines get memory of their own
	smallLines    = 16       // in a row, before a grown block is given back
	maxEmptyReads = 100      // in a row, before reading is given up
)

// A LineReader reads messages that are framed by newlines. It takes linear time
// whatever the sizes of the reads, keeps no more than one line of the limit's
// length, and hands out lines that belong to the caller.
//
// Its methods must not be called concurrently, except where they say so.
type LineReader struct {
	// Set at construction.
	r     io.Reader
	limit int

	// Owned by the one who reads.
	block      []byte // what was read; lines of it are copied out
	start, end int    // what of block is unread
	searched   int    // between the two; before it no newline is unread
	small      int    // lines in a row that would fit a block of blockSize
	long       []byte // the beginning of a line that outgrew maxBlock
	over       int    // how much of an over-long line was passed over
	err        error  // what ended the input

	unterminated bool
	interrupted  bool // the last read was

	lengthFraming atomic.Bool
	spares        spares
}

// NewLineReader returns a reader of lines of at most limit bytes; 0 or less
// stands for [DefaultMaxLineDialing].
func NewLineReader(r io.Reader, limit int) *LineReader {
	if limit <= 0 {
		limit = DefaultMaxLineDialing
	}
	return &LineReader{r: r, limit: limit, block: make([]byte, blockSize)}
}

// SawLengthFraming reports whether a line looked like a Content-Length header,
// which is the framing of another protocol. Such lines are passed over. It may
// be called concurrently, as by one who gives up waiting for an answer.
func (l *LineReader) SawLengthFraming() bool { return l.lengthFraming.Load() }

// Unterminated reports whether what ReadLine gave last, a line or a
// [*LineTooLongError], was ended by the end of the input rather than by a
// newline.
func (l *LineReader) Unterminated() bool { return l.unterminated }

// Buffered reports whether ReadLine will return without waiting for input.
func (l *LineReader) Buffered() bool {
	if l.err != nil {
		return true
	}
	begun := l.over > 0 || len(trim(l.long)) > 0
	for rest := l.block[l.start:l.end]; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return false
		}
		if line := trim(rest[:i]); begun || len(line) > 0 && !isLengthHeader(line) {
			return true
		}
		rest = rest[i+1:]
	}
}

// ReadLine returns the next line that is not blank, without its end, a byte
// order mark, and white space around it. The line belongs to the caller. After a
// [*LineTooLongError] or [ErrInterrupted] reading can go on; any other error, io.EOF
// among them, is final and comes back from every later call.
func (l *LineReader) ReadLine() ([]byte, error) {
	for {
		l.unterminated = false
		line, err := l.next()
		switch {
		case err != nil:
			return nil, err
		case len(line) == 0:
		case isLengthHeader(line):
			l.lengthFraming.Store(true)
		default:
			return line, nil
		}
	}
}

// trim takes off what the sender of a line may have put around the message.
func trim(line []byte) []byte {
	line = bytes.TrimPrefix(bytes.Trim(line, " \t\r"), bom)
	return bytes.TrimLeft(line, " \t\r")
}

func isLengthHeader(line []byte) bool {
	const header = "content-length:"
	return len(line) >= len(header) && bytes.EqualFold(line[:len(header)], []byte(header))
}

// next returns the next line, blank or not.
func (l *LineReader) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.block[l.searched:l.end], '\n'); i >= 0 {
			piece := l.block[l.start : l.searched+i]
			l.start = l.searched + i + 1
			l.searched = l.start
			return l.finish(piece)
		}
		l.searched = l.end
		if l.err != nil {
			return l.last()
		}
		l.makeRoom()
		if l.err == nil {
			l.fill()
		}
		if l.interrupted {
			l.interrupted = false
			return nil, ErrInterrupted
		}
	}
}

// finish ends a line whose last piece is given.
func (l *LineReader) finish(piece []byte) ([]byte, error) {
	n := l.over + len(l.long) + len(piece)
	line := l.long
	l.over, l.long = 0, nil
	if n > maxBlock {
		l.small = smallLines // nothing like it is expected again
	}
	if n > l.limit {
		l.shrink(0)
		return nil, &LineTooLongError{Limit: l.limit, Seen: n}
	}
	if line == nil {
		piece = trim(piece)
		line = append(l.spares.get(len(piece)), piece...)
		l.shrink(len(line))
		return line, nil
	}
	line = append(line, piece...)
	l.shrink(0)
	if cap(line) > 2*len(line) {
		line = bytes.Clone(line) // the caller may keep it for long
	}
	return trim(line), nil
}

// Recycle gives the memory of a line back, so that a later line can have it. The
// line must not be used any more, nor anything that aliases it. It may be called
// concurrently; lines need not be given back.
func (l *LineReader) Recycle(line []byte) { l.spares.put(line) }

// shrink gives a grown block back once lines have been small for a while.
func (l *LineReader) shrink(line int) {
	if l.small++; line > blockSize/2 {
		l.small = 0
	}
	if l.small > 0 && l.small%smallLines == 0 {
		l.spares.drop() // of what was given back since, too
	}
	if len(l.block) == blockSize || l.small < smallLines || l.end-l.start > blockSize/2 {
		return
	}
	l.move(make([]byte, blockSize))
}

// move makes block the block, with what is unread at its beginning.
func (l *LineReader) move(block []byte) {
	l.end = copy(block, l.block[l.start:l.end])
	l.searched -= l.start
	l.start, l.block = 0, block
}

// makeRoom makes room in the block, which begins with or continues a line whose
// end has not been read.
func (l *LineReader) makeRoom() {
	unread := l.end - l.start
	switch n := l.over + len(l.long) + unread; {
	case n > l.limit:
		l.over, l.long = n, nil
		l.start, l.end, l.searched = 0, 0, 0
		if n > MaxPassedOver {
			l.err = fmt.Errorf("a line has no end after %d bytes, the limit MaxPassedOver is %d", n, MaxPassedOver)
		}
	case l.long != nil:
		l.long = append(l.long, l.block[l.start:l.end]...)
		l.start, l.end, l.searched = 0, 0, 0
	case len(l.block) < maxBlock && unread > len(l.block)/2:
		l.move(make([]byte, 2*len(l.block)))
	case unread < len(l.block):
		if l.start > 0 {
			l.move(l.block)
		}
	default:
		l.long = append(make([]byte, 0, 2*maxBlock), l.block...)
		l.start, l.end, l.searched = 0, 0, 0
	}
}

// fill reads once.
func (l *LineReader) fill() {
	if l.long != nil {
		l.fillLong()
		return
	}
	l.end += l.read(l.block[l.end:])
}

// fillLong reads straight into the line that outgrew the block, and moves what
// follows its end, if anything, back to the block.
func (l *LineReader) fillLong() {
	have := len(l.long)
	if cap(l.long)-have < blockSize {
		grown := make([]byte, have, min(2*cap(l.long), l.limit)+blockSize)
		copy(grown, l.long)
		l.long = grown
	}
	n := l.read(l.long[have : have+blockSize])
	fresh := l.long[have : have+n]
	i := bytes.IndexByte(fresh, '\n')
	if i < 0 {
		l.long = l.long[:have+n]
		return
	}
	l.long = l.long[:have+i]
	l.end = copy(l.block, fresh[i:])
}

func (l *LineReader) read(p []byte) int {
	for range maxEmptyReads {
		n, err := l.r.Read(p)
		switch {
		case err == nil:
		case errors.Is(err, ErrInterrupted):
			l.interrupted = n == 0 // otherwise there is something to do
		default:
			l.err = err
		}
		if n > 0 || err != nil {
			return n
		}
	}
	l.err = io.ErrNoProgress
	return 0
}

// last returns what the end of the input left of a line.
func (l *LineReader) last() ([]byte, error) {
	piece := l.block[l.start:l.end]
	l.start, l.end, l.searched = 0, 0, 0
	if len(piece) == 0 && l.long == nil && l.over == 0 {
		return nil, l.err
	}
	l.unterminated = true
	return l.finish(piece)
}
