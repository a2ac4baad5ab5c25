package transport

import "time"

// A reader reads from the link of a server while it has the turn, and serves fast
// requests itself.
type reader struct {
	s       *server
	serving uint64 // state of the turn while the reader serves a request
	sender  sender // answer
}

func newReader(s *server) *reader {
	r := &reader{s: s}
	r.sender = r.answer
	return r
}

// takeOver reads on for somebody whose request is slow.
func (s *server) takeOver() {
	if s.holder != nil {
		s.holder.Kick()
	}
	s.read()
}

// serve has the reader serve a request itself. It reports whether the request was
// taken, and whether the reader is to read on.
func (r *reader) serve(run func(sender)) (started, readOn bool) {
	// Before the turn can be given away: who reads on may find the end of the input,
	// and what was read before that is served.
	if !r.s.workers.enter() {
		return false, true
	}
	r.serving = r.s.turn.begin()
	began := time.Now()
	r.run(run)
	return true, r.s.turn.end(r.serving, time.Since(began))
}

func (r *reader) run(f func(sender)) {
	defer r.s.workers.leave()
	f(r.sender)
}

// answer sends the answer to a request that the reader has served: while further
// messages are at hand, answers wait for each other. A reader that has lost the
// turn must not look for them.
func (r *reader) answer(build func(dst []byte) []byte) {
	if r.s.holder == nil || !r.s.turn.pause(r.serving) {
		r.s.send(build)
		return
	}
	held := r.s.holder.Buffered() && r.hold(build)
	r.serving = r.s.turn.resume()
	if !held {
		r.s.send(build)
	}
}

func (r *reader) hold(build func(dst []byte) []byte) (held bool) {
	// Nothing can fail here.
	_ = WithFrame(build, func(frame []byte) error {
		held = r.s.holder.Hold(frame)
		return nil
	})
	return held
}
