package raw

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Whatever callers write at once goes out whole and once.
func TestJointLosesNothing(t *testing.T) {
	var out bytes.Buffer
	j := joint{w: &out}
	const callers, each = 8, 200
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			line := strings.Repeat(string(rune('a'+i)), 1+i*jointBytes/(callers-2)) + "\n"
			for range each {
				if err := j.write([]byte(line)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var counts [callers]int
	for line := range strings.Lines(out.String()) {
		c := line[0]
		if strings.Count(line, string(c)) != len(line)-1 {
			t.Fatalf("lines are mixed: %.80q", line)
		}
		counts[c-'a']++
	}
	if slices.ContainsFunc(counts[:], func(n int) bool { return n != each }) {
		t.Errorf("lines of each caller: %v, want %d", counts, each)
	}
}

// A write that fails is its caller's error.
func TestJointTellsOfAFailure(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(io.ErrClosedPipe)
	j := joint{w: w}
	if err := j.write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}
