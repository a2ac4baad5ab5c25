package eventlog

// Size returns how many bytes, events and sessions are kept.
func (m *Memory) Size() (bytes, events, sessions int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sessions {
		for n := s.events.first; n != nil; n = n.next {
			events++
		}
	}
	return m.bytes, events, len(m.sessions)
}
