package eventlog

import "fmt"

// eventCost is what an event counts besides its data.
const eventCost = 64

func (m *Memory) count(e *memEvent, sign int) {
	n := sign * (len(e.Data) + eventCost)
	e.stream.bytes += n
	e.stream.session.bytes += n
	m.bytes += n
}

// bound pushes out what is over the limits now that s has a new event, which
// itself stays: a reader that waits for it is to have it whatever its size.
func (m *Memory) bound(s *memStream) {
	o := &m.opts
	for len(s.events) > 1 && len(s.events) > o.StreamEvents {
		m.pushOut(s.events[0], "StreamEvents", o.StreamEvents)
	}
	for len(s.events) > 1 && s.bytes > o.StreamBytes {
		m.pushOut(s.events[0], "StreamBytes", o.StreamBytes)
	}
	newest := s.session.events.last
	for s.session.bytes > o.SessionBytes && s.session.events.first != newest {
		m.pushOut(s.session.events.first.value, "SessionBytes", o.SessionBytes)
	}
	m.ranks.update(s.session)
	for m.bytes > o.Bytes {
		most := m.ranks.most(newest)
		if most == nil {
			return
		}
		m.pushOut(most.events.first.value, "Bytes", o.Bytes)
		m.ranks.update(most)
	}
}

// pushOut pushes out an event, which is the oldest of its stream. A finished
// stream of which nothing is left is forgotten.
func (m *Memory) pushOut(e *memEvent, limit string, value int) {
	s := e.stream
	s.limit = fmt.Sprintf("%s of %d", limit, value)
	s.session.events.remove(e.place)
	m.count(e, -1)
	s.events[0] = nil
	s.events = s.events[1:]
	if len(s.events) == 0 && !s.finishedAt.IsZero() {
		m.forget(s)
	}
}
