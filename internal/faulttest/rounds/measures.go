package rounds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// A Measure is a figure that is promised, beside those of rounds.
type Measure struct {
	Name  string // the fault
	What  string // what was measured
	Seen  string
	Limit string
	Over  bool // more was seen than is allowed
}

// Extent says how long measures take.
type Extent struct {
	Loop  time.Duration // of watching a server that crashes
	Calls int           // that are timed
}

// MeasureAll measures what a server costs that crashes, floods stderr, or stops
// reading. Dir is an empty directory. The program must begin with
// [faulttest.RunChild].
func MeasureAll(ctx context.Context, dir string, x Extent) ([]Measure, error) {
	m := &measurement{dir: dir, extent: x}
	for _, measure := range []func(context.Context) error{m.crashLoops, m.stderrFlood, m.closing} {
		if err := measure(ctx); err != nil {
			return nil, err
		}
	}
	return m.all, nil
}

// PrintMeasures writes a table.
func PrintMeasures(w io.Writer, all []Measure) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "fault\tmeasured\tseen\tlimit\t")
	for _, m := range all {
		note := ""
		if m.Over {
			note = "FAULT"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.What, m.Seen, m.Limit, note)
	}
	return table.Flush()
}

type measurement struct {
	dir    string
	extent Extent
	all    []Measure
}

func (m *measurement) add(name, what, seen, limit string, over bool) {
	m.all = append(m.all, Measure{Name: name, What: what, Seen: seen, Limit: limit, Over: over})
}

// connect connects to a child of its own directory.
func (m *measurement) connect(ctx context.Context, name string, lives ...faulttest.Script) (*client.Client, *faulttest.Child, error) {
	dir, err := os.MkdirTemp(m.dir, name)
	if err != nil {
		return nil, nil, err
	}
	child := &faulttest.Child{Dir: dir, Lives: lives}
	c, err := client.Connect(ctx, &client.CommandTarget{
		Command: stdio.Command{Path: faulttest.Executable(), Env: child.Env()},
	}, nil)
	return c, child, err
}

// Limits of what is measured: security.md, 4.4.
const (
	maxLoopLoad   = 0.05 // of a processor
	maxLoopStarts = client.DefaultCrashes
	aimOfFlood    = 1.5 // which the flood alone, on two processors, does not let calls reach
	maxFloodRatio = 3.0
	maxClose      = 5 * time.Second
)

// crashLoops measures the load that servers make which end again and again.
func (m *measurement) crashLoops(ctx context.Context) error {
	for _, loop := range []struct {
		name string
		life faulttest.Script
	}{
		{"ends at once", faulttest.Script{faulttest.Exit(1)}},
		{"ends after the handshake", faulttest.Script{faulttest.Handshake(), faulttest.Exit(1)}},
	} {
		c, child, err := m.connect(ctx, "loop", faulttest.Script{faulttest.Handshake(), faulttest.Exit(1)}, loop.life)
		if err != nil {
			return fmt.Errorf("R2, %s: %w", loop.name, err)
		}
		began, used := time.Now(), processorTime()
		select {
		case <-time.After(m.extent.Loop):
		case <-ctx.Done():
		}
		passed := time.Since(began)
		if err := c.Close(); err != nil {
			return fmt.Errorf("R2, %s: %w", loop.name, err)
		}
		load := float64(processorTime()-used) / float64(passed)
		m.add("R2 "+loop.name, "processor time", fmt.Sprintf("%.2f %%", 100*load), fmt.Sprintf("%.0f %%", 100*maxLoopLoad), load > maxLoopLoad)
		most := startsWithin(passed)
		m.add("R2 "+loop.name, fmt.Sprintf("starts in %v", passed.Round(time.Second)), fmt.Sprint(child.Starts()),
			fmt.Sprintf("%d, that of %d in %v", most, maxLoopStarts, client.DefaultWindow), child.Starts() > most)
	}
	return nil
}

// startsWithin returns how many starts there may be in a time. That is measured, so
// that a window may seem to have passed by a moment when it has just ended.
func startsWithin(passed time.Duration) int {
	windows := 1 + max(passed-time.Second, 0)/client.DefaultWindow
	return int(windows) * maxLoopStarts
}

// floodPairs is how often a quiet and a loud server are compared; the median counts.
const floodPairs = 5

// stderrFlood compares the times of calls with those of a server that is quiet.
func (m *measurement) stderrFlood(ctx context.Context) error {
	const flood = 100 << 20 // bytes a second
	loud := faulttest.FloodOn(faulttest.Stderr, strings.Repeat("all is well ", 20)+"\n", flood)
	var quietTimes, loudTimes []time.Duration
	for range floodPairs {
		took, err := m.served(ctx, faulttest.Script{faulttest.Serve()})
		if err != nil {
			return fmt.Errorf("R17, a quiet server: %w", err)
		}
		quietTimes = append(quietTimes, took)
		if took, err = m.served(ctx, faulttest.Script{loud, faulttest.Serve()}); err != nil {
			return fmt.Errorf("R17, a server that floods stderr: %w", err)
		}
		loudTimes = append(loudTimes, took)
	}
	slices.Sort(quietTimes)
	slices.Sort(loudTimes)
	base, flooded := quietTimes[floodPairs/2], loudTimes[floodPairs/2]
	ratio := float64(flooded) / float64(base)
	m.add("R17 100 MiB/s of stderr", "p99 of calls", fmt.Sprintf("%v, %v without: %.2f times", flooded, base, ratio),
		fmt.Sprintf("%.1f times, the aim is %.1f", maxFloodRatio, aimOfFlood), ratio > maxFloodRatio)
	return nil
}

// served returns the 99th percentile of the times of calls of a server.
func (m *measurement) served(ctx context.Context, life faulttest.Script) (_ time.Duration, err error) {
	c, _, err := m.connect(ctx, "served", life)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return m.timeCalls(ctx, c)
}

// timeCalls returns the 99th percentile of the times of calls.
func (m *measurement) timeCalls(ctx context.Context, c *client.Client) (time.Duration, error) {
	times := make([]time.Duration, m.extent.Calls)
	for i := range times {
		began := time.Now()
		id := fmt.Sprint(i)
		result, err := c.CallTool(ctx, "work", faulttest.Order{ID: id}, nil)
		if err != nil {
			return 0, err
		}
		if got := textOf(result); got != id {
			return 0, fmt.Errorf("the call %s has the result %q", id, got)
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[len(times)*99/100].Round(time.Microsecond), nil
}

// closing measures how long it takes to close a client whose server takes nothing
// and will not end.
func (m *measurement) closing(ctx context.Context) error {
	c, child, err := m.connect(ctx, "deaf", faulttest.Script{faulttest.IgnoreSignals(), faulttest.Handshake(), faulttest.Hang()})
	if err != nil {
		return fmt.Errorf("R18: %w", err)
	}
	const calls = 300 // of 64 KiB: several times what all queues hold
	ends := make(chan error, calls)
	for range calls {
		go func() {
			_, err := c.CallTool(ctx, "work", map[string]string{"text": strings.Repeat("x", 64<<10)}, nil)
			ends <- err
		}()
	}
	began := time.Now()
	if err := c.Close(); err != nil {
		return fmt.Errorf("R18: %w", err)
	}
	took := time.Since(began)
	for range calls {
		if err := <-ends; err == nil {
			return errors.New("R18: a call succeeded whose server does not read")
		}
	}
	if left := faulttest.Processes(child.Dir); len(left) > 0 {
		return fmt.Errorf("R18: processes %v are left", left)
	}
	m.add("R18 300 calls of 64 KiB unread", "Close", took.Round(time.Millisecond).String(), maxClose.String(), took > maxClose)
	return nil
}
