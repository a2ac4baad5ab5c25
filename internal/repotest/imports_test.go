package repotest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// reach says which packages of ours a package may import.
type reach int

const (
	above    reach = iota // those in the rows above its own
	exported              // those above, but none under internal: a first customer of the library
	nothing               // none
)

// row is a package in the layout.
type row struct {
	dir     string
	reach   reach
	tree    bool     // stands for the packages below dir too
	also    []string // packages that it may import besides
	planned bool     // need not exist yet; a row without this must
}

// layout lists the packages of the main module from the bottom up. It is the
// table that ARCHITECTURE.md explains. Only code that is not a test counts: a
// test may import what it likes.
var layout = []row{
	// An internal package gets a row too, at the lowest place that its own
	// imports allow.
	{dir: "internal/sse", reach: nothing},
	{dir: "internal/process", reach: nothing},
	{dir: "internal/longtext", reach: nothing},
	{dir: "internal/lenient", reach: nothing},
	{dir: "internal/share", reach: nothing},
	{dir: "internal/exampletest", reach: nothing},

	{dir: "jsonrpc", reach: nothing},
	{dir: "mcp"},
	{dir: "internal/visit"},
	{dir: "internal/schema"},
	{dir: "internal/faulttest"},
	{dir: "internal/inflight"},
	{dir: "eventlog", reach: nothing},
	{dir: "eventlog/natslog", planned: true},
	{dir: "session"},
	{dir: "park"},
	{dir: "auth", planned: true},
	{dir: "transport"},
	{dir: "transport/stdio"},
	{dir: "transport/socket", planned: true},
	{dir: "transport/websocket", planned: true},
	{dir: "transport/streamable"},
	{dir: "transport/transporttest"},
	{dir: "client"},
	{dir: "skills"},
	{dir: "internal/faulttest/rounds"},
	{dir: "server"},
	{dir: "internal/faulttest/cells"},
	{dir: "internal/faulttest/soak"},
	{dir: "manager", planned: true},
	{dir: "hostconfig", planned: true},
	{dir: "gateway", reach: exported},
	{dir: "internal/demo", reach: exported},
	{dir: "internal/cli", reach: exported, also: []string{"internal/demo"}},
	{dir: "cmd/mcpsplice", reach: nothing, also: []string{"internal/cli"}},

	{dir: ".", reach: nothing, planned: true}, // the overview of the packages
	{dir: "internal/repotest", reach: nothing},
	{dir: "examples", reach: exported, tree: true, planned: true},
	{dir: "conformance", reach: exported, tree: true, planned: true},
}

// rowOf returns the index of the row for a package, or -1.
func rowOf(dir string) int {
	return slices.IndexFunc(layout, func(r row) bool {
		return r.dir == dir || r.tree && within(dir, r.dir)
	})
}

// mayImport returns why the package in row i must not import the package of
// ours in dir, or "".
func mayImport(i int, dir string) string {
	from, to := layout[i], rowOf(dir)
	switch {
	case slices.Contains(from.also, dir) || from.tree && within(dir, from.dir):
		return ""
	case from.reach == nothing:
		return "it may import no package of ours" + exceptFor(from.also)
	case from.reach == exported && within(dir, "internal"):
		return "it may use only the exported packages, as any other user of the library" + exceptFor(from.also)
	case to < 0:
		return "that package has no row in the layout"
	case to >= i:
		return "that package does not stand above it in the layout"
	}
	return ""
}

func exceptFor(dirs []string) string {
	if len(dirs) == 0 {
		return ""
	}
	return ", apart from " + strings.Join(dirs, ", ")
}

func TestEveryPackageHasARowInTheLayout(t *testing.T) {
	pkgs := theRepo(t).packages()
	for dir, files := range pkgs {
		if rowOf(dir) < 0 && slices.ContainsFunc(files, func(f *file) bool { return !f.test }) {
			t.Errorf("package %s has no row in the table of internal/repotest/imports_test.go%s", dir, see(sectionImports))
		}
	}
	for _, r := range layout {
		switch _, exists := pkgs[r.dir]; {
		case !exists && !r.planned:
			t.Errorf("the layout has a row for %s, which does not exist%s", r.dir, see(sectionImports))
		case exists && r.planned:
			t.Logf("%s exists now: its row need not say planned any more", r.dir)
		}
	}
}

func TestImportsFollowTheLayout(t *testing.T) {
	rule{
		section: sectionImports,
		applies: func(f *file) bool { return f.main && !f.test && rowOf(f.dir) >= 0 },
		check: func(f *file) []finding {
			var all []finding
			for _, spec := range f.ast.Imports {
				dir, ours := inModule(importPath(spec))
				if !ours {
					continue
				}
				if why := mayImport(rowOf(f.dir), dir); why != "" {
					all = append(all, at(f, spec.Pos(), "%s must not import %s: %s", f.dir, dir, why))
				}
			}
			return all
		},
	}.enforce(t)
}

// inModule returns the folder of a package of the main module.
func inModule(imported string) (dir string, ours bool) {
	if imported == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

func TestMayImport(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"mcp", "jsonrpc", true},
		{"jsonrpc", "mcp", false},
		{"jsonrpc", "internal/sse", false},
		{"internal/sse", "jsonrpc", false},
		{"transport/stdio", "transport", true},
		{"transport/stdio", "internal/process", true},
		{"transport", "transport/stdio", false},
		{"transport", "session", true},
		{"session", "transport", false},
		{"client", "internal/cli", false},
		{"gateway", "manager", true},
		{"gateway", "internal/sse", false},
		{"internal/cli", "gateway", true},
		{"internal/cli", "internal/process", false},
		{"internal/cli", "internal/demo", true},
		{"cmd/mcpsplice", "internal/cli", true},
		{"cmd/mcpsplice", "gateway", false},
		{"examples/echo", "server", true},
		{"examples/echo", "internal/cli", false},
		{"conformance/server", "internal/sse", false},
		{"server", "unheard/of", false},
	} {
		t.Run(fmt.Sprintf("%s imports %s", tt.from, tt.to), func(t *testing.T) {
			why := mayImport(rowOf(tt.from), tt.to)
			if (why == "") != tt.want {
				t.Errorf("allowed = %t (%q), want %t", why == "", why, tt.want)
			}
		})
	}
}
