// Report sums up what the official conformance suite has found of one side, our
// client or our server: a line for each set of scenarios, what went wrong, and a
// total. It fails on a scenario that failed, warned or did not run although the
// baseline does not list it, on one that passed although it does, and on one in
// which our client has complained.
//
//	report -side client|server -baseline FILE NAME=DIR[,REQUIRED] ...
//
// Each DIR holds the results of one run. REQUIRED is a file with the scenarios
// that must be among them, as the suite lists them. Scenarios of the baseline
// count as known, and neither as required nor as others.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	sideName := flag.String("side", "server", "`side` that was under test: client or server")
	baseline := flag.String("baseline", "", "`file` of the scenarios that are known not to pass")
	flag.Parse()
	ok, err := report(os.Stdout, *sideName, *baseline, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance: error:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// report writes the report of some sets of a side and returns whether all is as it
// should be.
func report(w io.Writer, sideName, baselineFile string, args []string) (bool, error) {
	tested, ok := sides[sideName]
	if !ok {
		return false, fmt.Errorf("%q is no side", sideName)
	}
	known, err := readBaseline(baselineFile)
	if err != nil {
		return false, err
	}
	var total tally
	listed := make(map[string]bool)
	for _, arg := range args {
		set, err := readSet(tested, arg)
		if err != nil {
			return false, err
		}
		t := set.judge(w, known, listed)
		fmt.Fprintf(w, "conformance %s %s: %d/%d required, %d/%d others, %d checks, %d known not to pass\n",
			sideName, set.name, t.required.passed, t.required.run, t.others.passed, t.others.run, t.checks, t.known)
		total.add(t)
	}
	for scenario := range known {
		if !listed[scenario] {
			fmt.Fprintf(w, "  %s: is in the baseline, and no set has run it\n", scenario)
			total.wrong++
		}
	}
	all := count{total.required.passed + total.others.passed, total.required.run + total.others.run}
	fmt.Fprintf(w, "conformance %s: %d/%d\n", sideName, all.passed, all.run)
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
