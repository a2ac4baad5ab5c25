package repotest_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	for dir, files := range theRepo(t).packages() {
		var with []string
		code := false
		for _, f := range files {
			if f.test {
				continue
			}
			code = true
			if f.ast.Doc != nil {
				with = append(with, f.path)
			}
		}
		if code && len(with) != 1 {
			t.Errorf("package %s has %d package comments, want one (found in %v)%s", dir, len(with), with, see(sectionComments))
		}
	}
}

var documentedRule = rule{
	section: sectionComments,
	applies: func(f *file) bool { return f.library() && !ast.IsGenerated(f.ast) },
	check: func(f *file) []finding {
		var all []finding
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
					all = append(all, at(f, d.Pos(), "exported %s has no doc comment", d.Name.Name))
				}
			case *ast.GenDecl:
				all = append(all, undocumentedSpecs(f, d)...)
			}
		}
		return all
	},
}

// exportedReceiver tells whether a method belongs to an exported type. It is
// true for a function.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	for e := d.Recv.List[0].Type; ; {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// undocumentedSpecs looks at the types, constants and variables of one
// declaration. The comment of a group is enough for its constants and
// variables; each type of a group needs its own.
func undocumentedSpecs(f *file, d *ast.GenDecl) []finding {
	var all []finding
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				all = append(all, at(f, s.Pos(), "exported type %s has no doc comment", s.Name.Name))
			}
			all = append(all, undocumentedOptions(f, s)...)
		case *ast.ValueSpec:
			if d.Doc == nil && s.Doc == nil && s.Comment == nil && anyExported(s.Names) {
				all = append(all, at(f, s.Pos(), "exported %s has no doc comment, nor has its group", s.Names[0].Name))
			}
		}
	}
	return all
}

// undocumentedOptions looks at the fields of an options struct: the comment of
// each says what its zero value means. One comment may speak of the fields that
// follow it, by name.
func undocumentedOptions(f *file, s *ast.TypeSpec) []finding {
	st, ok := s.Type.(*ast.StructType)
	if !ok || !s.Name.IsExported() || !strings.HasSuffix(s.Name.Name, "Options") {
		return nil
	}
	var all []finding
	var told []string // the words of the comments so far
	for _, field := range st.Fields.List {
		told = append(told, words(field.Doc.Text())...)
		if field.Doc != nil || field.Comment != nil || !anyExported(field.Names) {
			continue
		}
		if name := field.Names[0].Name; !slices.Contains(told, name) {
			all = append(all, at(f, field.Pos(), "option %s.%s has no comment that says what its zero value means", s.Name.Name, name))
		}
	}
	return all
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func anyExported(names []*ast.Ident) bool {
	for _, name := range names {
		if token.IsExported(name.Name) {
			return true
		}
	}
	return false
}

func TestExportedNamesAreDocumented(t *testing.T) {
	documentedRule.enforce(t)
}

func TestDocumentedRule(t *testing.T) {
	documentedRule.show(t, []sample{
		{"functions and methods", "mcp/a.go", `package mcp
func Bare() {} /*!*/
func quiet() {}
// Told is told.
func Told() {}
// T is a type.
type T[K any] struct{}
func (t *T[K]) Bare() {} /*!*/
type hidden struct{}
func (hidden) String() string { return "" }
`},
		{"types", "mcp/a.go", `package mcp
type Bare int /*!*/
// Told is told.
type Told int
// A group comment does not do.
type (
	First int /*!*/
	// Second is told.
	Second int
)
`},
		{"constants and variables", "mcp/a.go", `package mcp
const Bare = 1 /*!*/
// A group comment does.
const (
	A = 1
	B = 2
)
var (
	Line = 1 // is told
	// Above is told.
	Above = 2
	Untold = 3 /*!*/

	other = 4
)
`},
		{"options", "mcp/a.go", `package mcp
// DialOptions are options.
type DialOptions struct {
	// Limit is 5 if zero.
	Limit int
	Wait int // 5 s if zero

	// User and Password are sent if they are not empty.
	User     string
	Password string

	Bare int /*!*/

	hidden int
}
`},
		{"commands", "cmd/mcpsplice/main.go", `package main
func Bare() {}
`},
		{"tests", "mcp/a_test.go", `package mcp_test
func Bare() {}
`},
	})
}
