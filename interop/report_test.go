package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	expectations, err := readExpectations(strings.NewReader(`
everything/stdio,http/ts2/call  documented
!everything/A/ts2/list  documented for A
everything/A/ts2/read  documented for A, and not that it passes without
?everything/A/ts2/many  now and then, and not that it passes without
?everything/stdio,A/ts2/big  now and then, with and without
everything/A/ts1/read  documented wrongly
mcpsplice/http/ts2/call  documented for our server
`))
	if err != nil {
		t.Fatal(err)
	}
	done := map[string][]check{
		"everything/stdio/ts2": {{Name: "call"}, {Name: "list", OK: true, Same: "x"}, {Name: "read", OK: true}, {Name: "many", OK: true}, {Name: "big", OK: true}},
		"everything/http/ts2":  {{Name: "call"}},
		"everything/A/ts2":     {{Name: "call", OK: true}, {Name: "list"}, {Name: "prompt"}, {Name: "read"}, {Name: "many"}, {Name: "big"}},
		"everything/D/ts2":     {{Name: "list", OK: true, Same: "y"}},
		"everything/A/ts1":     {{Name: "read", OK: true}, {Name: "call", OK: true}},
		// Another client of the family of ts2 stands in for what ts2 itself does not give.
		"everything/A/ts2-legacy": {{Name: "list", OK: true, Same: "x"}},
		// Our own server says the same on all transports and in both eras.
		"mcpsplice/stdio/ts2":       {{Name: "list", OK: true, Same: "a"}, {Name: "call", OK: true}},
		"mcpsplice/http/ts2":        {{Name: "list", OK: true, Same: "a"}, {Name: "call"}},
		"mcpsplice/http/ts2-legacy": {{Name: "list", OK: true, Same: "b"}},
		"mcpsplice/sse/ts2-legacy":  {{Name: "list", OK: true, Same: "a"}},
		"mcpsplice/S/ts2-legacy":    {{Name: "list", OK: true, Same: "c"}},
	}
	want := map[string]verdict{
		"everything/stdio/ts2/call":    directToo,
		"everything/stdio/ts2/list":    passed,
		"everything/stdio/ts2/read":    passed,
		"everything/stdio/ts2/many":    passed,
		"everything/stdio/ts2/big":     passed,
		"everything/http/ts2/call":     directToo,
		"everything/A/ts2/call":        bridgeOnly,
		"everything/A/ts2/list":        known,
		"everything/A/ts2/prompt":      failed, // no entry
		"everything/A/ts2/read":        failed, // no exclamation mark
		"everything/A/ts2/many":        failed, // no exclamation mark
		"everything/A/ts2/big":         known,
		"everything/D/ts2/list":        failed, // not the same
		"everything/A/ts1/read":        failed, // passes after all
		"everything/A/ts1/call":        passed,
		"everything/A/ts2-legacy/list": passed,

		"mcpsplice/stdio/ts2/list":       passed,
		"mcpsplice/stdio/ts2/call":       passed,
		"mcpsplice/http/ts2/list":        passed,
		"mcpsplice/http/ts2/call":        known,
		"mcpsplice/http/ts2-legacy/list": failed, // not the same as the other era
		"mcpsplice/sse/ts2-legacy/list":  passed,
		"mcpsplice/S/ts2-legacy/list":    failed, // not the same as without the bridge
	}
	var ran []row
	for name := range done {
		ran = append(ran, rowNamed(t, name))
	}
	all := judge(done, ran, expectations)
	for _, o := range all {
		name := o.row.String() + "/" + o.check.Name
		if o.verdict != want[name] {
			t.Errorf("%s: %s (%s), want %s", name, o.verdict, o.why, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s was not judged", name)
	}
	var out bytes.Buffer
	if report(&out, all, nil, "logs") {
		t.Error("the report says that all is well")
	}
	if !strings.HasSuffix(out.String(), "\ninterop: 11 passed, 7 failed\n") {
		t.Errorf("last line of\n%s", out.String())
	}
}

// TestStrangeControls: only what others do among themselves is looked at twice.
func TestStrangeControls(t *testing.T) {
	expectations, err := readExpectations(strings.NewReader("everything/stdio/ts2/call  documented\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		row   string
		check check
		want  bool
	}{
		{"everything/stdio/ts2", check{Name: "big"}, true},
		{"everything/stdio/ts2", check{Name: "big", OK: true}, false},
		{"everything/stdio/ts2", check{Name: "call"}, false},
		{"everything/A/ts2", check{Name: "big"}, false},
		{"mcpsplice/stdio/ts2", check{Name: "big"}, false},
		{"everything/stdio/splice", check{Name: "big"}, false},
	} {
		if got := strange(rowNamed(t, tt.row), []check{{Name: "list", OK: true}, tt.check}, expectations); got != tt.want {
			t.Errorf("%s, %+v: %v", tt.row, tt.check, got)
		}
	}
}

// A whole run finds lines that name nothing, and exclamation marks that nothing shows.
func TestStaleExpectations(t *testing.T) {
	expectations, err := readExpectations(strings.NewReader(`
everything/A/ts2/call  names nothing that was run
!everything/A/ts1/call  shown
!everything/A/ts1/read  fails without the bridge too
?!everything/A/ts1/list  now and then
`))
	if err != nil {
		t.Fatal(err)
	}
	done := map[string][]check{
		"everything/stdio/ts1": {{Name: "call", OK: true}, {Name: "read"}, {Name: "list", OK: true}},
		"everything/A/ts1":     {{Name: "call"}, {Name: "read"}, {Name: "list", OK: true}},
	}
	judge(done, []row{rowNamed(t, "everything/A/ts1")}, expectations)
	got := stale(expectations)
	if len(got) != 2 || !strings.HasPrefix(got[0], "line 2 ") || !strings.HasPrefix(got[1], "line 4 ") {
		t.Errorf("stale: %q", got)
	}
}

func TestChooseTakesControlsAlong(t *testing.T) {
	got, err := choose(rows(), "everything/A/ts1", false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range got {
		names = append(names, r.String())
	}
	if text := strings.Join(names, " "); text != "everything/stdio/ts1 everything/http/ts1 everything/sse/ts1 everything/A/ts1" {
		t.Errorf("chose %s", text)
	}
	if _, err := choose(rows(), "everything/E", false); err == nil {
		t.Error("chose rows of a form that does not exist")
	}
}
