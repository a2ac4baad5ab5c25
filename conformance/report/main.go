// Report sums up what the official conformance suite has found: a line for each
// set of scenarios, what went wrong, and a total. It fails on a scenario that
// failed, warned or did not run although the baseline does not list it, and on
// one that passed although it does.
//
//	report -baseline FILE NAME=DIR[,REQUIRED] ...
//
// Each DIR holds the results of one run. REQUIRED is a file with the scenarios
// that must be among them, one in a line behind "- ".
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	baseline := flag.String("baseline", "", "`file` of the scenarios that are known not to pass")
	flag.Parse()
	ok, err := report(os.Stdout, *baseline, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance: error:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// report writes the report of some sets and returns whether all is as it should
// be.
func report(w io.Writer, baselineFile string, args []string) (bool, error) {
	known, err := readBaseline(baselineFile)
	if err != nil {
		return false, err
	}
	var total tally
	listed := make(map[string]bool)
	for _, arg := range args {
		set, err := readSet(arg)
		if err != nil {
			return false, err
		}
		t := set.judge(w, known, listed)
		fmt.Fprintf(w, "conformance server %s: %d/%d required, %d/%d others, %d checks, %d known not to pass\n",
			set.name, t.required.passed, t.required.run, t.others.passed, t.others.run, t.checks, t.known)
		total.add(t)
	}
	for scenario := range known {
		if !listed[scenario] {
			fmt.Fprintf(w, "  %s: is in the baseline, and no set has run it\n", scenario)
			total.wrong++
		}
	}
	all := count{total.required.passed + total.others.passed, total.required.run + total.others.run}
	fmt.Fprintf(w, "conformance server: %d/%d\n", all.passed, all.run)
	return total.wrong == 0 && all.passed == all.run && all.run > 0, nil
}

// readBaseline returns the scenarios that are known not to pass, with the reason
// for each: lines of "scenario: reason".
func readBaseline(file string) (map[string]string, error) {
	known := make(map[string]string)
	if file == "" {
		return known, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		scenario, reason, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, fmt.Errorf("%s: no reason in the line %q", file, line)
		}
		known[scenario] = reason
	}
	return known, nil
}
