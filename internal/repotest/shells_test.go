package repotest_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The words that make a shell read a string as a command line.
var (
	shells     = []string{"sh", "bash", "dash", "zsh", "cmd", "powershell", "pwsh"}
	shellFlags = []string{"-c", "-lc", "/c", "-command"}
)

// shellsRule: a command is a list of words from the first to the last. A string
// that a shell splits again is where quoting goes wrong and injection begins.
var shellsRule = rule{
	section: sectionShells,
	applies: func(f *file) bool { return !f.test },
	check: func(f *file) []finding {
		var all []finding
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for i := 1; i < len(call.Args); i++ {
				if isShell(literal(call.Args[i-1])) && slices.Contains(shellFlags, strings.ToLower(literal(call.Args[i]))) {
					all = append(all, at(f, call.Pos(), "a shell is asked to read a command line: start the program itself, with its arguments as a list"))
				}
			}
			return true
		})
		return all
	},
}

func isShell(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(path.Base(name)), ".exe")
	return slices.Contains(shells, name)
}

// literal returns the value of a string literal, or "".
func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

func TestNoShellReadsACommandLine(t *testing.T) {
	shellsRule.enforce(t)
}

func TestShellsRule(t *testing.T) {
	shellsRule.show(t, []sample{
		{"commands", "internal/process/a.go", `package process
import "os/exec"
func f(line string) {
	exec.Command("sh", "-c", line) /*!*/
	exec.CommandContext(ctx, "/bin/bash", "-c", line) /*!*/
	exec.Command("cmd.exe", "/C", line) /*!*/
	exec.Command(name, "-c", line)
	exec.Command("sh", "script.sh")
	exec.Command("python3", "-c", line)
}
`},
		{"test", "internal/process/a_test.go", "package process_test\nfunc f() { exec.Command(\"sh\", \"-c\", \"exit 3\") }\n"},
	})
}
