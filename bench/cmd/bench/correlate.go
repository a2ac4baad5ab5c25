package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/raw"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// correlateCommand checks replies instead of measuring.
const correlateCommand = "correlate"

// correlateOnly is which contestants it checks if nobody says so: the bridge is
// where the ids of many clients meet on one pipe.
var correlateOnly = regexp.MustCompile("^mcpsplice-(server|bridge)$")

// errCrossed is why correlate fails when nothing else went wrong.
var errCrossed = errors.New("replies were not those to their calls")

// correlate makes many calls over many connections to each contestant, and checks
// that each reply is that to its own call.
func correlate(ctx context.Context, o *options, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "mcpsplice-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var list []contest.Contestant
	for _, c := range contest.All() {
		if c.Transport == contest.HTTP && !c.Echo && !c.Listen && o.only.MatchString(c.Name) {
			list = append(list, c)
		}
	}
	fmt.Fprintln(progress, "building the contestants")
	paths, err := contest.Build(ctx, o.module, dir, list, nil)
	if err != nil {
		return err
	}
	k := &correlator{options: o, paths: paths, home: dir, out: out, progress: progress}
	fmt.Fprintf(out, "# Correlation\n\n%d calls over %d connections, each reply compared with the one to its call.\n\n", o.calls, o.connections)
	fmt.Fprintln(out, "| contestant | revision | calls | crossed | wrong | calls/s |\n|---|---|--:|--:|--:|--:|")
	for i := range list {
		for _, r := range o.revisions.values {
			if list[i].Speaks(r) {
				err = errors.Join(err, k.check(ctx, &list[i], r))
			}
		}
	}
	return err
}

// A correlator checks contestants one after the other.
type correlator struct {
	// Set at construction.
	options       *options
	paths         contest.Paths
	home          string
	out, progress io.Writer
}

func (k *correlator) check(ctx context.Context, c *contest.Contestant, r wire.Revision) error {
	p, err := c.Start(ctx, k.paths, contest.StartOptions{Revision: r, Home: k.home})
	if err != nil {
		return err
	}
	defer p.Stop()
	run := &raw.Correlation{Addr: p.Addr(), Peer: c.Peer(r), Connections: k.options.connections, Calls: k.options.calls}
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- run.Run(ctx) }()
	err = watch(k.progress, fmt.Sprintf("%s, %s", c.Name, r), run, ended)
	perSecond := float64(run.Done()) / time.Since(began).Seconds()
	fmt.Fprintf(k.out, "| %s | %s | %s | %d | %d | %s |\n", c.Name, r, count(float64(run.Done())), run.Crossed(), run.Wrong(), count(perSecond))
	if err != nil {
		return fmt.Errorf("%s, %s: %w%s", c.Name, r, err, p.Stderr())
	}
	if run.Crossed()+run.Wrong() > 0 {
		return fmt.Errorf("%s, %s: %w", c.Name, r, errCrossed)
	}
	return nil
}

// watch tells how far a run is until it ends: on a terminal in one line, and else
// now and then.
func watch(progress io.Writer, name string, run *raw.Correlation, ended <-chan error) error {
	every, end := 10*time.Second, "\n"
	if isTerminal(progress) {
		every, end = 200*time.Millisecond, "\r"
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	tell := func(end string) {
		fmt.Fprintf(progress, "%s: %s of %s calls, %d crossed%s", name,
			count(float64(run.Done())), count(float64(run.Calls)), run.Crossed(), end)
	}
	for {
		select {
		case err := <-ended:
			tell("\n")
			return err
		case <-ticker.C:
			tell(end)
		}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
