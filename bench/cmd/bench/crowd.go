package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/crowd"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// crowdCommand checks whom answers and questions reach, instead of measuring.
const crowdCommand = "crowd"

// errBadAnswers is why crowd fails when nothing else went wrong.
var errBadAnswers = errors.New("answers or questions were not those that they had to be")

// A scene is a crowd before one bridge.
type scene struct {
	isolation   string
	clients     int
	inFlight    int
	calls       int
	ask, cancel int // of how many calls one
	mustAsk     bool
}

// scenes are those of so many calls and clients. With a connection of its own each
// client can be asked for certain, if its calls come one after the other.
func scenes(calls, clients int) []scene {
	return []scene{
		{isolation: "shared", clients: clients, inFlight: 2, calls: calls, ask: 50, cancel: 100},
		{isolation: "per-client", clients: min(clients, 32), inFlight: 1, calls: max(calls/20, 1), ask: 5, cancel: 100, mustAsk: true},
	}
}

// crowded has crowds of clients of both eras call one legacy server through a bridge,
// and checks every answer and every question.
func crowded(ctx context.Context, o *options, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "mcpsplice-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(progress, "building the bridge and the server")
	paths, err := contest.Build(ctx, o.module, dir, []contest.Contestant{contest.Crowd(""), contest.CrowdServer()}, nil)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "# Crowd\n\nClients of both eras, one bridge, a legacy server over stdio. One call in 100 is cancelled.\n\n"+
		"| isolation | clients | calls | answered | cancelled | asked | could not ask | crossed | wrong | lost | doubled | executed twice | calls/s |\n"+
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range scenes(o.calls, o.clients) {
		err = errors.Join(err, s.play(ctx, paths, dir, out, progress))
	}
	return err
}

func (s *scene) play(ctx context.Context, paths contest.Paths, home string, out, progress io.Writer) error {
	bridge := contest.Crowd(s.isolation)
	p, err := bridge.Start(ctx, paths, contest.StartOptions{Revision: wire.Modern, Home: home})
	if err != nil {
		return err
	}
	defer p.Stop()
	c := &crowd.Crowd{
		Addr: p.Addr(), Clients: s.clients, InFlight: s.inFlight, Calls: s.calls,
		Ask: s.ask, Cancel: s.cancel, MustAsk: s.mustAsk,
	}
	f, err := s.run(ctx, c, progress)
	twice := "–" // with a server for each client nobody knows all that was executed
	if err == nil && s.isolation == "shared" {
		f.Tally, err = c.Tally(ctx)
		twice = fmt.Sprint(f.Tally.Twice)
	}
	if err != nil {
		return fmt.Errorf("%s: %w%s", s.isolation, err, p.Stderr())
	}
	fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s | %s | %d | %d | %d | %d | %s | %s |\n", s.isolation, s.clients, count(float64(s.calls)),
		count(float64(f.Answered)), count(float64(f.Cancelled)), count(float64(f.Asked)), count(float64(f.Refused)),
		f.Crossed+f.Tally.Crossed, f.Wrong, f.Lost, f.Doubled, twice, count(float64(s.calls)/f.Took.Seconds()))
	if f.Bad() > 0 {
		return fmt.Errorf("%s: %w: %s", s.isolation, errBadAnswers, f.Example)
	}
	return nil
}

// run makes the calls, and tells how far it has come.
func (s *scene) run(ctx context.Context, c *crowd.Crowd, progress io.Writer) (*crowd.Figures, error) {
	type end struct {
		figures *crowd.Figures
		err     error
	}
	ended := make(chan end, 1)
	go func() {
		f, err := c.Run(ctx)
		ended <- end{f, err}
	}()
	every, line := 10*time.Second, "\n"
	if isTerminal(progress) {
		every, line = 200*time.Millisecond, "\r"
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case e := <-ended:
			return e.figures, e.err
		case <-ticker.C:
			fmt.Fprintf(progress, "%s: %s of %s calls%s", s.isolation, count(float64(c.Done())), count(float64(s.calls)), line)
		}
	}
}
