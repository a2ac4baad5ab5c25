package main

import (
	"fmt"
	"slices"
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
	row      row
	check    check
	verdict  verdict
	why      string
	expected *expectation // nil for none
}

// strange reports whether a control of others, with mcpsplice at neither end, has failed
// in a way that no expectation names. What they do to each other on a busy machine is not
// what a run is about, unless they do it again on a quiet one.
func strange(r row, checks []check, expectations []*expectation) bool {
	if !r.direct() || r.server.ours || r.client.family == spliceFamily {
		return false
	}
	return slices.ContainsFunc(checks, func(c check) bool {
		named := slices.ContainsFunc(expectations, func(e *expectation) bool { return e.covers(r, c.Name) })
		return !c.OK && !named
	})
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
	o := outcome{row: r, check: c, verdict: passed, expected: find(expectations, r, c.Name)}
	controls := controlsOf(done, r, c.Name)
	directFails := slices.ContainsFunc(controls, func(c check) bool { return !c.OK })
	switch {
	case !c.OK && o.expected == nil:
		o.verdict, o.why = failed, c.Detail
		if slices.ContainsFunc(controls, func(c check) bool { return !c.OK && !follows(c) }) {
			o.why += " (without the bridge it fails too, but this row has no expectation)"
		}
	case !c.OK:
		o.judgeKnown(directFails)
	case o.expected != nil && !o.expected.flaky:
		o.verdict = failed
		o.why = fmt.Sprintf("passes, but line %d of the expectations file says that it fails", o.expected.line)
	case directFails:
		o.verdict = bridgeOnly
	}
	if o.verdict == passed && c.Same != "" {
		if from, want := sameOf(done, r, c.Name); want != "" && want != c.Same {
			o.verdict, o.why = failed, fmt.Sprintf("not the same as in %s: %s, want %s", from, c.Same, want)
		}
	}
	return o
}

// judgeKnown judges a check that fails as expected. What works without the bridge
// and not with it has to be expected as that.
func (o *outcome) judgeKnown(directFails bool) {
	o.verdict, o.why = known, o.expected.reason
	switch {
	case directFails, o.row.direct() && !o.row.server.ours:
		o.verdict = directToo
	case o.row.direct(), o.flakyDirectly():
	case !o.expected.through:
		o.verdict = failed
		o.why = fmt.Sprintf("passes without the bridge, but line %d of the expectations file has no exclamation mark: %s",
			o.expected.line, o.check.Detail)
	default:
		o.expected.worse++
	}
}

// flakyDirectly tells whether a check fails now and then without the bridge too.
func (o *outcome) flakyDirectly() bool {
	return o.expected.flaky && slices.ContainsFunc(o.row.sides(), func(form string) bool {
		return o.expected.covers(row{o.row.server, form, o.row.client}, o.check.Name)
	})
}

// controlsOf gives the outcomes of a check in the direct rows of the same pair that
// a row is made of.
func controlsOf(done map[string][]check, r row, name string) []check {
	var found []check
	for _, form := range r.sides() {
		found = append(found, outcomesOf(done, row{r.server, form, r.client}, name)...)
	}
	return found
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
		for _, from := range directRows(row{r.server, r.form, c}) {
			for _, control := range outcomesOf(done, from, name) {
				if control.OK && control.Same != "" {
					return from, control.Same
				}
			}
		}
	}
	return row{}, ""
}

// directRows gives the direct rows of a row's pair that say what it has to say.
func directRows(r row) []row {
	all := []row{{r.server, directStdio, r.client}, {r.server, directHTTP, r.client}}
	if r.clientOverSSE() {
		all = append(all, row{r.server, directSSE, r.client})
	}
	return all
}

// stale lists what the expectations file says and a whole run does not show.
func stale(expectations []*expectation) []string {
	var all []string
	for _, e := range expectations {
		switch {
		case e.matched == 0:
			all = append(all, fmt.Sprintf("line %d of the expectations file names no check of the table", e.line))
		case e.through && e.worse == 0 && !e.flaky:
			all = append(all, fmt.Sprintf("line %d of the expectations file has an exclamation mark, but what it names fails without the bridge too",
				e.line))
		}
	}
	return all
}
