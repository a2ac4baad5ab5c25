// Soak kills servers, and disturbs the lines to them, for as long as asked, and
// prints what became of a client's calls. It fails if anything did not hold.
//
//	soak [-duration 10m] [-rounds 500] [-loop 1m] [-seed 1]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/internal/faulttest/cells"
	"github.com/mcpsplice/mcpsplice/internal/faulttest/rounds"
)

func main() {
	if status, isChild := faulttest.RunChild(os.Stdin, os.Stdout, os.Stderr); isChild {
		os.Exit(status)
	}
	if status, isServer := cells.RunServer(os.Stdin, os.Stdout, os.Stderr); isServer {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s := &soak{out: os.Stdout, terminal: os.Stderr}
	flag.DurationVar(&s.duration, "duration", 10*time.Minute, "how long to go on, at least for the rounds")
	flag.IntVar(&s.rounds, "rounds", 500, "how many rounds of each kind there are at least")
	flag.DurationVar(&s.loop, "loop", time.Minute, "how long each server that crashes again and again is watched")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "what follows from it is the same each time")
	flag.Parse()
	err := s.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// A soak is rounds of all kinds, one kind after the other, over and over.
type soak struct {
	duration time.Duration
	rounds   int
	loop     time.Duration
	seed     uint64
	out      io.Writer
	terminal *os.File // for progress, if it is a terminal

	bridged []*cells.Figures
	done    int
	began   time.Time
}

// portion is how many rounds of a kind follow each other, with one client.
const portion = 50

func (s *soak) run(ctx context.Context) error {
	s.began = time.Now()
	fmt.Fprintf(s.out, "seed %d\n", s.seed)
	measures, err := s.measure(ctx)
	if err != nil {
		return err
	}
	all := make([]*rounds.Figures, len(rounds.Kinds))
	for n := 0; n*portion < s.rounds || time.Since(s.began) < s.duration; n++ {
		if err = s.portions(ctx, all, s.seed+uint64(n)); err != nil {
			break
		}
	}
	interrupted := ctx.Err() != nil
	if err != nil && !interrupted {
		return err
	}
	err = s.report(slices.DeleteFunc(all, func(f *rounds.Figures) bool { return f == nil }), measures)
	if interrupted {
		err = errors.Join(err, errors.New("interrupted: these are not all of the rounds"))
	}
	return err
}

// portions makes a portion of rounds of each kind, and adds what came of them to all.
func (s *soak) portions(ctx context.Context, all []*rounds.Figures, seed uint64) error {
	for i, kind := range rounds.Kinds {
		f, err := s.some(ctx, kind, seed)
		switch {
		case err != nil:
			return err
		case all[i] == nil:
			all[i] = f
		default:
			all[i].Add(f)
		}
	}
	return s.across(ctx, seed)
}

// measure measures what rounds do not show, on a machine that does nothing else.
func (s *soak) measure(ctx context.Context) ([]rounds.Measure, error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return rounds.MeasureAll(ctx, dir, rounds.Extent{Loop: s.loop, Calls: 5000})
}

// some makes a portion of rounds.
func (s *soak) some(ctx context.Context, kind rounds.Kind, seed uint64) (*rounds.Figures, error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return rounds.Run(ctx, rounds.Series{
		Kind: kind, Seed: seed, Rounds: portion, Dir: dir, Progress: func() { s.progress(kind) },
	})
}

func (s *soak) progress(kind any) {
	s.done++
	if info, err := s.terminal.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(s.terminal, "\r%v  %d rounds, now %v\x1b[K", time.Since(s.began).Round(time.Second), s.done, kind)
	}
}

func (s *soak) report(all []*rounds.Figures, measures []rounds.Measure) error {
	if err := rounds.Print(s.out, all); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	if err := cells.Print(s.out, s.bridged); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	if err := rounds.PrintMeasures(s.out, measures); err != nil {
		return err
	}
	problems := 0
	for _, f := range s.bridged {
		problems += len(f.Problems)
	}
	for _, m := range measures {
		if m.Over {
			problems++
		}
	}
	for _, f := range all {
		problems += len(f.Problems) + len(f.Slow())
	}
	if problems > 0 {
		return fmt.Errorf("%d things do not hold, with seed %d", problems, s.seed)
	}
	return nil
}
