package eventlog

// Ranks are the sessions that have events, as a heap: first the one with the most
// bytes, and of equal ones the one with the oldest event. If the oldest event of all
// had to go, one session could take all the room.
type ranks []rank

// A rank is where a session stands. It holds what is compared, which at the session
// would be out of the processor's reach.
type rank struct {
	bytes   int
	oldest  uint64 // order of the oldest event
	session *memSession
}

// before reports whether a session is to lose an event before another one is.
func (k *rank) before(other *rank) bool {
	if k.bytes != other.bytes {
		return k.bytes > other.bytes
	}
	return k.oldest < other.oldest
}

// update moves a session to its place. Those of the others have not changed.
func (r *ranks) update(s *memSession) {
	i := s.rank - 1
	if s.events.first != nil {
		k := rank{s.bytes, s.events.first.value.order, s}
		if i < 0 {
			*r = append(*r, k)
			i = len(*r) - 1
		}
		r.move(i, k)
		return
	}
	if i < 0 {
		return
	}
	s.rank = 0
	end := len(*r) - 1
	last := (*r)[end]
	(*r)[end] = rank{}
	*r = (*r)[:end]
	if i < end {
		r.move(i, last)
	}
}

// move puts k where it belongs if place i is free.
func (r ranks) move(i int, k rank) {
	for i > 0 {
		above := (i - 1) / 2
		if !k.before(&r[above]) {
			break
		}
		r.put(i, r[above])
		i = above
	}
	for {
		below := 2*i + 1
		if below >= len(r) {
			break
		}
		if other := below + 1; other < len(r) && r[other].before(&r[below]) {
			below = other
		}
		if !r[below].before(&k) {
			break
		}
		r.put(i, r[below])
		i = below
	}
	r.put(i, k)
}

func (r ranks) put(i int, k rank) {
	r[i] = k
	k.session.rank = i + 1
}

// most returns the first session that has an event besides newest, nil if there is
// none.
func (r ranks) most(newest *node[*memEvent]) *memSession {
	var most *rank
	// Only one has newest. If it is the first, who follows is one of the next two.
	for i := range r[:min(len(r), 3)] {
		if k := &r[i]; k.session.events.first != newest && (most == nil || k.before(most)) {
			most = k
		}
	}
	if most == nil {
		return nil
	}
	return most.session
}
