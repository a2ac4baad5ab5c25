package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
)

// render writes the results as Markdown.
func render(r *results) []byte {
	var b bytes.Buffer
	m := r.Machine
	fmt.Fprintf(&b, "# Benchmarks\n\n%s, %d CPUs (%s), %s, %s. Load average before the run: %s.\n",
		m.System, m.CPUs, m.Processor, m.Go, m.Date, cmp.Or(m.Load, "unknown"))
	fmt.Fprintf(&b, "%d repetitions, %s a cell, %s in all. Medians; a ratio is the median of the\n"+
		"repetitions' ratios, with the least and the greatest.\n", r.Reps, r.CellTime, r.Took)
	renderTargets(&b, r)
	for _, t := range []transport{http, stdio} {
		renderLoads(&b, r, t)
	}
	for _, t := range []transport{http, stdio} {
		renderTyped(&b, r, t)
	}
	renderBridges(&b, r)
	renderListen(&b, r)
	renderClients(&b, r)
	renderHeaps(&b, r)
	if len(r.Failures) > 0 {
		b.WriteString("\n## Not measured\n\n")
		for _, f := range r.Failures {
			fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(f, "\n", " "))
		}
	}
	return b.Bytes()
}

func renderTargets(b *bytes.Buffer, r *results) {
	b.WriteString("\n## Targets\n\nRatios are to `floor`, a bridge's to `floor-bridge`; those of typed tools, which\ncheck their arguments, and of clients, say to what.\n\n")
	row(b, "target", "revision", "limit", "figure", "verdict")
	rule(b, "lllrl")
	for _, t := range targets() {
		sign := "≤ "
		if t.atLeast {
			sign = "≥ "
		}
		for _, rev := range r.revisions() {
			s := t.measure(r, rev)
			if s == inapplicable {
				continue
			}
			verdict := "missed"
			switch {
			case s.N == 0:
				verdict = "not measured"
			case t.reached(s):
				verdict = "reached"
			}
			row(b, t.name, string(rev), sign+t.unit(t.limit), between(s, t.unit), verdict)
		}
	}
}

func renderLoads(b *bytes.Buffer, r *results, t transport) {
	title := title(t)
	var group cell
	for _, c := range r.cells(t) {
		if c.Revision != group.Revision || c.Size != group.Size {
			group = c
			fmt.Fprintf(b, "\n## %s, %s, %s\n\n", title, c.Revision, size(c.Size))
			row(b, "in flight", "contestant", "calls/s", "× floor", "p50", "× floor", "p99",
				"CPU / 10,000", "× floor", "peak memory")
			rule(b, "rlrrrrrrrr")
		}
		for _, name := range names(r, c, notTyped) {
			row(b, strconv.Itoa(c.InFlight), name,
				median(r.spread(c, name, perSecond), count), between(r.ratio(c, name, perSecond), plain),
				median(r.spread(c, name, p50), latency), between(r.ratio(c, name, p50), plain),
				median(r.spread(c, name, p99), latency),
				median(r.spread(c, name, cpu), cpuSeconds), between(r.ratio(c, name, cpu), plain),
				median(r.spread(c, name, peak), mebibytes))
		}
	}
}

func title(t transport) string {
	if t == stdio {
		return "stdio"
	}
	return "Streamable HTTP"
}

// renderTyped writes the tables of tools that are functions of Go types.
func renderTyped(b *bytes.Buffer, r *results, t transport) {
	var group cell
	for _, c := range r.cells(t) {
		list := names(r, c, isTyped)
		if len(list) < 2 {
			continue
		}
		if c.Revision != group.Revision || c.Size != group.Size {
			group = c
			fmt.Fprintf(b, "\n## Typed tools, %s, %s, %s\n\n", title(t), c.Revision, size(c.Size))
			row(b, "in flight", "contestant", "calls/s", "× best peer", "× best unchecked", "p50", "× floor-typed", "p99",
				"CPU / 10,000", "× floor-typed", "peak memory")
			rule(b, "rlrrrrrrrrr")
		}
		for _, name := range list {
			row(b, strconv.Itoa(c.InFlight), name,
				median(r.spread(c, name, perSecond), count),
				between(r.toPeer(c, name, false), plain), between(r.toPeer(c, name, true), plain),
				median(r.spread(c, name, p50), latency), between(r.toTyped(c, name, p50), plain),
				median(r.spread(c, name, p99), latency),
				median(r.spread(c, name, cpu), cpuSeconds), between(r.toTyped(c, name, cpu), plain),
				median(r.spread(c, name, peak), mebibytes))
		}
	}
}

func isTyped(c *contest.Contestant) bool  { return c.Typed || c.Name == contest.FloorTyped }
func notTyped(c *contest.Contestant) bool { return !c.TypedOnly() }
func isBridge(c *contest.Contestant) bool { return c.Bridge }

// names returns those of the contestants measured in a cell that are wanted, in
// the order of [contest.All].
func names(r *results, c cell, wanted func(*contest.Contestant) bool) []string {
	var list []string
	for _, k := range contest.All() {
		if wanted(&k) && transportOf(&k) == c.Transport && r.spread(c, k.Name, perSecond).N > 0 {
			list = append(list, k.Name)
		}
	}
	return list
}

func renderBridges(b *bytes.Buffer, r *results) {
	for _, rev := range r.revisions() {
		var list []string
		cells := bridgeCells(rev)
		for _, c := range cells {
			for _, n := range names(r, c, isBridge) {
				if !slices.Contains(list, n) {
					list = append(list, n)
				}
			}
		}
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n## Bridges from HTTP to stdio, %s\n\n"+
			"The same `floor` behind each; `direct` is that server without a bridge. CPU and\n"+
			"memory are the bridge's alone. Ratios are to `floor-bridge`.\n\n", rev)
		row(b, "bridge", "p50 100 B", "ratio", "p50 64 KiB", "ratio", "calls/s, 16", "ratio",
			"calls/s, 64", "ratio", "CPU / 10,000, 16", "start to list", "memory then")
		rule(b, "lrrrrrrrrrrr")
		for _, n := range list {
			took, resident := r.starts(rev, n)
			row(b, n,
				median(r.spread(cells[0], n, p50), latency), between(r.ratio(cells[0], n, p50), plain),
				median(r.spread(cells[1], n, p50), latency), between(r.ratio(cells[1], n, p50), plain),
				median(r.spread(cells[2], n, perSecond), count), between(r.ratio(cells[2], n, perSecond), plain),
				median(r.spread(cells[3], n, perSecond), count), between(r.ratio(cells[3], n, perSecond), plain),
				median(r.spread(cells[2], n, cpu), cpuSeconds),
				between(took, seconds), median(resident, mebibytes))
		}
	}
}

func renderHeaps(b *bytes.Buffer, r *results) {
	if len(r.Heaps) == 0 {
		return
	}
	b.WriteString("\n## Heap per call\n\nOne call at a time on one connection; deterministic to a percent or so.\n\n")
	row(b, "transport", "revision", "payload", "contestant", "bytes", "objects", "GCs / 1,000")
	rule(b, "lllrrrr")
	for _, h := range r.Heaps {
		row(b, string(h.Transport), string(h.Revision), size(h.Size), h.Contestant,
			kilobytes(h.Bytes), count(h.Objects), fmt.Sprintf("%.1f", h.GCs))
	}
}

func row(b *bytes.Buffer, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// rule ends a table's head; columns has an l or an r for each column.
func rule(b *bytes.Buffer, columns string) {
	for _, c := range columns {
		if c == 'r' {
			b.WriteString("|--:")
		} else {
			b.WriteString("|---")
		}
	}
	b.WriteString("|\n")
}

const unknown = "–"

func median(s spread, u unit) string {
	if s.N == 0 {
		return unknown
	}
	return u(s.Median)
}

// between writes a median with the least and the greatest figure.
func between(s spread, u unit) string {
	switch s.N {
	case 0:
		return unknown
	case 1:
		return u(s.Median)
	}
	return fmt.Sprintf("%s [%s–%s]", u(s.Median), u(s.Min), u(s.Max))
}

// plain writes two or three significant digits.
func plain(v float64) string {
	switch {
	case v < 0.1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func times(v float64) string      { return plain(v) + "×" }
func cpuSeconds(v float64) string { return plain(v) + " s" }
func seconds(v float64) string    { return fmt.Sprintf("%.1f ms", v*1000) }
func mebibytes(v float64) string  { return fmt.Sprintf("%.1f MiB", v/(1<<20)) }
func kilobytes(v float64) string  { return fmt.Sprintf("%.1f KB", v/1000) }

func latency(us float64) string {
	switch {
	case us < 100:
		return fmt.Sprintf("%.1f µs", us)
	case us < 10_000:
		return count(us) + " µs"
	}
	return fmt.Sprintf("%.1f ms", us/1000)
}

// count writes a whole number with commas between thousands.
func count(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func size(n int) string {
	const kib, mib = 1 << 10, 1 << 20
	switch {
	case n >= mib && n%mib == 0:
		return fmt.Sprintf("%d MiB", n/mib)
	case n >= kib && n%kib == 0:
		return fmt.Sprintf("%d KiB", n/kib)
	}
	return fmt.Sprintf("%d B", n)
}
