package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	// DefaultMaxEvent is the default limit of an event, in bytes.
	DefaultMaxEvent = 16 << 20

	// MaxRetry is the longest wait that a [Reader] reports: a stream that asks for
	// more gets this.
	MaxRetry = time.Hour

	// FloodTime is the time within which lines that make no event are added up, see
	// NewReader.
	FloodTime = time.Minute

	// MaxPassedOver is how many times the limit of an event may come, in bytes, in
	// events over it, before reading ends, see [Reader.Next].
	MaxPassedOver = 64

	// maxFields is the limit for names, ids and waits, see NewReader.
	maxFields = 64 << 10
)

var (
	byteOrderMark = []byte("\xEF\xBB\xBF")

	errTruncated = fmt.Errorf("event stream truncated inside an event: %w", io.ErrUnexpectedEOF)
)

// TooLargeError says that an event is over the limit of its [Reader].
type TooLargeError struct {
	Limit int // bytes allowed
	Seen  int // bytes counted when the reader gave up; the event may be larger
}

// Error names the limit and the size seen.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("event of %d bytes or more exceeds the limit of %d bytes", e.Seen, e.Limit)
}

// FloodError says that a stream brought more than its [Reader] allows, and no
// event with data among it.
type FloodError struct {
	Limit int // bytes allowed within FloodTime
	Seen  int // bytes counted
}

// Error names the limit and the size seen.
func (e *FloodError) Error() string {
	return fmt.Sprintf("%d bytes within %v that hold no event exceed the limit of %d bytes", e.Seen, FloodTime, e.Limit)
}

// EndlessError says that events over the limit of a [Reader] went on for too long.
type EndlessError struct {
	Limit int   // bytes allowed for an event
	Seen  int64 // bytes counted
}

// Error names the limit and the size seen.
func (e *EndlessError) Error() string {
	return fmt.Sprintf("%d bytes of events over the limit of %d bytes, with none within it, exceed %d times that limit", e.Seen, e.Limit, MaxPassedOver)
}

// Reader takes events out of an event stream.
//
// It reads no further ahead than the source gives by itself, and holds 4 KiB while
// it waits. A long event is gathered in memory borrowed from a pool; with that it
// takes at most twice the limit. A Reader is for one goroutine at a time, and what
// makes a blocked Next return is up to the source.
type Reader struct {
	// Set at construction.
	maxData int

	in       lines
	started  bool // the first line has passed, and a byte order mark with it
	skipping bool // the rest of an event over the limit is being dropped
	midLine  bool // while skipping: part of the current line has been dropped

	event Event // the event being gathered; its Data is nil until a data line came
	open  bool  // the event has had a line
	other int   // length of its lines with a name, id or wait

	useless int       // bytes since the last event that had something in it
	since   time.Time // when the first of them came
	over    int64     // bytes of events over the limit since then
	overAt  time.Time // when the first of these came
	flooded error     // why nothing more is read

	lastID    string
	hasLastID bool
	retry     time.Duration
	hasRetry  bool
}

// NewReader returns a reader of the stream r, whose events may have at most
// maxEvent bytes of data; zero or less means [DefaultMaxEvent]. The lines with
// name, id and wait may have 64 KiB together. A line that is ignored, a comment or
// an unknown field, must be within maxEvent, or within 64 KiB if that is more. So
// must be, within [FloodTime], all that comes between two events with data: a stream
// that is kept alive for long has many such lines, but not at once.
func NewReader(r io.Reader, maxEvent int) *Reader {
	if maxEvent <= 0 {
		maxEvent = DefaultMaxEvent
	}
	return &Reader{maxData: maxEvent, in: newLines(r)}
}

// Next returns the next event that has data, blocking until it is complete. Data
// may be empty, see [Event]; it belongs to the caller. An event without any data
// line is not returned, but its id and wait take effect.
//
// At the end of the stream Next returns [io.EOF], or an error that wraps
// [io.ErrUnexpectedEOF] if an event was cut off, see [Reader.Partial]. Any other
// error of the source is wrapped. All these come again with each further call.
//
// An event over the limit gives a [*TooLargeError]. The reader is still good: the
// next call drops the rest of that event, in bounded memory, and goes on. Its id
// takes effect if it came before the limit was hit. One that does not end, or many
// within [FloodTime] with no event within the limit between them, give an
// [*EndlessError] after [MaxPassedOver] times the limit. That and a [*FloodError]
// come again with each further call. There is no limit of time, that
// is up to the source, see [Reader.Amid].
func (r *Reader) Next() (Event, error) {
	if r.flooded != nil {
		return Event{}, r.flooded
	}
	if err := r.skip(); err != nil {
		return Event{}, err
	}
	for {
		i, ok := r.in.next()
		l := r.line(i)
		if big := r.check(l, ok); big != nil {
			r.giveUp(i, ok, big)
			return Event{}, big
		}
		if !ok {
			if err := r.in.fill(); err != nil {
				return Event{}, r.ended(err)
			}
			continue
		}
		r.take(l, i)
		r.in.consume(i)
		r.started = true
		if r.isFlood(l) {
			return Event{}, r.flooded
		}
		if l.field != fieldNone {
			continue
		}
		if e, ok := r.dispatch(); ok {
			return e, nil
		}
	}
}

// LastEventID returns the id that a client resumes from, and whether the stream
// has set one: an empty one that is set replaces what earlier streams have set.
// An id counts from the end of its event on. It is the peer's bytes as they came,
// not necessarily fit for an HTTP header.
func (r *Reader) LastEventID() (id string, ok bool) { return r.lastID, r.hasLastID }

// Retry returns how long the stream asks a client to wait before it reconnects, at
// most [MaxRetry], and whether it has asked.
func (r *Reader) Retry() (wait time.Duration, ok bool) { return r.retry, r.hasRetry }

// Partial returns the data of the event that was cut off, after Next has returned
// an error other than [*TooLargeError]. The standard says that such an event is
// lost. A caller that waits for one certain message may take it from here, if it
// finds it to be whole.
//
// The data is nil if no data line had begun. whole says that the stream did not
// end inside a line, so that data consists of complete lines; there may still have
// been more lines to come. The data belongs to the caller.
func (r *Reader) Partial() (data []byte, whole bool) {
	data = bytes.Clone(r.event.Data)
	if l := r.line(r.in.end); l.field == fieldData {
		return r.appendData(data, l, r.in.end), false
	}
	return data, data != nil && !r.inLine()
}

// line is the current line, or what has been read of it.
type line struct {
	field field
	value []byte // the first piece; the rest is lines.appendTail
	size  int    // of the whole value
	total int    // of the whole line
}

func (r *Reader) line(i int) line {
	head := r.in.head(i)
	if !r.started {
		head = bytes.TrimPrefix(head, byteOrderMark)
	}
	f, off := cutField(head)
	value := head[off:]
	return line{
		field: f,
		value: value,
		size:  len(value) + r.in.tailSize(i),
		total: r.in.size(i),
	}
}

// check holds a line against the limits. A line that is not all there yet is over
// them only if the whole line is, so it does not matter how often it is asked: that
// takes a beginning that is long enough to tell the field.
func (r *Reader) check(l line, complete bool) *TooLargeError {
	if !complete && l.total <= longestName {
		return nil
	}
	var seen, limit int
	switch l.field {
	case fieldNone:
	case fieldComment, fieldUnknown:
		seen, limit = l.total, r.maxLine()
	case fieldData:
		seen, limit = l.size, r.maxData
		if r.event.Data != nil {
			seen += len(r.event.Data) + len("\n")
		}
	default:
		seen, limit = r.other+l.total, maxFields
	}
	if seen > limit {
		return &TooLargeError{Limit: limit, Seen: seen}
	}
	return nil
}

// maxLine is the limit of a line that is ignored.
func (r *Reader) maxLine() int { return max(r.maxData, maxFields) }

// take applies a complete line that ends at i.
func (r *Reader) take(l line, i int) {
	switch l.field {
	case fieldNone, fieldComment:
		return
	case fieldUnknown:
	case fieldData:
		r.event.Data = r.appendData(r.event.Data, l, i)
	default:
		r.takeOther(l.field, r.in.appendTail(slices.Clip(l.value), i))
		r.other += l.total
	}
	r.open = true
}

// isFlood counts a line, and reports whether there were too many that hold nothing.
func (r *Reader) isFlood(l line) bool {
	size := l.total + len("\n")
	switch {
	case l.field == fieldData:
		return false // it counts for its event
	case l.field == fieldNone && r.event.Data != nil && len(r.event.Data) == 0:
		size += len("data:\n")
	}
	if r.useless == 0 {
		r.since = time.Now()
	}
	r.useless += size
	limit := r.maxLine()
	if r.useless <= limit {
		return false
	}
	if time.Since(r.since) > FloodTime {
		r.useless = 0
		return false
	}
	r.flooded = &FloodError{Limit: limit, Seen: r.useless}
	return true
}

func (r *Reader) takeOther(f field, value []byte) {
	switch f {
	case fieldEvent:
		r.event.Name = eventName(value)
	case fieldID:
		if bytes.IndexByte(value, 0) < 0 {
			r.event.ID, r.event.HasID = string(value), true
		}
	case fieldRetry:
		if d, ok := parseRetry(value); ok {
			r.event.Retry, r.event.HasRetry = d, true
			r.retry, r.hasRetry = d, true
		}
	}
}

func eventName(value []byte) string {
	if string(value) == messageName {
		return ""
	}
	return string(value)
}

// appendData appends the data line l that ends at i. The slice of an event with
// one data line, which is nearly every event, is allocated once in its final size.
func (r *Reader) appendData(dst []byte, l line, i int) []byte {
	switch {
	case dst != nil:
		dst = growTo(dst, len(dst)+len("\n")+l.size, r.maxData)
		dst = append(dst, '\n')
	case l.size > len(l.value):
		dst = make([]byte, 0, l.size)
	default:
		// Unlike make and copy this does not clear the memory first. It is never nil.
		return append([]byte{}, l.value...)
	}
	dst = append(dst, l.value...)
	return r.in.appendTail(dst, i)
}

// growTo returns b with room for size bytes in all. The room at least doubles, but
// never goes over limit, which append would.
func growTo(b []byte, size, limit int) []byte {
	if size <= cap(b) {
		return b
	}
	return append(make([]byte, 0, max(size, min(2*cap(b), limit))), b...)
}

// dispatch ends the event being gathered. It is false if that has no data.
func (r *Reader) dispatch() (Event, bool) {
	e := r.event
	r.reset()
	if len(e.Data) > 0 {
		r.useless, r.over = 0, 0
	}
	return e, e.Data != nil
}

// reset forgets the event being gathered, except that its id takes effect.
func (r *Reader) reset() {
	if r.event.HasID {
		r.lastID, r.hasLastID = r.event.ID, true
	}
	r.event, r.open, r.other = Event{}, false, 0
}

// giveUp starts the skipping of an event over the limit, whose current line has
// been read up to i, its end if complete.
func (r *Reader) giveUp(i int, complete bool, big *TooLargeError) {
	if r.over == 0 || time.Since(r.overAt) > FloodTime {
		r.over, r.overAt = 0, time.Now()
	}
	r.passOver(big.Seen)
	r.reset()
	r.started, r.skipping, r.midLine = true, true, !complete
	if complete {
		r.in.consume(i)
		return
	}
	r.in.drop()
}

// passOver counts what is dropped of events over the limit.
func (r *Reader) passOver(size int) {
	r.over += int64(size)
	if limit := r.maxLine(); r.over/MaxPassedOver >= int64(limit) {
		r.flooded = &EndlessError{Limit: limit, Seen: r.over}
	}
}

// skip drops lines to the end of an event that Next has given up.
func (r *Reader) skip() error {
	for r.skipping {
		i, ok := r.in.next()
		size := r.in.size(i)
		if ok {
			size += len("\n")
		}
		if r.passOver(size); r.flooded != nil {
			return r.flooded
		}
		if !ok {
			r.midLine = r.midLine || r.in.size(i) > 0
			r.in.drop()
			if err := r.in.fill(); err != nil {
				return r.ended(err)
			}
			continue
		}
		r.skipping = r.midLine || r.in.size(i) > 0
		r.midLine = false
		r.in.consume(i)
	}
	return nil
}

// ended is what Next returns when the source has ended with err.
func (r *Reader) ended(err error) error {
	switch {
	case !errors.Is(err, io.EOF) && r.inEvent():
		return fmt.Errorf("reading event stream, inside an event: %w", err)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("reading event stream: %w", err)
	case r.inEvent():
		return errTruncated
	}
	return io.EOF
}

// Amid reports whether the stream stands where it does not stop by itself: in a line of
// data, or in an event over the limit that is being dropped. It may be asked by the source
// while that is read from.
func (r *Reader) Amid() bool {
	return r.skipping || r.line(r.in.end).field == fieldData
}

// inEvent reports whether something would be lost if the stream ended here.
func (r *Reader) inEvent() bool { return r.open || r.skipping || r.inLine() }

// inLine reports whether a line has begun and is not all there. A comment does not
// count, it is no loss.
func (r *Reader) inLine() bool {
	f := r.line(r.in.end).field
	return f != fieldNone && f != fieldComment
}
