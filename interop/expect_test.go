package main

import (
	"strings"
	"testing"
)

func rowNamed(t *testing.T, name string) row {
	t.Helper()
	for _, r := range rows() {
		if r.String() == name {
			return r
		}
	}
	t.Fatalf("no row %s", name)
	return row{}
}

func TestExpectationCovers(t *testing.T) {
	all, err := readExpectations(strings.NewReader(`
# a comment
everything,mcpgo/stdio,http/ts*/*  a reason with words
?!*/A/py/call,teardown  another
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].reason != "a reason with words" || all[0].line != 3 ||
		all[0].flaky || !all[1].flaky || all[0].through || !all[1].through {
		t.Fatalf("got %+v", all)
	}
	for _, tt := range []struct {
		row, check string
		want       int // line, 0 for none
	}{
		{"everything/stdio/ts1", "call", 3},
		{"everything/http/ts2-legacy", "list", 3},
		{"mcpgo/http/ts2", "list", 3},
		{"everything/stdio/ts1", "teardown", 0},
		{"everything/A/ts1", "call", 0},
		{"gosdk/stdio/ts1", "call", 0},
		{"gosdk/A/py", "call", 4},
		{"gosdk/A/py", "teardown", 4},
		{"gosdk/A/py-legacy", "call", 0},
	} {
		got := 0
		if e := find(all, rowNamed(t, tt.row), tt.check); e != nil {
			got = e.line
		}
		if got != tt.want {
			t.Errorf("%s/%s: line %d, want %d", tt.row, tt.check, got, tt.want)
		}
	}
}

func TestExpectationsRejected(t *testing.T) {
	for _, text := range []string{
		"a/b/c/d",           // no reason
		"a/b/c reason",      // a field short
		"a/b/c/d/e reason",  // a field too many
		"a/[/c/d no reason", // no pattern
	} {
		if _, err := readExpectations(strings.NewReader(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// Each profile has what its checks need, and each row has checks.
func TestProfiles(t *testing.T) {
	for _, r := range rows() {
		text, checks, err := r.profile("/tmp/x")
		if err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		if len(checks) < 5 || checks[0] != "connect" || strings.Contains(text, "$TMP") {
			t.Errorf("%s: checks %v", r, checks)
		}
	}
}

func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.String()] {
			t.Errorf("row %s twice", r)
		}
		seen[r.String()] = true
		if r.serverOverHTTP() && r.server.http == nil || !r.serverOverHTTP() && r.server.stdio == nil {
			t.Errorf("row %s has no server", r)
		}
	}
}
