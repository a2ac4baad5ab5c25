package repotest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// outputRule: standard output belongs to the protocol or to the user, so no
// library writes there. The commands write to the streams that main hands them.
var outputRule = rule{
	section: sectionOutput,
	applies: func(f *file) bool {
		return f.main && !f.test && !within(f.path, "examples") && !within(f.path, "conformance")
	},
	check: func(f *file) []finding {
		var all []finding
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
					all = append(all, at(f, n.Pos(), "%s writes to the process's own stderr", id.Name))
				}
			case *ast.SelectorExpr:
				switch pkg, name := f.selected(n); {
				case pkg == "fmt" && strings.HasPrefix(name, "Print"):
					all = append(all, at(f, n.Pos(), "fmt.%s writes to the process's own stdout: write to a stream that was handed in", name))
				case pkg == "os" && (name == "Stdout" || name == "Stderr") && !f.command():
					all = append(all, at(f, n.Pos(), "os.%s outside of main: write to a stream that was handed in", name))
				}
			}
			return true
		})
		return all
	},
	except: []exception{
		{"transport/stdio/serve.go", "the binding is to the process's own streams, if the caller hands in no others"},
	},
}

func TestLibrariesDoNotPrint(t *testing.T) {
	outputRule.enforce(t)
}

func TestOutputRule(t *testing.T) {
	outputRule.show(t, []sample{
		{"library", "mcp/a.go", `package mcp
import ("fmt"; "os"; out "fmt")
func f(w writer) {
	fmt.Println("x") /*!*/
	out.Printf("x") /*!*/
	println("x") /*!*/
	fmt.Fprintln(os.Stderr, "x") /*!*/
	fmt.Fprintln(w, "x")
	w.println("x")
	_ = fmt.Sprint("x")
	run(fmt.Print) /*!*/
}
`},
		{"main", "cmd/mcpsplice/main.go", `package main
import ("fmt"; "os")
func main() {
	run(os.Stdout, os.Stderr)
	fmt.Println("x") /*!*/
}
`},
		{"example", "examples/echo/main.go", "package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }\n"},
	})
}
