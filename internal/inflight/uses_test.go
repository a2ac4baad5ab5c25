package inflight_test

import (
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
)

func TestUses(t *testing.T) {
	ended := func(u *inflight.Uses) bool {
		select {
		case <-u.End():
			return true
		default:
			return false
		}
	}
	if !ended(inflight.NewUses()) {
		t.Error("none has not ended")
	}
	u := inflight.NewUses()
	for range 2 {
		if !u.Begin() {
			t.Error("a call may not begin")
		}
	}
	for range 2 {
		if ended(u) || u.Begin() {
			t.Error("all has ended, or one more may begin")
		}
		u.Leave()
	}
	if !ended(u) || u.Begin() || !ended(u) {
		t.Error("it has not ended")
	}
}

// TestUsesFromManySides: whoever may begin has left when it has ended.
func TestUsesFromManySides(t *testing.T) {
	for range 200 {
		u := inflight.NewUses()
		var mu sync.Mutex
		inside := 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			inside += n
		}
		var running sync.WaitGroup
		for range 4 {
			running.Go(func() {
				for u.Begin() {
					count(1)
					count(-1)
					u.Leave()
				}
			})
			running.Go(func() {
				<-u.End()
				mu.Lock()
				defer mu.Unlock()
				if inside != 0 {
					t.Errorf("%d are inside", inside)
				}
			})
		}
		running.Wait()
	}
}
