package eventlog

import (
	"context"
	"errors"
	"fmt"
)

// A Stream names a stream: its session, and a name that is its own in that
// session. Names are ASCII letters and digits, at most [MaxName] of them; whoever
// makes a stream makes up a name that is not to be guessed.
type Stream struct {
	Session string
	Name    string
}

// An Event is one message of a stream. Data must not be changed.
type Event struct {
	Seq  uint64
	Data []byte
}

// A Log keeps streams. Its methods may be called concurrently, those of one
// stream too. Contexts end the waiting for a log that is elsewhere; what was
// begun may have been done nevertheless.
type Log interface {
	// Append adds an event to a stream, makes the stream if there is none,
	// and returns the event's number: above those before it in the stream, and
	// above 0. It keeps no part of data. It never waits for readers. What a
	// log has no room for pushes out what is oldest, of a session that the log
	// chooses. Possible errors are [ErrFinished] and, for a new stream, a
	// [*LimitError].
	Append(ctx context.Context, s Stream, data []byte) (seq uint64, err error)

	// Read returns events of a stream that come right after the one numbered
	// after, oldest first, as many as it likes and none if there are none yet.
	// It does not wait for any. At the end of a finished stream it returns
	// [io.EOF]; if events are gone that would have been among those returned,
	// a [*GoneError]; if there is no such stream or no such event in it,
	// [ErrUnknown].
	Read(ctx context.Context, s Stream, after uint64) ([]Event, error)

	// Wait returns as soon as Read would return an event or an error, or with
	// the cause of ctx.
	Wait(ctx context.Context, s Stream, after uint64) error

	// Finish says that nothing more will be appended to a stream. The log
	// keeps it for a while.
	Finish(ctx context.Context, s Stream) error

	// Drop forgets all streams of a session. Who waits for one is told that
	// it is unknown.
	Drop(ctx context.Context, session string) error
}

var (
	// ErrUnknown says that a log holds no such stream, or no such event.
	ErrUnknown = errors.New("no such event stream")
	// ErrFinished says that a stream has been finished.
	ErrFinished = errors.New("the event stream is finished")
)

// A GoneError says that events are not kept any more that a reader asked for.
type GoneError struct {
	Limit  string // what they were over, such as "StreamEvents of 8192"
	Missed uint64 // how many are gone, as far as the log can count
	Resume uint64 // all events after this number are kept
}

// Error implements error.
func (e *GoneError) Error() string {
	return fmt.Sprintf("%d events are gone: over the limit %s", e.Missed, e.Limit)
}

// A LimitError says that a log takes no further stream.
type LimitError struct {
	Limit string // its name
	Value int    // and what it is
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit %s of %d is reached", e.Limit, e.Value)
}
