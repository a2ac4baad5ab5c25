package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/memstats"
	"github.com/mcpsplice/mcpsplice/bench/internal/proc"
	"github.com/mcpsplice/mcpsplice/bench/internal/raw"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A meter takes the figures. Each contestant runs alone, in a new process for
// each cell and repetition, so that none inherits heap or peak memory.
type meter struct {
	// Set at construction.
	options     *options
	paths       contest.Paths
	home        string
	contestants []contest.Contestant
	clients     []contest.Client
	progress    io.Writer

	results results
}

// A measurement that takes this much longer than it should is ended.
const patience = time.Minute

// measure takes all figures: the repetitions outermost, in each every cell, in
// each the contestants in turn.
func (m *meter) measure(ctx context.Context) error {
	began := time.Now()
	for rep := range m.options.reps {
		for _, t := range m.options.transports.values {
			for _, r := range m.options.revisions.values {
				fmt.Fprintf(m.progress, "%6.0f s  repetition %d of %d, %s, %s\n",
					time.Since(began).Seconds(), rep+1, m.options.reps, t, r)
				m.measureAll(ctx, rep, t, r)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
		}
	}
	fmt.Fprintf(m.progress, "%6.0f s  heap\n", time.Since(began).Seconds())
	m.measureHeaps(ctx)
	fmt.Fprintf(m.progress, "%6.0f s  done\n", time.Since(began).Seconds())
	return context.Cause(ctx)
}

func (m *meter) measureAll(ctx context.Context, rep int, t transport, r wire.Revision) {
	if t == client {
		m.measureClients(ctx, rep, r)
		return
	}
	contestants := m.inTurn(rep, t, r)
	if t == bridge {
		for _, c := range contestants {
			m.note(c, t, r, m.measureStart(ctx, rep, r, c))
		}
	}
	if t == listen {
		for _, c := range contestants {
			m.note(c, t, r, m.measureListen(ctx, rep, r, c))
		}
		return
	}
	for _, cl := range m.cells(t, r) {
		for _, c := range contestants {
			if m.takesPart(c, cl) {
				m.note(c, t, r, m.measureCell(ctx, rep, cl, c))
			}
		}
	}
}

// inTurn returns the contestants of a transport that speak a revision. Another
// one begins in each repetition.
func (m *meter) inTurn(rep int, t transport, r wire.Revision) []*contest.Contestant {
	var list []*contest.Contestant
	for i := range m.contestants {
		c := &m.contestants[i]
		if transportOf(c) == t && c.Speaks(r) && (m.options.unchecked || !c.Unchecked) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil
	}
	first := rep % len(list)
	return append(list[first:len(list):len(list)], list[:first]...)
}

func transportOf(c *contest.Contestant) transport {
	switch {
	case c.Bridge:
		return bridge
	case c.Listen:
		return listen
	}
	return transport(c.Transport)
}

// cells returns the cells of a transport and a revision.
func (m *meter) cells(t transport, r wire.Revision) []cell {
	if t == bridge {
		return bridgeCells(r)
	}
	var list []cell
	for _, size := range m.options.sizes.values {
		for _, n := range m.options.inFlight.values {
			if size*n <= mostEver {
				list = append(list, cell{t, r, size, n})
			}
		}
	}
	return list
}

// takesPart reports whether a contestant is measured in a cell of its transport.
func (m *meter) takesPart(c *contest.Contestant, cl cell) bool {
	return cl.Size*cl.InFlight <= m.options.mostInFlight || c.Typed || c.Name == contest.FloorTyped
}

func bridgeCells(r wire.Revision) []cell {
	return []cell{{bridge, r, small, 1}, {bridge, r, medium, 1}, {bridge, r, small, 16}, {bridge, r, small, 64}}
}

// note keeps a failure for the report. One contestant's failure does not end
// the run.
func (m *meter) note(c *contest.Contestant, t transport, r wire.Revision, err error) {
	m.noteText(t, r, c.Name, err)
}

func (m *meter) noteText(t transport, r wire.Revision, name string, err error) {
	if err == nil {
		return
	}
	text := fmt.Sprintf("%s, %s, %s: %v", t, r, name, err)
	m.results.Failures = append(m.results.Failures, text)
	fmt.Fprintln(m.progress, "         failed:", text)
}

func (m *meter) start(ctx context.Context, c *contest.Contestant, r wire.Revision, mem bool) (*contest.Process, error) {
	return c.Start(ctx, m.paths, contest.StartOptions{Revision: r, Home: m.home, MemStats: mem})
}

func (m *meter) measureStart(ctx context.Context, rep int, r wire.Revision, c *contest.Contestant) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	p, err := m.start(ctx, c, r, false)
	if err != nil {
		return err
	}
	took := time.Since(began)
	defer p.Stop()
	mem, _ := proc.MemoryOf(p.PID()) // unknown stays zero
	m.results.Starts = append(m.results.Starts, start{
		Rep: rep, Revision: r, Contestant: c.Name, Seconds: took.Seconds(), Resident: float64(mem.Resident),
	})
	return nil
}

func (m *meter) measureCell(ctx context.Context, rep int, cl cell, c *contest.Contestant) error {
	ctx, cancel := context.WithTimeout(ctx, patience+m.options.time)
	defer cancel()
	p, err := m.start(ctx, c, cl.Revision, false)
	if err != nil {
		return err
	}
	defer p.Stop()

	l := raw.Load{Text: wire.Text(cl.Size), InFlight: cl.InFlight, Time: m.options.time}
	if _, err := p.Client.Run(warmUp(l)); err != nil {
		return fmt.Errorf("%d B, %d in flight, warming up: %w%s", cl.Size, cl.InFlight, err, p.Stderr())
	}
	before, cpuErr := proc.CPU(p.PID())
	s, err := p.Client.Run(l)
	if err != nil {
		return fmt.Errorf("%d B, %d in flight: %w%s", cl.Size, cl.InFlight, err, p.Stderr())
	}
	f := load{
		cell: cl, Rep: rep, Contestant: c.Name, Calls: s.Calls,
		PerSecond: float64(s.Calls) / s.Elapsed.Seconds(),
		P50:       microseconds(s.Quantile(0.50)),
		P99:       microseconds(s.Quantile(0.99)),
	}
	if after, err := proc.CPU(p.PID()); err == nil && cpuErr == nil {
		f.CPU = (after - before).Seconds() / float64(s.Calls) * 10_000
	}
	if mem, err := proc.MemoryOf(p.PID()); err == nil {
		f.Peak = float64(mem.Peak)
	}
	m.results.Loads = append(m.results.Loads, f)
	return nil
}

// warmUp returns the load that comes before l: connections, code paths, heap.
// Large calls need no crowd for it.
func warmUp(l raw.Load) raw.Load {
	const share = 4
	l.Time /= share
	if len(l.Text) >= medium {
		l.InFlight = 1
	}
	return l
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// measureHeaps takes the heap figures, once, as they hardly vary.
func (m *meter) measureHeaps(ctx context.Context) {
	for _, t := range m.options.transports.values {
		if t == listen || t == client {
			continue
		}
		for _, r := range m.options.revisions.values {
			for _, size := range m.options.heapSizes {
				for _, c := range m.inTurn(0, t, r) {
					if c.MemStats {
						m.note(c, t, r, m.measureHeap(ctx, t, r, size, c))
					}
				}
			}
		}
	}
}

func (m *meter) measureHeap(ctx context.Context, t transport, r wire.Revision, size int, c *contest.Contestant) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := m.start(ctx, c, r, true)
	if err != nil {
		return err
	}
	defer p.Stop()
	reader, err := p.MemStats(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()

	l := raw.Load{Text: wire.Text(size), InFlight: 1, Calls: heapCalls(size)}
	warm := l
	warm.Calls = 1 + l.Calls/10
	if _, err := p.Client.Run(warm); err != nil {
		return fmt.Errorf("counting heap, warming up: %w", err)
	}
	used, err := countHeap(reader, func() error { _, err := p.Client.Run(l); return err })
	if err != nil {
		return fmt.Errorf("counting heap: %w", err)
	}
	calls := float64(l.Calls)
	m.results.Heaps = append(m.results.Heaps, heap{
		Transport: t, Revision: r, Size: size, Contestant: c.Name,
		Bytes:   float64(used.Bytes) / calls,
		Objects: float64(used.Objects) / calls,
		GCs:     float64(used.GCs) / calls * 1000,
	})
	return nil
}

func countHeap(r *memstats.Reader, load func() error) (memstats.Counters, error) {
	before, err := r.Read()
	if err != nil {
		return before, err
	}
	if err := load(); err != nil {
		return before, err
	}
	after, err := r.Read()
	return after.Sub(before), err
}

// heapCalls is how many calls are counted: many small ones, few large ones.
func heapCalls(size int) int {
	const (
		most, least = 2000, 10
		bytes       = 6 << 20
	)
	return max(least, min(most, bytes/size))
}

// A machine is what the figures depend on.
type machine struct {
	System    string `json:"system"`
	Processor string `json:"processor"`
	CPUs      int    `json:"cpus"`
	Go        string `json:"go"`
	// Load is the load average before the run: above 0.1 or so, absolute
	// figures are noisy.
	Load string `json:"load"`
	Date string `json:"date"`
}

func machineNow() machine {
	m := machine{
		System: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs:   runtime.NumCPU(),
		Go:     runtime.Version(),
		Date:   time.Now().Format(time.DateOnly),
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan() && m.Processor == ""; {
			if name, value, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(name) == "model name" {
				m.Processor = strings.TrimSpace(value)
			}
		}
	}
	return m
}
