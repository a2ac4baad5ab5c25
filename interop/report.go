package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// A verdict is what a check comes to, with the control and the expectations in view.
type verdict string

const (
	passed     verdict = "passed"
	failed     verdict = "failed"
	directToo  verdict = "direct also fails" // as the expectations file says, and no fault of the bridge
	known      verdict = "known"             // as the expectations file says, and only through the bridge or at our server
	bridgeOnly verdict = "bridge only"       // passed, and it does not without the bridge
)

// An outcome is a judged check.
type outcome struct {
	row     row
	check   check
	verdict verdict
	why     string
}

// judge compares what came of each row with its controls and with the
// expectations.
func judge(done map[string][]check, ran []row, expectations []*expectation) []outcome {
	var all []outcome
	for _, r := range ran {
		for _, c := range done[r.String()] {
			all = append(all, judgeCheck(done, r, c, expectations))
		}
	}
	return all
}

func judgeCheck(done map[string][]check, r row, c check, expectations []*expectation) outcome {
	o := outcome{row: r, check: c, verdict: passed}
	controls := controlsOf(done, r, c.Name)
	directFails := slices.ContainsFunc(controls, func(c check) bool { return !c.OK })
	alike := slices.ContainsFunc(controls, func(c check) bool { return !c.OK && !follows(c) })
	expected := find(expectations, r, c.Name)
	switch {
	case !c.OK && expected == nil:
		o.verdict, o.why = failed, c.Detail
		if alike {
			o.why += " (without the bridge it fails too, but this row has no expectation)"
		}
	case !c.OK:
		o.verdict, o.why = known, expected.reason
		if directFails || r.direct() && !r.server.ours {
			o.verdict = directToo
		}
	case expected != nil && !expected.flaky:
		o.verdict = failed
		o.why = fmt.Sprintf("passes, but line %d of the expectations file says that it fails", expected.line)
	case !r.direct() && len(controls) > 0 && directFails:
		o.verdict = bridgeOnly
	}
	if o.verdict == passed && c.Same != "" {
		if from, want := sameOf(done, r, c.Name); want != "" && want != c.Same {
			o.verdict, o.why = failed, fmt.Sprintf("not the same as in %s: %s, want %s", from, c.Same, want)
		}
	}
	return o
}

// controlsOf gives the outcomes of a check in the direct rows of the same pair.
func controlsOf(done map[string][]check, r row, name string) []check {
	var found []check
	if r.direct() {
		return nil
	}
	for _, control := range controlRows(r) {
		found = append(found, outcomesOf(done, control, name)...)
	}
	return found
}

// controlRows gives the direct rows that a row is compared with.
func controlRows(r row) []row {
	all := []row{{r.server, directStdio, r.client}, {r.server, directHTTP, r.client}}
	if r.clientOverSSE() {
		all = append(all, row{r.server, directSSE, r.client})
	}
	return all
}

func outcomesOf(done map[string][]check, r row, name string) []check {
	return slices.DeleteFunc(slices.Clone(done[r.String()]), func(c check) bool { return c.Name != name })
}

// sameOf gives what a check yields without a bridge, and where: by the same
// client or, where that one does not work, by another one of its family. Our own
// server says the same on all transports and in both eras, so that its direct
// rows are compared with each other.
func sameOf(done map[string][]check, r row, name string) (from row, same string) {
	if r.direct() && !r.server.ours {
		return row{}, ""
	}
	var family []client
	for _, c := range clients {
		if c.family == r.client.family {
			family = append(family, c)
		}
	}
	if !r.direct() {
		family = append([]client{r.client}, family...)
	}
	for _, c := range family {
		for _, from := range controlRows(row{r.server, r.form, c}) {
			for _, control := range outcomesOf(done, from, name) {
				if control.OK && control.Same != "" {
					return from, control.Same
				}
			}
		}
	}
	return row{}, ""
}

// report prints the table, what failed, and the last line. It tells whether all is well.
func report(w io.Writer, all []outcome, unused []*expectation, logs string) bool {
	count := map[verdict]int{}
	for _, o := range all {
		count[o.verdict]++
	}
	printTable(w, all)
	for _, v := range []verdict{directToo, known} {
		printReasons(w, all, v)
	}
	printFailures(w, all)
	for _, e := range unused {
		fmt.Fprintf(w, "FAIL line %d of the expectations file names no check of the table\n", e.line)
	}
	if count[failed] > 0 {
		fmt.Fprintf(w, "logs: %s\n", logs)
	}
	fmt.Fprintf(w, "%d checks work only with the bridge; %d fail without it too, and %d only with it or at our server, as documented\n",
		count[bridgeOnly], count[directToo], count[known])
	fmt.Fprintf(w, "interop: %d passed, %d failed\n", count[passed]+count[bridgeOnly], count[failed]+len(unused))
	return count[failed]+len(unused) == 0
}

// follows tells whether a check failed only because a process did not start or
// a client did not connect.
func follows(c check) bool {
	return strings.HasPrefix(c.Detail, "not run: ") || strings.HasSuffix(c.Detail, "not connected")
}

// printFailures prints a line for each row and cause of failure.
func printFailures(w io.Writer, all []outcome) {
	type cause struct{ row, why string }
	var causes []cause
	names := map[cause][]string{}
	for _, o := range all {
		if o.verdict != failed {
			continue
		}
		c := cause{o.row.String(), o.why}
		if follows(o.check) && o.check.Name != "connect" {
			c.why = "not connected"
		}
		if names[c] == nil {
			causes = append(causes, c)
		}
		names[c] = append(names[c], o.check.Name)
	}
	for _, c := range causes {
		fmt.Fprintf(w, "FAIL %s/%s: %s\n", c.row, strings.Join(names[c], ","), c.why)
	}
}

// printTable prints a line for each server and form, a column for each client.
func printTable(w io.Writer, all []outcome) {
	cells := map[string]map[verdict]int{}
	var lines []string
	for _, o := range all {
		line := o.row.server.name + "\t" + o.row.form
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		cell := line + "\t" + o.row.client.name
		if cells[cell] == nil {
			cells[cell] = map[verdict]int{}
		}
		cells[cell][o.verdict]++
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "server\tform")
	for _, c := range clients {
		fmt.Fprintf(tw, "\t%s", c.name)
	}
	fmt.Fprintln(tw)
	for _, line := range lines {
		fmt.Fprint(tw, line)
		for _, c := range clients {
			fmt.Fprintf(tw, "\t%s", cellText(cells[line+"\t"+c.name]))
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
	fmt.Fprintln(w, "cell: checks passed, +N of them only with the bridge, dN direct also fails, kN known, !N failed")
}

func cellText(cell map[verdict]int) string {
	if cell == nil {
		return "-"
	}
	var b strings.Builder
	fmt.Fprint(&b, cell[passed]+cell[bridgeOnly])
	for _, mark := range []struct {
		sign string
		v    verdict
	}{{"+", bridgeOnly}, {" d", directToo}, {" k", known}, {" !", failed}} {
		if n := cell[mark.v]; n > 0 {
			fmt.Fprintf(&b, "%s%d", mark.sign, n)
		}
	}
	return b.String()
}

// printReasons lists the checks that fail as documented, a line for each reason.
func printReasons(w io.Writer, all []outcome, v verdict) {
	names := map[string][]string{}
	for _, o := range all {
		if o.verdict == v {
			names[o.why] = append(names[o.why], o.row.String()+"/"+o.check.Name)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(w, "%s (%d): %s\n", v, len(names[why]), why)
		for _, name := range names[why][:min(3, len(names[why]))] {
			fmt.Fprintf(w, "    %s\n", name)
		}
		if more := len(names[why]) - 3; more > 0 {
			fmt.Fprintf(w, "    … and %d more\n", more)
		}
	}
}
