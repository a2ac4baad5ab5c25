package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// An expectation is a line of the expectations file: checks that are known to
// fail, and why.
type expectation struct {
	line    int
	fields  [4][]string // servers, forms, clients, checks
	reason  string
	flaky   bool // it may pass as well
	through bool // it passes without mcpsplice

	matched int // checks seen that it names
	worse   int // of them those that pass without mcpsplice
}

// expectationsIn reads a file of expectations.
func expectationsIn(name string) ([]*expectation, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := readExpectations(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// readExpectations reads lines of the form
//
//	SERVERS/FORMS/CLIENTS/CHECKS  reason
//
// where each field is a list of shell patterns separated by commas. A question
// mark before it says that the checks fail only now and then, and an exclamation
// mark after that that they pass without mcpsplice.
func readExpectations(r io.Reader) ([]*expectation, error) {
	var all []*expectation
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		text, flaky := strings.CutPrefix(text, "?")
		text, through := strings.CutPrefix(text, "!")
		pattern, reason, _ := strings.Cut(text, " ")
		reason = strings.TrimSpace(reason)
		fields := strings.Split(pattern, "/")
		if len(fields) != 4 || reason == "" {
			return nil, fmt.Errorf("line %d: want SERVERS/FORMS/CLIENTS/CHECKS and a reason", n)
		}
		e := &expectation{line: n, reason: reason, flaky: flaky, through: through}
		for i, field := range fields {
			e.fields[i] = strings.Split(field, ",")
			for _, p := range e.fields[i] {
				if _, err := path.Match(p, ""); err != nil {
					return nil, fmt.Errorf("line %d: %q: %w", n, p, err)
				}
			}
		}
		all = append(all, e)
	}
	return all, lines.Err()
}

// String gives the line without its reason and exclamation mark, with spaces between
// the fields, so that nobody takes it for a path.
func (e *expectation) String() string {
	var fields []string
	for _, field := range e.fields {
		fields = append(fields, strings.Join(field, ","))
	}
	text := strings.Join(fields, " ")
	if e.flaky {
		return "?" + text
	}
	return text
}

// covers tells whether a check of a row is expected to fail. The pattern * does
// not cover teardown: nothing left behind is never given up by accident.
func (e *expectation) covers(r row, check string) bool {
	for i, value := range []string{r.server.name, r.form, r.client.name, check} {
		if !slices.ContainsFunc(e.fields[i], func(pattern string) bool {
			if pattern == "*" && value == "teardown" {
				return false
			}
			ok, _ := path.Match(pattern, value)
			return ok
		}) {
			return false
		}
	}
	return true
}

func find(all []*expectation, r row, check string) *expectation {
	for _, e := range all {
		if e.covers(r, check) {
			e.matched++
			return e
		}
	}
	return nil
}
