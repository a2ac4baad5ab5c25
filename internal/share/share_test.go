package share_test

import (
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/share"
)

// TestWhatIsTaken by some who take all they can, in turn.
func TestWhatIsTaken(t *testing.T) {
	for _, tt := range []struct {
		limit, takers int
		each          int // at least, and one more at most
	}{
		{128, 1, 96},
		{128, 2, 54},
		{128, 10, 12},
		{1, 1, 1},
		{2, 1, 2},
		{10_000, 1, 7500},
	} {
		taken := make([]int, tt.takers)
		left := tt.limit
		for took := true; took; {
			took = false
			for i := range taken {
				if share.Allows(taken[i], 1, left) {
					taken[i]++
					left--
					took = true
				}
			}
		}
		for i, n := range taken {
			if n < tt.each || n > tt.each+1 {
				t.Errorf("taker %d of %d has %d of %d, want %d", i, tt.takers, n, tt.limit, tt.each)
			}
		}
		if newcomer := share.Allows(0, 1, left); newcomer != (left > 0) {
			t.Errorf("%d of %d are left, and a newcomer gets one: %t", left, tt.limit, newcomer)
		}
	}
	if share.Allows(0, 65, 128) != true || share.Allows(0, 97, 128) || share.Allows(0, 129, 128) {
		t.Error("what is large is judged as what is small is not")
	}
}
