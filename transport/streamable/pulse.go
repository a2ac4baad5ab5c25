package streamable

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
)

// Bounds of finding out that a stream which may be silent for long is half open.
// A peer that is gone is found out by TCP; one behind a proxy that is not, by the
// comments that no longer come.
const (
	minBeat     = time.Second     // the shortest silence before a comment that keeps a stream alive
	minBeats    = 2               // how many are seen before more are expected
	missedBeats = 3               // how many may be missing
	minSilence  = 5 * time.Second // that ends a stream
	maxStall    = time.Minute     // of silence in the middle of an event
)

// A silentError says that a stream was ended because its server stopped keeping it
// alive, or in the middle of an event.
type silentError struct{ silence, beat time.Duration }

// Error names the limit and what was seen.
func (e *silentError) Error() string {
	if e.beat == 0 {
		return fmt.Sprintf("nothing has come for %v in the middle of an event", e.silence)
	}
	return fmt.Sprintf("nothing has come for %v on a stream that was kept alive every %v", e.silence, e.beat)
}

// A pulse is the body of a stream without a deadline. If its server keeps the
// stream alive with comments, it ends when these stop. A server that sends none may
// be silent for as long as it likes, but not in the middle of an event, be it one over
// the limit: the rest of that does not wait for news.
//
// The one stream of HTTP with SSE has no pulse. Its end is that of the session with all
// calls, and a server that does all its work in one thread sends nothing while a tool
// keeps that busy, however much of an event it has sent before. There the calls have their
// own limits.
type pulse struct {
	io.ReadCloser

	amid  func() bool   // an event stands in the middle; nil for not known
	beats int           // comments after a silence
	beat  time.Duration // the longest of these silences
	over  atomic.Pointer[silentError]
}

// patience returns the end of the silence that the stream may make now, nil for none.
func (p *pulse) patience() *silentError {
	var end *silentError
	if p.beats >= minBeats {
		end = &silentError{silence: max(missedBeats*p.beat, minSilence), beat: p.beat}
	}
	if p.amid != nil && p.amid() && (end == nil || end.silence > maxStall) {
		end = &silentError{silence: maxStall}
	}
	return end
}

// eventsOf returns the reader of the events of a stream, which may have a pulse.
func eventsOf(body io.Reader, maxEvent int) *sse.Reader {
	events := sse.NewReader(body, maxEvent)
	if p, ok := body.(*pulse); ok {
		p.amid = events.Amid
	}
	return events
}

// Read implements [io.Reader].
func (p *pulse) Read(b []byte) (int, error) {
	if end := p.patience(); end != nil {
		timer := time.AfterFunc(end.silence, func() {
			p.over.Store(end)
			_ = p.Close() // ends the read
		})
		defer timer.Stop()
	}
	began := time.Now()
	n, err := p.ReadCloser.Read(b)
	if end := p.over.Load(); end != nil && err != nil {
		return n, end
	}
	if silence := time.Since(began); n > 0 && b[0] == ':' && silence >= minBeat {
		p.beats++
		p.beat = max(p.beat, silence)
	}
	return n, err
}
