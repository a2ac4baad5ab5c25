package cells_test

import (
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/faulttest/cells"
)

// TestRoundsAcrossABridge: calls end once and are executed once at most, and nothing is
// left, whatever dies or leaves.
func TestRoundsAcrossABridge_P1_P2_P7(t *testing.T) {
	const rounds = 2
	var all []*cells.Figures
	for i, server := range cells.Sides {
		for j, client := range cells.Sides {
			if (i+j)%2 > 0 {
				continue // make soak has the others, too
			}
			f, err := cells.Run(t.Context(), cells.Series{Client: client, Server: server, Seed: 1, Rounds: rounds, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
			if f.Rounds != rounds || len(f.Problems) > 0 {
				t.Errorf("%s: %d rounds, %q", f.Cell, f.Rounds, f.Problems)
			}
		}
	}
	var b strings.Builder
	if err := cells.Print(&b, all); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
}
