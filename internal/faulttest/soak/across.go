package main

import (
	"context"
	"os"

	"github.com/mcpsplice/mcpsplice/internal/faulttest/cells"
)

// acrossPortion is portion for each cell of a bridge.
const acrossPortion = 10

// across makes a portion of rounds in every cell of a bridge, and adds what came of
// them.
func (s *soak) across(ctx context.Context, seed uint64) error {
	i := 0
	for _, server := range cells.Sides {
		for _, client := range cells.Sides {
			f, err := s.inCell(ctx, cells.Series{Client: client, Server: server, Seed: seed, Rounds: acrossPortion})
			switch {
			case err != nil:
				return err
			case i == len(s.bridged):
				s.bridged = append(s.bridged, f)
			default:
				s.bridged[i].Add(f)
			}
			i++
		}
	}
	return nil
}

func (s *soak) inCell(ctx context.Context, series cells.Series) (*cells.Figures, error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	series.Dir = dir
	series.Progress = func() { s.progress("across a bridge") }
	return cells.Run(ctx, series)
}
