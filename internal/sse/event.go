package sse

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// messageName is the event name that the standard assumes where there is none.
const messageName = "message"

// ErrUnsafeField says that an event name or id holds a character that would end
// its line (CR, LF) or that readers refuse (NUL).
var ErrUnsafeField = errors.New("CR, LF or NUL in an event field")

// Event is one event of a stream. The zero value is an event named message with
// empty data.
//
// An Event is a plain value: copies share Data.
type Event struct {
	// Name is the event's name. Empty means message, and a [Reader] reports a
	// missing name, an empty one and message alike as empty. [AppendEvent] always
	// writes a name, because some clients take no frames without one.
	Name string

	// ID is the event's own id, empty if it has none. The id that a client resumes
	// from, which may be that of an earlier event, is [Reader.LastEventID].
	ID string

	// HasID tells an empty id, which makes the client forget the last one, from
	// none. AppendEvent takes it for granted when ID is not empty.
	HasID bool

	// Retry is how long the client is asked to wait before it reconnects. The
	// stream carries milliseconds.
	Retry time.Duration

	// HasRetry tells a wait of zero from none. AppendEvent takes it for granted
	// when Retry is not zero.
	HasRetry bool

	// Data is the payload: the data lines joined with LF. It is empty in a priming
	// event, which only carries an id or a wait; nobody should try to decode that.
	Data []byte
}

// AppendEvent appends e to dst in wire form, ending with the empty line that
// dispatches it, and returns the extended slice. Data that holds LF, CR or CRLF
// becomes one data line for each of its lines, so a reader gets it back with LF.
// Retry is rounded up to a whole millisecond.
//
// A name or id with CR, LF or NUL is refused with an error that wraps
// [ErrUnsafeField], a negative Retry with another; dst comes back as it was.
func AppendEvent(dst []byte, e Event) ([]byte, error) {
	if err := e.validate(); err != nil {
		return dst, err
	}
	name := e.Name
	if name == "" {
		name = messageName
	}
	dst = slices.Grow(dst, len(name)+len(e.ID)+len(e.Data)+64)
	dst = append(dst, "event: "...)
	dst = append(dst, name...)
	if e.HasID || e.ID != "" {
		dst = append(dst, "\nid: "...)
		dst = append(dst, e.ID...)
	}
	if e.HasRetry || e.Retry != 0 {
		dst = append(dst, "\nretry: "...)
		dst = strconv.AppendInt(dst, ceilMilliseconds(e.Retry), 10)
	}
	dst = append(dst, '\n')
	dst = appendLines(dst, "data: ", e.Data)
	return append(dst, '\n'), nil
}

// AppendComment appends text to dst as a comment and returns the extended slice.
// Readers ignore comments; a writer sends one to keep an idle stream from being
// taken for dead. Each line of text becomes a comment line, and an empty line
// follows, for clients that split the stream at empty lines. A comment may stand
// only between events.
func AppendComment(dst []byte, text string) []byte {
	dst = appendLines(dst, ": ", []byte(text))
	return append(dst, '\n')
}

func (e Event) validate() error {
	const unsafe = "\r\n\x00"
	if strings.ContainsAny(e.Name, unsafe) {
		return fmt.Errorf("event name: %w", ErrUnsafeField)
	}
	if strings.ContainsAny(e.ID, unsafe) {
		return fmt.Errorf("event id: %w", ErrUnsafeField)
	}
	if e.Retry < 0 {
		return fmt.Errorf("event retry: negative duration %v", e.Retry)
	}
	return nil
}

// appendLines appends each line of text with prefix before and LF after it. Text
// that ends with a line end has an empty last line. CR is looked for inside of LF
// lines only, which keeps the work linear whatever the line ends are.
func appendLines(dst []byte, prefix string, text []byte) []byte {
	for more := true; more; {
		var line []byte
		line, text, more = bytes.Cut(text, []byte{'\n'})
		if more {
			line = bytes.TrimSuffix(line, []byte{'\r'})
		}
		for part := range bytes.SplitSeq(line, []byte{'\r'}) {
			dst = append(dst, prefix...)
			dst = append(dst, part...)
			dst = append(dst, '\n')
		}
	}
	return dst
}

func ceilMilliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}
