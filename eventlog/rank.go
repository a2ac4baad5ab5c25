package eventlog

import "container/heap"

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

// Len implements [heap.Interface], as Less, Swap, Push and Pop do.
func (r ranks) Len() int { return len(r) }

// Less reports whether one session is to lose an event before another one is.
func (r ranks) Less(i, j int) bool { return r[i].before(&r[j]) }

func (k *rank) before(other *rank) bool {
	if k.bytes != other.bytes {
		return k.bytes > other.bytes
	}
	return k.oldest < other.oldest
}

// Swap also tells the sessions their new places.
func (r ranks) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].session.rank, r[j].session.rank = i+1, j+1
}

// Push is not used: it would have to allocate.
func (r *ranks) Push(any) {}

// Pop removes the last session, and does not return it: that would allocate.
func (r *ranks) Pop() any {
	end := len(*r) - 1
	(*r)[end].session.rank = 0
	(*r)[end] = rank{}
	*r = (*r)[:end]
	return nil
}

// update moves a session to its place. Those of the others have not changed.
func (r *ranks) update(s *memSession) {
	switch {
	case s.events.first == nil && s.rank == 0:
		return
	case s.events.first == nil:
		heap.Remove(r, s.rank-1)
		return
	case s.rank == 0:
		*r = append(*r, rank{})
		s.rank = len(*r)
	}
	(*r)[s.rank-1] = rank{s.bytes, s.events.first.value.order, s}
	heap.Fix(r, s.rank-1)
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
