package transport

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// A Link carries whole messages both ways between two peers.
//
// Read is called by one goroutine at a time; Write and Close may be called
// concurrently.
type Link interface {
	// Read returns the next message, which then belongs to the caller. After a
	// *jsonrpc.LineTooLongError or jsonrpc.ErrInterrupted reading can go on, and
	// after a *mcp.CallError, with which calls in flight end; any other error is
	// final.
	Read() ([]byte, error)
	// Write sends one message, which holds no line breaks; it does not keep
	// frame, but may write behind its end. More says that other messages are
	// likely to follow at once, so that sending may wait a moment for them.
	// Write returns when the message is sent or queued; it waits, no longer
	// than ctx, only while the queue is full. An error means that no byte of
	// the message was sent.
	Write(ctx context.Context, frame []byte, more bool) error
	// Close ends both directions and unblocks Read and Write. It may be called
	// more than once.
	Close() error
}

// LineOptions are the limits of a line-framed link. Zero fields stand for the
// defaults.
type LineOptions struct {
	MaxLine  int // bytes of a line received; default jsonrpc.DefaultMaxLineDialing
	MaxQueue int // bytes that wait to be sent before Write waits; default DefaultMaxQueue
	// MaxWait bounds how long Write waits for room in the queue: it then fails
	// with context.DeadlineExceeded. 0 leaves it to the context alone.
	MaxWait time.Duration
	// Explain returns what ended the link, given the error of the last read. It
	// is called once, by Read; nil keeps the error.
	Explain func(error) error
	Tap     Tap // sees every message; nil for none
}

// A Tap is shown each message that passes an edge, before it is taken or sent.
// It must not keep or change the message, and must not wait. It is called
// concurrently.
type Tap func(outgoing bool, message []byte)

// DefaultMaxQueue is how many bytes wait to be sent before a writer has to wait.
const DefaultMaxQueue = 4 << 20

// A lineLink frames messages by newlines.
type lineLink struct {
	// Set at construction.
	lines *jsonrpc.LineReader
	gate  *gate
	opts  LineOptions
	close func() error

	interruptible Interruptible // what is read from; nil if it is none

	once   sync.Once
	closed error // set by once

	mu      sync.Mutex
	ending  *time.Timer // ends the link after a failed write, guarded by mu
	forced  bool        // and has done so, guarded by mu
	closing bool        // Close was called, guarded by mu
}

// NewLineLink returns a link of newline-framed messages over r and w. Close
// calls closer, which must unblock reading from r and writing to w.
//
// If w is a file or socket in non-blocking mode, a writer of a message never
// waits for a peer that does not read.
func NewLineLink(r io.Reader, w io.Writer, closer func() error, opts LineOptions) Link {
	l := &lineLink{
		lines: jsonrpc.NewLineReader(r, opts.MaxLine),
		opts:  opts,
		close: closer,
	}
	l.interruptible, _ = r.(Interruptible)
	l.gate = newGate(w, opts.MaxQueue, opts.MaxWait, l.writingFailed)
	return l
}

// lastReads is how long a link whose peer takes nothing more is still read: what
// it wrote before may hold answers, and the end of its output tells more than a
// failed write.
const lastReads = 250 * time.Millisecond

// writingFailed ends the link soon: messages that were queued are lost, and who
// waits for their answers must learn it.
func (l *lineLink) writingFailed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closing {
		l.ending = time.AfterFunc(lastReads, func() {
			l.mu.Lock()
			l.forced = !l.closing
			l.mu.Unlock()
			_ = l.end() // Close returns the error
		})
	}
}

func (l *lineLink) wasForced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forced
}

// A writeError says that a link has ended because nothing could be written to
// the peer any more.
type writeError struct{ err error }

func (e *writeError) Error() string { return "the peer takes no more messages: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

func (l *lineLink) Read() ([]byte, error) {
	line, err := l.lines.ReadLine()
	if err == nil {
		if l.opts.Tap != nil {
			l.opts.Tap(false, line)
		}
		return line, nil
	}
	if _, goesOn := errors.AsType[*jsonrpc.LineTooLongError](err); goesOn || errors.Is(err, jsonrpc.ErrInterrupted) {
		return nil, err
	}
	switch {
	case l.wasForced():
		err = &writeError{l.gate.failure()}
	case l.opts.Explain != nil:
		err = l.opts.Explain(err)
	}
	return nil, err
}

func (l *lineLink) Write(ctx context.Context, frame []byte, more bool) error {
	if l.opts.Tap != nil {
		l.opts.Tap(true, frame)
	}
	return l.gate.write(ctx, append(frame, '\n'), more)
}

func (l *lineLink) Close() error {
	l.mu.Lock()
	l.closing = true
	if l.ending != nil {
		l.ending.Stop()
	}
	l.mu.Unlock()
	return l.end()
}

func (l *lineLink) end() error {
	l.once.Do(func() {
		l.gate.shut(errLinkClosed)
		l.closed = l.close()
		l.gate.wait()
	})
	return l.closed
}

// A framingHint tells what a peer that is not understood may be doing.
type framingHint interface {
	SawLengthFraming() bool
	Unterminated() bool
	Buffered() bool
}

// A poster is a link on which each message is taken or refused by itself, later
// than Write returns.
type poster interface {
	// Post is Write for the request of a call. Ctx ends with the call. If the
	// request turns out not to be taken, failed is told why, from another
	// goroutine.
	Post(ctx context.Context, frame []byte, failed func(error)) error
}

// A flusher can wait until what was written has left this process.
type flusher interface {
	Flush(ctx context.Context) error
}

func (l *lineLink) Flush(ctx context.Context) error {
	l.gate.kick()
	return l.gate.flush(ctx)
}

// An acknowledger tells its peer of each message that Read returned whether it
// was taken. The next Read says that it was, unless one of these comes first;
// they are called by whoever reads.
type acknowledger interface {
	Accept()
	// Refuse reports whether the peer learns why the message is not taken. If
	// it does not, because the message was accepted before, it must be sent.
	Refuse(id jsonrpc.ID, err *jsonrpc.Error) bool
}

// A holder can hold messages back so that several go out together. Buffered
// reports whether Read will return without waiting.
type holder interface {
	Hold(frame []byte) bool // false if there is no room
	Kick()
	Buffered() bool
}

func (l *lineLink) Hold(frame []byte) bool {
	if l.opts.Tap != nil {
		return false
	}
	return l.gate.hold(append(frame, '\n'))
}

func (l *lineLink) Kick() { l.gate.kick() }

// A recycler takes back the memory of messages that it has handed out.
type recycler interface {
	Recycle(message []byte)
}

func (l *lineLink) Recycle(message []byte) { l.lines.Recycle(message) }

func (l *lineLink) SawLengthFraming() bool { return l.lines.SawLengthFraming() }
func (l *lineLink) Unterminated() bool     { return l.lines.Unterminated() }
func (l *lineLink) Buffered() bool         { return l.lines.Buffered() }

// frames holds buffers that messages are put together in.
var frames = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// maxPooledFrame bounds the buffers that are kept.
const maxPooledFrame = 4 << 20

// WithFrame calls send with a message that build appends to an empty buffer,
// which is used again afterwards.
func WithFrame(build func(dst []byte) []byte, send func(frame []byte) error) error {
	buf := takeFrame()
	defer giveFrame(buf)
	*buf = build((*buf)[:0])
	return send(*buf)
}

func takeFrame() *[]byte { return frames.Get().(*[]byte) }

func giveFrame(buf *[]byte) {
	if cap(*buf) <= maxPooledFrame {
		frames.Put(buf)
	}
}
