package repotest_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ledgers list cases and the tests that cover them. A line names a test in
// backticks, with the folder of its package in backticks beside it or before
// it: `transport/stdio` `TestCloseUnblocksRead`, or
// `transport/stdio: TestCloseUnblocksRead/child_ignores_signals`. A ledger need
// not exist before its first line is written.
var ledgers = []string{"docs/cases.md", "docs/eras.md", "docs/seeds.md", "docs/security.md"}

// testName matches a code span that names a test: its package if it is given,
// and the function. Names of subtests are not checked.
var testName = regexp.MustCompile(`^(?:(?:\./)?([\w./-]+?)(?:: ?|\.| ))?((?:Test|Fuzz|Benchmark|Example)\w*)(?:/.*)?$`)

// testFunctions returns the folders in which a test function of a name exists.
func (r *repo) testFunctions() map[string][]string {
	all := make(map[string][]string)
	for _, f := range r.files {
		if !f.test {
			continue
		}
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil {
				all[d.Name.Name] = append(all[d.Name.Name], f.dir)
			}
		}
	}
	return all
}

// missing returns what is wrong with the tests that a line of a ledger names.
// dirs are the folders with Go files, tests is what testFunctions returns.
func missing(line string, dirs map[string]bool, tests map[string][]string) []string {
	var beside, wrong []string
	var named [][]string
	for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
		if t := testName.FindStringSubmatch(m[1]); t != nil {
			named = append(named, t)
		} else if dir := strings.Trim(strings.TrimPrefix(m[1], "./"), "/"); dirs[dir] {
			beside = append(beside, dir)
		}
	}
	for _, t := range named {
		packages := beside
		if t[1] != "" {
			packages = []string{t[1]}
		}
		switch {
		case len(packages) == 0:
			wrong = append(wrong, t[2]+" is named without its package")
		case !overlap(packages, tests[t[2]]):
			wrong = append(wrong, "there is no "+t[2]+" in "+strings.Join(packages, ", "))
		}
	}
	return wrong
}

// overlap tells whether a and b have an element in common.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

func TestLedgersNameTestsThatExist(t *testing.T) {
	r := theRepo(t)
	dirs := make(map[string]bool)
	for _, f := range r.files {
		dirs[f.dir] = true
	}
	tests := r.testFunctions()
	for _, ledger := range ledgers {
		if !r.has(ledger) {
			continue
		}
		for i, line := range strings.Split(r.read(t, ledger), "\n") {
			for _, wrong := range missing(line, dirs, tests) {
				t.Errorf("%s:%d: %s%s", ledger, i+1, wrong, see(sectionDocuments))
			}
		}
	}
}

func TestMissing(t *testing.T) {
	dirs := map[string]bool{"mcp": true, "transport/stdio": true}
	tests := map[string][]string{"TestA": {"mcp"}, "FuzzB": {"transport/stdio"}}
	for _, tt := range []struct {
		line string
		want int
	}{
		{"| B001 | `TestA` in `mcp` |", 0},
		{"| B001 | `mcp`: `TestA`, `TestA/long line` |", 0},
		{"| B001 | `mcp: TestA`, `transport/stdio: FuzzB` |", 0},
		{"| B001 | `transport/stdio.FuzzB` |", 0},
		{"| B001 | `./mcp TestA/sub` |", 0},
		{"| B001 | `mcp/` `TestA` |", 0},
		{"| B001 | no test, `tools/call` |", 0},
		{"| B001 | `TestA` |", 1},
		{"| B001 | `TestC` in `mcp` |", 1},
		{"| B001 | `transport/stdio: TestA` |", 1},
		{"| B001 | `mcp: TestC`, `mcp: TestD` |", 2},
	} {
		t.Run(tt.line, func(t *testing.T) {
			if got := missing(tt.line, dirs, tests); len(got) != tt.want {
				t.Errorf("missing = %q, want %d of them", got, tt.want)
			}
		})
	}
}
