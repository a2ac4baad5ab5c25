package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// The whole of it, small: every kind of figure is taken and lands in the
// report.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	o, err := parseOptions([]string{
		"-quick", "-reps", "2", "-time", "5ms", "-sizes", "100,65536", "-inflight", "2", "-revisions", "2026-07-28",
		"-only", "floor-typed", "-streams", "5", "-module", "../..", "-dir", dir, "-json", "all.json", "-md", "all.md",
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), o, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Targets", "not measured", "## Streamable HTTP, 2026-07-28, 64 KiB", "## stdio, 2026-07-28, 100 B",
		"| 2 | floor |", "| 2 | floor-typed |", "| floor-bridge |", "## Heap per call", "## Subscriptions over HTTP", "| floor-listen |",
		"## Clients of `floor`, HTTP, 2026-07-28, 64 KiB", "| 2 | raw |",
		"| 2 | raw-copied |", "| 2 | raw-typed |",
		"| CPU per call | × raw | × raw-typed | × net-http | p50 |", "| CPU per call | × raw | × raw-typed | p50 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the report", want)
		}
	}
	if strings.Contains(out.String(), "## Not measured") {
		t.Errorf("failures:\n%s", out.String())
	}
	md, err := os.ReadFile(filepath.Join(dir, "all.md"))
	if err != nil || !bytes.Equal(md, out.Bytes()) {
		t.Errorf("-md: %d bytes, %v; want the report", len(md), err)
	}
	var r results
	b, err := os.ReadFile(filepath.Join(dir, "all.json"))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	// Two repetitions of two contestants over two transports in two cells, of one
	// bridge in four, of three clients over two transports in two, and of two over one
	// each.
	if want := 2 * (2*2*2 + 4 + 8*2); err != nil || len(r.Loads) != want {
		t.Errorf("-json: %d loads, %v; want %d", len(r.Loads), err, want)
	}
	for _, l := range r.Loads {
		if l.Calls == 0 || l.PerSecond == 0 || l.P50 == 0 || l.P99 < l.P50 || l.CPU == 0 || l.Peak == 0 {
			t.Errorf("a figure is missing: %+v", l)
		}
	}
}

// A hundred clients share one child, and each gets its own answers.
func TestCrowd(t *testing.T) {
	o, err := parseOptions([]string{"crowd", "-calls", "10000", "-module", "../.."}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := crowded(t.Context(), o, &out, io.Discard); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"| shared | 100 | 10,000 |", "| per-client | 32 | 500 |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"-quick", "-reps", "7", "-revisions", "2025-11-25", "-transports", "bridge"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.reps != 7 || o.time != 150*time.Millisecond || !slices.Equal(o.inFlight.values, []int{1, 16}) {
		t.Errorf("-quick: %d repetitions, %v, %v in flight", o.reps, o.time, o.inFlight.values)
	}
	if o.revisions.String() != "2025-11-25" || o.transports.String() != "bridge" {
		t.Errorf("lists: %s, %s", &o.revisions, &o.transports)
	}
	for _, args := range []string{"-reps 0", "-sizes x", "-sizes 0", "-only (", "-transports tcp", "-revisions 1", "extra", "-streams 0", "-calls 0", "correlate -calls 0", "correlate extra", "crowd -clients 0"} {
		if _, err := parseOptions(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}

// The checks of replies are a command of their own, with the same flags.
func TestCorrelate(t *testing.T) {
	o, err := parseOptions([]string{"-module", "../..", "correlate", "-calls", "200", "-connections", "8", "-only", "^floor$"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	if err := correlate(t.Context(), o, &out, &progress); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| floor | 2025-11-25 | 200 | 0 | 0 |", "| floor | 2026-07-28 | 200 | 0 | 0 |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if want := "floor, 2026-07-28: 200 of 200 calls, 0 crossed\n"; !strings.HasSuffix(progress.String(), want) {
		t.Errorf("it says %q, not %q at the end", &progress, want)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want spread
	}{
		{nil, spread{}},
		{[]float64{3}, spread{3, 3, 3, 1}},
		{[]float64{3, 1, 2}, spread{2, 1, 3, 3}},
		{[]float64{4, 1, 2, 3}, spread{2.5, 1, 4, 4}},
	} {
		if got := spreadOf(c.in); got != c.want {
			t.Errorf("spreadOf(%v) = %+v, want %+v", c.in, got, c.want)
		}
	}
}

// A ratio is taken within each repetition, so that a slow spell of the machine
// slows both sides of it.
func TestRatioWithinRepetitions(t *testing.T) {
	c := cell{http, wire.Legacy, small, 16}
	r := &results{}
	for rep, speed := range []float64{1, 100, 10} {
		r.Loads = append(r.Loads,
			load{cell: c, Rep: rep, Contestant: contest.Floor, PerSecond: 1000 * speed},
			load{cell: c, Rep: rep, Contestant: splice, PerSecond: 700 * speed})
	}
	r.Loads = append(r.Loads, load{cell: c, Rep: 3, Contestant: splice, PerSecond: 1}) // no floor in this one
	if got, want := r.ratio(c, splice, perSecond), (spread{0.7, 0.7, 0.7, 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What a client costs beyond what its texts cost is told apart from what it costs
// beyond sending bytes.
func TestClientsAreComparedWithBothLimits(t *testing.T) {
	c := cell{clientStdio, wire.Legacy, small, 1}
	r := &results{}
	for rep, speed := range []float64{1, 10} {
		for name, cost := range map[string]float64{contest.RawClient: 1, contest.RawTyped: 2, contest.SpliceClient: 3} {
			r.Loads = append(r.Loads, load{cell: c, Rep: rep, Contestant: name, PerSecond: 1, CPU: cost * speed})
		}
	}
	var b bytes.Buffer
	renderTargets(&b, r)
	renderClients(&b, r)
	for _, want := range []string{
		"1 in flight: CPU to `raw` | 2025-11-25 | ≤ 2.00× | 3.00× [3.00×–3.00×] | missed |",
		"1 in flight: CPU to `raw-typed` | 2025-11-25 | ≤ 2.00× | 1.50× [1.50×–1.50×] | reached |",
		"| 3.00 [3.00–3.00] | 1.50 [1.50–1.50] |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}

func TestTargets(t *testing.T) {
	// A project that is exactly the floor, and has no heap figures.
	r := &results{}
	for _, tr := range []transport{http, stdio} {
		for _, size := range []int{small, medium, large} {
			for _, n := range []int{1, 16} {
				for _, name := range []string{contest.Floor, splice} {
					r.Loads = append(r.Loads, load{
						cell: cell{tr, wire.Legacy, size, n}, Contestant: name, PerSecond: 1, P50: 1, P99: 1, CPU: 1,
					})
				}
			}
		}
	}
	// A client that takes as much as the raw ones.
	for _, size := range []int{small, medium} {
		for _, n := range []int{1, 16} {
			for _, name := range []string{contest.RawClient, contest.RawTyped, contest.SpliceClient} {
				r.Loads = append(r.Loads, load{cell: cell{clientHTTP, wire.Legacy, size, n}, Contestant: name, PerSecond: 1, CPU: 1})
			}
		}
	}
	// And a bridge that starts too slowly.
	r.Starts = []start{{Revision: wire.Legacy, Contestant: spliceBridge, Seconds: 1}}
	got := make(map[string]int)
	var b bytes.Buffer
	renderTargets(&b, r)
	for line := range strings.Lines(b.String()) {
		for _, verdict := range []string{"reached", "missed", "not measured"} {
			if strings.HasSuffix(line, "| "+verdict+" |\n") {
				got[verdict]++
			}
		}
	}
	if got["reached"] != 16 || got["missed"] != 1 || got["not measured"] != 27 {
		t.Errorf("verdicts %v in\n%s", got, &b)
	}
}

func TestUnits(t *testing.T) {
	for want, got := range map[string]string{
		"1,234,567": count(1234567), "999": count(999), "12.3 µs": latency(12.3), "1,234 µs": latency(1234),
		"12.3 ms": latency(12345), "64 KiB": size(64 << 10), "1 MiB": size(1 << 20), "100 B": size(100),
		"0.012": plain(0.012), "1.50": plain(1.5), "42": plain(42),
		"2.00× [1.00×–3.00×]": between(spread{2, 1, 3, 3}, times), "–": between(spread{}, times),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
