package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// report prints the table, what failed, and the last line. It tells whether all is well.
// Problems are what is wrong with more than one check.
func report(w io.Writer, all []outcome, problems []string, logs string) bool {
	count := map[verdict]int{}
	for _, o := range all {
		count[o.verdict]++
	}
	printTable(w, all)
	for _, v := range []verdict{directToo, known} {
		printReasons(w, all, v)
	}
	printFailures(w, all)
	for _, problem := range problems {
		fmt.Fprintf(w, "FAIL %s\n", problem)
	}
	if count[failed] > 0 {
		fmt.Fprintf(w, "logs: %s\n", logs)
	}
	fmt.Fprintf(w, "%d checks work only with the bridge; %d fail without it too, and %d only with it or at our server, as documented\n",
		count[bridgeOnly], count[directToo], count[known])
	fmt.Fprintf(w, "interop: %d passed, %d failed\n", count[passed]+count[bridgeOnly], count[failed]+len(problems))
	return count[failed]+len(problems) == 0
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
