package streamable

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// Bounds of finding out that a stream which may be silent for long is half open.
// A peer that is gone is found out by TCP; one behind a proxy that is not, by the
// comments that no longer come.
const (
	minBeat     = time.Second     // the shortest silence before a comment that keeps a stream alive
	minBeats    = 2               // how many are seen before more are expected
	missedBeats = 3               // how many may be missing
	minSilence  = 5 * time.Second // that ends a stream
)

// A silentError says that a stream was ended because its server stopped keeping it
// alive.
type silentError struct{ silence, beat time.Duration }

// Error names the limit and what was seen.
func (e *silentError) Error() string {
	return fmt.Sprintf("nothing has come for %v on a stream that was kept alive every %v", e.silence, e.beat)
}

// A pulse is the body of a stream without a deadline. If its server keeps the
// stream alive with comments, it ends when these stop. A server that sends none may
// be silent for as long as it likes.
type pulse struct {
	io.ReadCloser

	beats int           // comments after a silence
	beat  time.Duration // the longest of these silences
	over  atomic.Pointer[silentError]
}

// Read implements [io.Reader].
func (p *pulse) Read(b []byte) (int, error) {
	if p.beats >= minBeats {
		end := &silentError{silence: max(missedBeats*p.beat, minSilence), beat: p.beat}
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
