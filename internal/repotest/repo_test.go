package repotest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// modulePath is the module that the rules are about. The modules inside it,
// such as bench, need the tools of other people and keep fewer rules.
const modulePath = "github.com/mcpsplice/mcpsplice"

// repo is what the rules look at: every Go file of the working tree, parsed
// once, for every operating system.
type repo struct {
	root    string
	files   []*file
	modules []string // folders with a go.mod of their own, the root left out
}

// file is one Go file.
type file struct {
	path string // slashes, from the root
	dir  string // "." for the root
	main bool   // belongs to the main module
	test bool   // is a _test.go file
	src  []byte
	fset *token.FileSet
	ast  *ast.File
}

// load reads the repository on its first call.
var load = sync.OnceValues(func() (*repo, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	r := &repo{root: root}
	if err := filepath.WalkDir(root, r.visit); err != nil {
		return nil, err
	}
	for _, f := range r.files {
		f.main = !slices.ContainsFunc(r.modules, func(dir string) bool { return within(f.path, dir) })
	}
	return r, nil
})

// theRepo returns the repository that this test is part of.
func theRepo(t *testing.T) *repo {
	t.Helper()
	r, err := load()
	if err != nil {
		t.Fatalf("reading the repository: %v", err)
	}
	return r
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module "+modulePath+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod of %s above the test", modulePath)
		}
		dir = parent
	}
}

// visit is the fs.WalkDirFunc of load. It leaves out what the Go tools leave
// out, and what Node installs.
func (r *repo) visit(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(r.root, name)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	base := entry.Name()
	switch {
	case rel == ".":
		return nil
	case entry.IsDir():
		if base[0] == '.' || base[0] == '_' || base == "testdata" || base == "node_modules" {
			return fs.SkipDir
		}
		return nil
	case base == "go.mod" && rel != base:
		r.modules = append(r.modules, path.Dir(rel))
		return nil
	case path.Ext(base) != ".go":
		return nil
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := parse(rel, src)
	if err != nil {
		return err
	}
	r.files = append(r.files, f)
	return nil
}

// parse makes a file of source text. It is taken as part of the main module.
func parse(name string, src []byte) (*file, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{
		path: name,
		dir:  path.Dir(name),
		main: true,
		test: strings.HasSuffix(name, "_test.go"),
		src:  src,
		fset: fset,
		ast:  tree,
	}, nil
}

// packages returns the files of the main module by folder.
func (r *repo) packages() map[string][]*file {
	pkgs := make(map[string][]*file)
	for _, f := range r.files {
		if f.main {
			pkgs[f.dir] = append(pkgs[f.dir], f)
		}
	}
	return pkgs
}

// has tells whether a file or folder of that name exists, from the root.
func (r *repo) has(name string) bool {
	_, err := os.Stat(filepath.Join(r.root, filepath.FromSlash(name)))
	return err == nil
}

// read returns a text file of the repository.
func (r *repo) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatalf("reading a file that must exist: %v", err)
	}
	return string(text)
}

// library tells whether f is code that other code can import.
func (f *file) library() bool {
	return f.main && !f.test && !f.command()
}

// command tells whether f is part of a program. The tests in a program's folder
// are part of it too.
func (f *file) command() bool {
	return f.ast.Name.Name == "main" || within(f.path, "cmd")
}

// line returns the line that pos stands in.
func (f *file) line(pos token.Pos) int {
	return f.fset.Position(pos).Line
}

// imports returns the import paths of f.
func (f *file) imports() []string {
	var paths []string
	for _, spec := range f.ast.Imports {
		paths = append(paths, importPath(spec))
	}
	return paths
}

// selected returns the import path and the name when e is a name of another
// package, as fmt.Println is, and two empty strings otherwise.
func (f *file) selected(e ast.Expr) (pkg, name string) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	for _, spec := range f.ast.Imports {
		imported := importPath(spec)
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == id.Name {
			return imported, sel.Sel.Name
		}
	}
	return "", ""
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // invariant: the parser has accepted the literal
	}
	return p
}

// within tells whether name is dir or lies below it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}
