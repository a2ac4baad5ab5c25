package repotest_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// limits of the two documents that people read first.
var documentLimits = map[string]int{
	"README.md":       200,
	"ARCHITECTURE.md": 300,
}

func TestFirstDocumentsAreShort(t *testing.T) {
	for name, limit := range documentLimits {
		t.Run(name, func(t *testing.T) {
			lines := strings.Count(theRepo(t).read(t, name), "\n")
			if lines >= limit {
				t.Errorf("%s has %d lines, the limit is %d: move a part to docs%s", name, lines, limit-1, see(sectionDocuments))
			}
		})
	}
}

// documents returns the Markdown files at the root and below docs.
func (r *repo) documents(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(r.root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(r.root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range all {
		rel, err := filepath.Rel(r.root, name)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = filepath.ToSlash(rel)
	}
	return all
}

var (
	fenced     = regexp.MustCompile("(?ms)^[ ]*```.*?^[ ]*```[ ]*$")
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInLinks = regexp.MustCompile(`[^a-z0-9 _-]`)
	// A name after a package, as in transport/stdio.Dial.
	qualified = regexp.MustCompile(`^(.*/[a-z0-9]+)\.[A-Z]\w*$`)
	plainPath = regexp.MustCompile(`^[\w.*@+/-]+$`)
)

// notPaths look like paths of the repository and are something else.
var notPaths = map[string]string{
	"server/discover": "a method of the protocol",
}

// prose returns a document without its fenced blocks.
func prose(text string) string {
	return fenced.ReplaceAllString(text, "")
}

// anchors returns the link targets of a document's headings, as Git hosts make
// them.
func anchors(text string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(prose(text), -1) {
		anchor := notInLinks.ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return all
}

// pathIn returns the repository path that a code span names, which may hold *,
// or "" when it names something else. tops are the names that a path begins
// with.
func pathIn(span string, tops []string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(span, "./"), "/...")
	if m := qualified.FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	name = strings.TrimSuffix(name, "/")
	first, _, _ := strings.Cut(name, "/")
	if !strings.ContainsRune(span, '/') && path.Ext(name) != ".go" && path.Ext(name) != ".md" {
		return ""
	}
	if _, listed := notPaths[name]; listed || !plainPath.MatchString(name) || strings.Contains(name, "...") || !slices.Contains(tops, first) {
		return ""
	}
	return name
}

// topNames returns what stands at the root of the repository, and the folders
// of the layout that must, so that a path into a missing folder is found too.
func (r *repo) topNames(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(r.root)
	if err != nil {
		t.Fatal(err)
	}
	var tops []string
	for _, e := range entries {
		tops = append(tops, e.Name())
	}
	for _, row := range layout {
		if first, _, _ := strings.Cut(row.dir, "/"); !row.planned && first != "." {
			tops = append(tops, first)
		}
	}
	return append(tops, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
}

func TestPathsInDocumentsExist(t *testing.T) {
	r := theRepo(t)
	tops := r.topNames(t)
	reported := make(map[string]bool)
	for _, doc := range r.documents(t) {
		for _, m := range codeSpan.FindAllStringSubmatch(prose(r.read(t, doc)), -1) {
			name := pathIn(m[1], tops)
			if name == "" || slices.Contains(ledgers, name) && !r.has(name) {
				continue
			}
			found, err := filepath.Glob(filepath.Join(r.root, filepath.FromSlash(name)))
			if complaint := doc + " " + name; (err != nil || len(found) == 0) && !reported[complaint] {
				reported[complaint] = true
				t.Errorf("%s names `%s`, and there is no such path%s", doc, m[1], see(sectionDocuments))
			}
		}
	}
}

func TestLinksBetweenDocumentsLead(t *testing.T) {
	r := theRepo(t)
	for _, doc := range r.documents(t) {
		for _, m := range link.FindAllStringSubmatch(prose(r.read(t, doc)), -1) {
			if strings.Contains(m[1], ":") {
				continue // to somewhere else
			}
			name, anchor, _ := strings.Cut(m[1], "#")
			target := doc
			if name != "" {
				target = path.Join(path.Dir(doc), name)
			}
			switch {
			case !r.has(target):
				t.Errorf("%s links to %s, which does not exist%s", doc, m[1], see(sectionDocuments))
			case anchor != "" && path.Ext(target) == ".md" && !anchors(r.read(t, target))[anchor]:
				t.Errorf("%s links to %s, where no heading has that name%s", doc, m[1], see(sectionDocuments))
			}
		}
	}
}

func TestPathIn(t *testing.T) {
	tops := []string{"jsonrpc", "transport", "server", "README.md", ".ci", "interop"}
	for _, tt := range []struct{ span, want string }{
		{"jsonrpc/scan.go", "jsonrpc/scan.go"},
		{"jsonrpc/", "jsonrpc"},
		{"jsonrpc/...", "jsonrpc"},
		{"./interop/run", "interop/run"},
		{".ci/run", ".ci/run"},
		{"README.md", "README.md"},
		{"transport/*/doc.go", "transport/*/doc.go"},
		{"transport/stdio.Dial", "transport/stdio"},
		{"./...", ""},
		{"tools/call", ""},
		{"server/discover", ""},
		{"server/tools.go", "server/tools.go"},
		{"jsonrpc.Error", ""},
		{"text/event-stream", ""},
		{"jsonrpc/<file>.go", ""},
		{"make check", ""},
		{"transport/x y", ""},
	} {
		t.Run(tt.span, func(t *testing.T) {
			if got := pathIn(tt.span, tops); got != tt.want {
				t.Errorf("pathIn = %q, want %q", got, tt.want)
			}
		})
	}
}
