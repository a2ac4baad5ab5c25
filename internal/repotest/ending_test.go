package repotest_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// endingRule: only a program decides that the process ends.
var endingRule = rule{
	section: sectionEnding,
	applies: func(f *file) bool { return f.main && !f.test && !f.command() },
	check: func(f *file) []finding {
		var all []finding
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" && !f.saysInvariant(call) {
				all = append(all, at(f, call.Pos(), "panic without an \"// invariant:\" comment: return an error, or say which promise of ours is broken"))
			}
			switch pkg, name := f.selected(call.Fun); {
			case (pkg == "os" || pkg == "syscall") && name == "Exit",
				pkg == "log" && (strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Panic")):
				all = append(all, at(f, call.Pos(), "%s.%s in a library: return an error", pkg, name))
			}
			return true
		})
		return all
	},
	except: []exception{
		{"internal/process/keeper_unix.go", "re-executed as the guardian of child processes, this process is not the caller's any more"},
	},
}

// saysInvariant tells whether a comment with "invariant:" stands in the line of
// n or ends in the line before.
func (f *file) saysInvariant(n ast.Node) bool {
	line := f.line(n.Pos())
	return slices.ContainsFunc(f.ast.Comments, func(c *ast.CommentGroup) bool {
		end := f.line(c.End())
		return (end == line || end == line-1) && strings.Contains(c.Text(), "invariant:")
	})
}

func TestOnlyProgramsEndTheProcess(t *testing.T) {
	endingRule.enforce(t)
}

func TestEndingRule(t *testing.T) {
	endingRule.show(t, []sample{
		{"library", "mcp/a.go", `package mcp
import ("log"; "os"; "syscall")
func f(t tool) {
	os.Exit(1) /*!*/
	syscall.Exit(1) /*!*/
	log.Fatalf("x") /*!*/
	log.Panicln("x") /*!*/
	panic("x") /*!*/
	// invariant: the caller has checked.
	panic("x")
	panic("x") // invariant: the caller has checked

	// A long comment about what the
	// invariant: is here.
	panic("x")

	// invariant: too far away.

	panic("x") /*!*/
	t.Exit(1)
	t.panic()
}
`},
		{"command", "cmd/mcpsplice/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(1) }\n"},
		{"program elsewhere", "conformance/server/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(1) }\n"},
		{"test", "mcp/a_test.go", "package mcp_test\nimport \"os\"\nfunc f() { os.Exit(1); panic(1) }\n"},
	})
}
