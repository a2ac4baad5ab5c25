package repotest_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"path"
	"strings"
	"testing"
)

// How long things may get. The shapes that read well are much smaller; these
// are where one has to give a reason.
const (
	maxFileLines     = 500
	maxTestFileLines = 800
	maxFunctionLines = 80
	maxParameters    = 5
)

// smallFiles have limits of their own.
var smallFiles = []struct {
	pattern string // as path.Match takes it
	lines   int
}{
	{"cmd/*/main.go", 25},
	{"examples/*/main.go", 80},
}

func fileLimit(f *file) int {
	for _, small := range smallFiles {
		if ok, err := path.Match(small.pattern, f.path); err == nil && ok {
			return small.lines
		}
	}
	if f.test {
		return maxTestFileLines
	}
	return maxFileLines
}

var fileSizeRule = rule{
	section: sectionSize,
	applies: func(f *file) bool { return !ast.IsGenerated(f.ast) },
	check: func(f *file) []finding {
		lines, limit := bytes.Count(f.src, []byte("\n")), fileLimit(f)
		if lines <= limit {
			return nil
		}
		return []finding{at(f, f.ast.Package, "file has %d lines, the limit is %d: split it by noun", lines, limit)}
	},
}

func TestFilesAreShort(t *testing.T) {
	fileSizeRule.enforce(t)
}

// functionSizeRule leaves tests alone: a table is as long as its cases.
var functionSizeRule = rule{
	section: sectionSize,
	applies: func(f *file) bool { return !f.test && !ast.IsGenerated(f.ast) },
	check: func(f *file) []finding {
		var all []finding
		ast.Inspect(f.ast, func(n ast.Node) bool {
			name, typ, isFunc := function(n)
			if !isFunc {
				return true
			}
			if lines := f.line(n.End()) - f.line(n.Pos()) + 1; lines > maxFunctionLines {
				all = append(all, at(f, n.Pos(), "%s has %d lines, the limit is %d: give its steps names", name, lines, maxFunctionLines))
			}
			if params := typ.Params.NumFields(); params > maxParameters {
				all = append(all, at(f, n.Pos(), "%s has %d parameters, the limit is %d: make a type of those that belong together", name, params, maxParameters))
			}
			return true
		})
		return all
	},
}

// function returns the name and type of a function declaration or literal.
func function(n ast.Node) (name string, typ *ast.FuncType, ok bool) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Name.Name, n.Type, true
	case *ast.FuncLit:
		return "a function literal", n.Type, true
	}
	return "", nil, false
}

func TestFunctionsAreShort(t *testing.T) {
	functionSizeRule.enforce(t)
}

func TestFileSizeRule(t *testing.T) {
	lines := func(n int) string { return "package mcp" + strings.Repeat("\n", n) }
	for _, tt := range []struct {
		path  string
		lines int
		want  int
	}{
		{"mcp/a.go", 500, 0},
		{"mcp/a.go", 501, 1},
		{"mcp/a_test.go", 800, 0},
		{"mcp/a_test.go", 801, 1},
		{"cmd/mcpsplice/main.go", 25, 0},
		{"cmd/mcpsplice/main.go", 26, 1},
		{"examples/echo/main.go", 81, 1},
		{"examples/echo/tools.go", 81, 0},
	} {
		t.Run(fmt.Sprintf("%s with %d lines", tt.path, tt.lines), func(t *testing.T) {
			f, err := parse(tt.path, []byte(lines(tt.lines)))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(fileSizeRule.check(f)); got != tt.want {
				t.Errorf("%d findings, want %d", got, tt.want)
			}
		})
	}
}

func TestFunctionSizeRule(t *testing.T) {
	body := strings.Repeat("\n", maxFunctionLines)
	functionSizeRule.show(t, []sample{
		{"length", "mcp/a.go", "package mcp\nfunc long() { /*!*/" + body + "}\nfunc fits() {" + body[1:] + "}\n"},
		{"literal", "mcp/a.go", "package mcp\nvar long = func() { /*!*/" + body + "}\n"},
		{"parameters", "mcp/a.go", `package mcp
func many(a, b, c, d int, e, f string) {} /*!*/
func fits(a, b, c, d int, e string) {}
func unnamed(int, int, int, int, int, int) {} /*!*/
`},
		{"test", "mcp/a_test.go", "package mcp_test\nfunc TestLong() {" + body + "}\n"},
	})
}
