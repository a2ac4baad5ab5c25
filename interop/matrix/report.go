package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report prints the table, what failed, what the protocol cannot carry, and how
// many checks there were.
func report(w io.Writer, all []outcome, took time.Duration) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range table(all) {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	tw.Flush()
	fmt.Fprintln(w, "row: client of the bridge; column: server behind it; cell: checks passed, nN named, !N failed")
	for _, n := range namedOf(all) {
		fmt.Fprintf(w, "named (%d): %s: %s\n", n.cells, strings.Join(n.checks, ", "), n.reason)
	}
	for _, f := range failuresOf(all) {
		fmt.Fprintf(w, "FAIL %s: %s\n    in %s\n", f.check, f.why, strings.Join(f.cells, " "))
	}
	t := tallyOf(all)
	fmt.Fprintf(w, "%d passed, %d named, %d failed in %.1f s\n", t.passed, t.named, t.failed, took.Seconds())
	fmt.Fprintf(w, "matrix: %d/%d\n", t.passed+t.named, t.total())
}

// A failure is a check that failed for one reason in some cells.
type failure struct {
	check, why string
	cells      []string
}

func failuresOf(all []outcome) []*failure {
	var list []*failure
	for _, o := range all {
		if o.Failed == "" {
			continue
		}
		i := slices.IndexFunc(list, func(f *failure) bool { return f.check == o.Check && f.why == o.Failed })
		if i < 0 {
			i = len(list)
			list = append(list, &failure{check: o.Check, why: o.Failed})
		}
		list[i].cells = append(list[i].cells, o.Client+"/"+o.Server)
	}
	return list
}

// table returns the rows of the table, with their heads. Cells that did not run
// are "-".
func table(all []outcome) [][]string {
	cells := map[[2]string]*tally{}
	for _, o := range all {
		at := [2]string{o.Client, o.Server}
		if cells[at] == nil {
			cells[at] = new(tally)
		}
		cells[at].add(o)
	}
	head := []string{""}
	for _, server := range sides {
		head = append(head, server.name)
	}
	rows := [][]string{head}
	for _, client := range sides {
		row := []string{client.name}
		for _, server := range sides {
			text := "-"
			if t := cells[[2]string{client.name, server.name}]; t != nil {
				text = t.String()
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return rows
}

// A named is something that the protocol of some cells lacks.
type named struct {
	reason string
	checks []string
	cells  int // outcomes
}

// namedOf returns what is named, in the order in which it came up.
func namedOf(all []outcome) []named {
	var list []named
	for _, o := range all {
		if o.Named == "" || o.Failed != "" {
			continue
		}
		i := slices.IndexFunc(list, func(n named) bool { return n.reason == o.Named })
		if i < 0 {
			i = len(list)
			list = append(list, named{reason: o.Named})
		}
		list[i].cells++
		if !slices.Contains(list[i].checks, o.Check) {
			list[i].checks = append(list[i].checks, o.Check)
		}
	}
	return list
}
