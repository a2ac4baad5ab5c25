package eventlog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Defaults of [Options].
const (
	DefaultStreamEvents   = 8192
	DefaultStreamBytes    = 16 << 20
	DefaultSessionBytes   = 32 << 20
	DefaultSessionStreams = 1024
	DefaultBytes          = 128 << 20
	DefaultKeep           = 5 * time.Minute
)

// Options are the limits of a [Memory]. The zero value is usable.
//
// Over a limit of events or bytes the oldest events go first, except the newest
// of all, which stays whatever its size. Over Bytes they are those of the session
// that has the most bytes, so that no session takes what others can resume from.
// Each event counts 64 bytes besides its data.
type Options struct {
	// StreamEvents is how many events are kept of one stream. Default
	// DefaultStreamEvents.
	StreamEvents int
	// StreamBytes is how many bytes are kept of one stream. Default
	// DefaultStreamBytes.
	StreamBytes int
	// SessionBytes is how many bytes are kept of all streams of one session.
	// Default DefaultSessionBytes.
	SessionBytes int
	// SessionStreams is how many streams one session may have. A further one
	// takes the place of the one that was finished first; if none is
	// finished, there is no further one. Default DefaultSessionStreams.
	SessionStreams int
	// Bytes is how many bytes are kept of all sessions. A session that has no more
	// than Bytes divided by the number of sessions loses nothing to others. Default
	// DefaultBytes.
	Bytes int
	// Keep is how long a finished stream is kept. Default DefaultKeep.
	Keep time.Duration
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	for value, normal := range map[*int]int{
		&d.StreamEvents: DefaultStreamEvents, &d.StreamBytes: DefaultStreamBytes, &d.SessionBytes: DefaultSessionBytes,
		&d.SessionStreams: DefaultSessionStreams, &d.Bytes: DefaultBytes,
	} {
		if *value <= 0 {
			*value = normal
		}
	}
	if d.Keep <= 0 {
		d.Keep = DefaultKeep
	}
	return d
}

// A Memory is a [Log] in memory, bounded by its [Options]. It is safe for
// concurrent use. It has no goroutines, and nothing to close: a session that is
// dropped leaves nothing behind.
type Memory struct {
	opts Options // set at construction

	mu       sync.Mutex // guards what follows, and all that hangs on it
	sessions map[string]*memSession
	ranks    ranks
	finished list[*memStream] // those that were finished first, first
	appended uint64           // events ever
	bytes    int              // of events
	timer    *time.Timer      // calls expire while there are finished streams
}

// A memSession is what a Memory keeps of a session.
type memSession struct {
	streams map[string]*memStream
	events  list[*memEvent] // of all streams, oldest first
	bytes   int
	rank    int // place in Memory.ranks, from 1; 0 for none
}

// A memStream is a stream in a Memory.
type memStream struct {
	session *memSession
	name    Stream
	events  []*memEvent // without gaps
	last    uint64      // number of the newest event
	bytes   int
	limit   string        // what pushed out the event before the oldest that is kept
	changed chan struct{} // closed at the next change; nil if nobody waits

	finishedAt time.Time // zero while it is not
	place      *node[*memStream]
}

// A memEvent is an event in a Memory.
type memEvent struct {
	Event

	stream *memStream
	order  uint64           // in all of the log
	place  *node[*memEvent] // in its session
}

// NewMemory returns an empty log. Nil options stand for the defaults.
func NewMemory(opts *Options) *Memory {
	return &Memory{opts: opts.withDefaults(), sessions: make(map[string]*memSession)}
}

var _ Log = (*Memory)(nil)

// Append implements [Log]. It does not wait.
func (m *Memory) Append(_ context.Context, name Stream, data []byte) (uint64, error) {
	if !isName(name.Name) {
		return 0, fmt.Errorf("%q is no name of an event stream", name.Name)
	}
	data = bytes.Clone(data)
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.stream(name)
	if err != nil {
		return 0, err
	}
	s.last++
	m.appended++
	e := &memEvent{Event: Event{Seq: s.last, Data: data}, stream: s, order: m.appended}
	e.place = s.session.events.push(e)
	s.events = append(s.events, e)
	m.count(e, 1)
	m.bound(s)
	s.wake()
	return e.Seq, nil
}

// stream returns the stream with a name, a new one if need be.
func (m *Memory) stream(name Stream) (*memStream, error) {
	session := m.sessions[name.Session]
	if session == nil {
		session = &memSession{streams: make(map[string]*memStream)}
	}
	if s := session.streams[name.Name]; s != nil {
		if !s.finishedAt.IsZero() {
			return nil, ErrFinished
		}
		return s, nil
	}
	if len(session.streams) >= m.opts.SessionStreams && !m.makeRoom(session) {
		return nil, &LimitError{Limit: "SessionStreams", Value: m.opts.SessionStreams}
	}
	s := &memStream{session: session, name: name}
	session.streams[name.Name] = s
	m.sessions[name.Session] = session // again if it was down to no stream
	return s, nil
}

// makeRoom forgets the stream of a session that was finished first.
func (m *Memory) makeRoom(session *memSession) bool {
	var oldest *memStream
	for _, s := range session.streams {
		if !s.finishedAt.IsZero() && (oldest == nil || s.finishedAt.Before(oldest.finishedAt)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	m.forget(oldest)
	return true
}

// What one Read returns: so many events, of so many bytes unless there is only one. Who
// delivers them slowly keeps them although the log may not any more.
const (
	maxRead      = 256
	maxReadBytes = 256 << 10
)

// Read implements [Log]. It does not wait.
func (m *Memory) Read(_ context.Context, name Stream, after uint64) ([]Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.find(name, after)
	if err != nil {
		return nil, err
	}
	kept := s.events[len(s.events)-int(s.last-after):]
	if len(kept) == 0 && !s.finishedAt.IsZero() {
		return nil, io.EOF
	}
	events := make([]Event, countRead(kept))
	for i := range events {
		events[i] = kept[i].Event
	}
	return events, nil
}

// countRead returns how many events one Read returns of those that there are.
func countRead(kept []*memEvent) int {
	bytes := 0
	for i, e := range kept[:min(len(kept), maxRead)] {
		if bytes += len(e.Data); i > 0 && bytes > maxReadBytes {
			return i
		}
	}
	return min(len(kept), maxRead)
}

// find returns a stream of which all events after a number are kept.
func (m *Memory) find(name Stream, after uint64) (*memStream, error) {
	s := m.lookup(name)
	if s == nil || after > s.last {
		return nil, fmt.Errorf("%w: finished ones are kept within the limit Keep of %v", ErrUnknown, m.opts.Keep)
	}
	if first := s.last - uint64(len(s.events)); after < first {
		return nil, &GoneError{Limit: s.limit, Missed: first - after, Resume: first}
	}
	return s, nil
}

func (m *Memory) lookup(name Stream) *memStream {
	if session := m.sessions[name.Session]; session != nil {
		return session.streams[name.Name]
	}
	return nil
}

// Wait implements [Log].
func (m *Memory) Wait(ctx context.Context, name Stream, after uint64) error {
	changed := m.changed(name, after)
	if changed == nil {
		return nil
	}
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// changed returns a channel that is closed when Read has something to return, nil
// if it has.
func (m *Memory) changed(name Stream, after uint64) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.find(name, after)
	if err != nil || after < s.last || !s.finishedAt.IsZero() {
		return nil
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

func (s *memStream) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Finish implements [Log]. It does not wait.
func (m *Memory) Finish(_ context.Context, name Stream) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.lookup(name)
	if s == nil {
		return ErrUnknown
	}
	if !s.finishedAt.IsZero() {
		return nil
	}
	s.finishedAt = time.Now()
	s.place = m.finished.push(s)
	if m.timer == nil {
		m.timer = time.AfterFunc(m.opts.Keep, m.expire)
	} else if m.finished.first == s.place {
		m.timer.Reset(m.opts.Keep)
	}
	s.wake()
	return nil
}

// expire forgets the finished streams that have been kept long enough.
func (m *Memory) expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := m.finished.first; n != nil; n = m.finished.first {
		if left := m.opts.Keep - time.Since(n.value.finishedAt); left > 0 {
			m.timer.Reset(left)
			return
		}
		m.forget(n.value)
	}
}

// Drop implements [Log]. It does not wait.
func (m *Memory) Drop(_ context.Context, session string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	if s == nil {
		return nil
	}
	for _, stream := range s.streams {
		m.forget(stream)
	}
	delete(m.sessions, session)
	return nil
}

// forget takes a stream out of the log.
func (m *Memory) forget(s *memStream) {
	for _, e := range s.events {
		s.session.events.remove(e.place)
		m.count(e, -1)
	}
	s.events = nil
	m.ranks.update(s.session)
	if s.place != nil {
		m.finished.remove(s.place)
	}
	if m.finished.first == nil && m.timer != nil {
		m.timer.Stop()
	}
	delete(s.session.streams, s.name.Name)
	if len(s.session.streams) == 0 {
		delete(m.sessions, s.name.Session)
	}
	s.wake()
}
