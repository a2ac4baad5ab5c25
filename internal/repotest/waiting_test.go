package repotest_test

import (
	"go/ast"
	"slices"
	"testing"
)

// waitingRule: a test that sleeps is slow on a fast machine and fails on a slow
// one. In a synctest bubble a sleep moves the bubble's own clock, which is fine,
// and so the function handed to synctest.Test is left out.
var waitingRule = rule{
	section: sectionTests,
	applies: func(f *file) bool { return f.main && f.test },
	check: func(f *file) []finding {
		var all []finding
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				pkg, name := f.selected(n.Fun)
				return pkg != "testing/synctest" || name != "Test"
			case *ast.SelectorExpr:
				if pkg, name := f.selected(n); pkg == "time" && name == "Sleep" {
					all = append(all, at(f, n.Pos(), "time.Sleep in a test: wait for the thing itself, or use a synctest bubble"))
				}
			}
			return true
		})
		return all
	},
}

func TestTestsDoNotSleep(t *testing.T) {
	waitingRule.enforce(t)
}

func TestWaitingRule(t *testing.T) {
	waitingRule.show(t, []sample{
		{"tests", "mcp/a_test.go", `package mcp_test
import ("testing"; "testing/synctest"; "time")
func TestA(t *testing.T) {
	time.Sleep(1) /*!*/
	<-time.After(1)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1)
	})
	clock.Sleep(1)
}
`},
		{"library", "mcp/a.go", "package mcp\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"},
	})
}

// skippingRule: a skipped test passes without having tested anything, and
// nobody reads why. A test for one system goes into a file for that system.
var skippingRule = rule{
	section: sectionTests,
	applies: func(f *file) bool { return f.main && slices.Contains(f.imports(), "testing") },
	check: func(f *file) []finding {
		var all []finding
		ast.PreorderStack(f.ast, nil, func(n ast.Node, stack []ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && f.isTestingParameter(id.Name, stack) {
				all = append(all, at(f, call.Pos(), "a test skips itself: remove what it lacks from its surroundings, or list it in internal/repotest/waiting_test.go with a reason"))
			}
			return true
		})
		return all
	},
}

// isTestingParameter tells whether name is a parameter of the innermost
// function around that has one of that name, and of a type of package testing.
func (f *file) isTestingParameter(name string, stack []ast.Node) bool {
	for _, n := range slices.Backward(stack) {
		var params *ast.FieldList
		switch n := n.(type) {
		case *ast.FuncLit:
			params = n.Type.Params
		case *ast.FuncDecl:
			params = n.Type.Params
		default:
			continue
		}
		for _, field := range params.List {
			if !slices.ContainsFunc(field.Names, func(id *ast.Ident) bool { return id.Name == name }) {
				continue
			}
			typ := field.Type
			if ptr, ok := typ.(*ast.StarExpr); ok {
				typ = ptr.X
			}
			pkg, _ := f.selected(typ)
			return pkg == "testing"
		}
	}
	return false
}

func TestTestsDoNotSkipThemselves(t *testing.T) {
	skippingRule.enforce(t)
}

func TestSkippingRule(t *testing.T) {
	skippingRule.show(t, []sample{
		{"tests", "mcp/a_test.go", `package mcp_test
import ("testing"; "pgregory.net/rapid")
func TestA(t *testing.T) {
	t.Skip("x") /*!*/
	t.Run("a", func(t *testing.T) { t.SkipNow() }) /*!*/
	go func() { t.Skipf("x") }() /*!*/
	rapid.Check(t, func(t *rapid.T) { t.Skip() })
	scanner.Skip()
}
func help(tb testing.TB) { tb.Skip() } /*!*/
`},
		{"suite", "transport/transporttest/a.go", "package transporttest\nimport \"testing\"\nfunc Run(t *testing.T) { t.Skip() } /*!*/\n"},
	})
}
