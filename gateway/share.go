package gateway

import (
	"fmt"
	"sync"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// MaxShare bounds what one principal may have of a limit that all share: so many times
// what is left. So whoever comes finds something, whatever others have taken. Of 128 calls
// one principal has 96 at most, and of two that take all they can each has 54. Requests
// without a principal are not held to it.
const MaxShare = 3

// A shared is a limit that principals share. Its zero value lets nothing in.
type shared struct {
	max int // set at construction

	mu  sync.Mutex
	all int                   // in use, guarded by mu like what follows
	of  map[mcp.Principal]int // by principal, without the anonymous one
}

func newShared(max int) *shared { return &shared{max: max, of: make(map[mcp.Principal]int)} }

// An excess is what was seen when something was over a limit.
type excess struct {
	all, own, max int
}

// over returns the error of a request that is over a limit, which has a name. Many says
// what of, such as "calls are in flight".
func (x *excess) over(method, limit, many string) error {
	public := fmt.Sprintf("%d %s, the limit is %d", x.all, many, x.max)
	if x.all < x.max {
		public = fmt.Sprintf("%d %s, %d of them for this principal; the limit is %d, and one principal may have %d times as many as are left (MaxShare)",
			x.all, many, x.own, x.max, MaxShare)
		limit = "MaxShare"
	}
	return &mcp.CallError{Method: method, Kind: mcp.LimitExceeded, Limit: limit, Outcome: mcp.NotSent, Public: public}
}

// enter counts one more for a principal, until leave, or returns why there must not be
// one more.
func (s *shared) enter(who mcp.Principal) *excess {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, left := s.of[who], s.max-s.all
	if left <= 0 || own/MaxShare >= left {
		return &excess{all: s.all, own: own, max: s.max}
	}
	s.add(who, 1)
	return nil
}

// leave counts one less.
func (s *shared) leave(who mcp.Principal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(who, -1)
}

// comeBack counts one that had left although it goes on, even over the limit.
func (s *shared) comeBack(who mcp.Principal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(who, 1)
}

func (s *shared) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// add counts n more. s.mu is held.
func (s *shared) add(who mcp.Principal, n int) {
	s.all += n
	if who == (mcp.Principal{}) {
		return
	}
	if s.of[who] += n; s.of[who] == 0 {
		delete(s.of, who)
	}
}
