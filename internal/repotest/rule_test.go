package repotest_test

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// The sections of CONTRIBUTING.md that failure messages point to.
const (
	sectionImports      = "imports"
	sectionComments     = "comments"
	sectionNames        = "names"
	sectionEnding       = "ending-the-process"
	sectionOutput       = "output"
	sectionTests        = "tests"
	sectionShells       = "shells"
	sectionNotes        = "notes-to-ourselves"
	sectionSize         = "size"
	sectionDocuments    = "documents"
	sectionDependencies = "dependencies"
)

var sections = []string{
	sectionImports, sectionComments, sectionNames, sectionEnding, sectionOutput,
	sectionTests, sectionShells, sectionNotes, sectionSize, sectionDocuments,
	sectionDependencies,
}

// see ends every failure message.
func see(section string) string {
	return "\n\tsee CONTRIBUTING.md#" + section
}

// rule looks at one Go file at a time.
type rule struct {
	section string
	applies func(*file) bool
	check   func(*file) []finding
	except  []exception
}

// finding is one place where a rule is broken.
type finding struct {
	line int
	text string
}

// exception is a place where a rule may be broken: a file, or a folder and all
// that is below it.
type exception struct {
	path   string
	reason string
}

func at(f *file, pos token.Pos, format string, args ...any) finding {
	return finding{line: f.line(pos), text: fmt.Sprintf(format, args...)}
}

// enforce applies the rule to the whole repository.
func (r rule) enforce(t *testing.T) {
	t.Helper()
	repo := theRepo(t)
	used := make(map[string]bool)
	for _, f := range repo.files {
		if !r.applies(f) {
			continue
		}
		for _, found := range r.check(f) {
			if i := slices.IndexFunc(r.except, func(e exception) bool { return within(f.path, e.path) }); i >= 0 {
				used[r.except[i].path] = true
				continue
			}
			t.Errorf("%s:%d: %s%s", f.path, found.line, found.text, see(r.section))
		}
	}
	for _, e := range r.except {
		if e.reason == "" {
			t.Errorf("the exception for %s gives no reason%s", e.path, see(r.section))
		}
		// An exception may be written down before its package is.
		written := slices.ContainsFunc(repo.files, func(f *file) bool { return within(f.path, e.path) })
		if written && !used[e.path] {
			t.Errorf("the exception for %s excuses nothing any more: remove it%s", e.path, see(r.section))
		}
	}
}

// mark stands at the end of the lines of a sample that a rule must find. It is
// taken out before the rule sees the sample.
const mark = "/*!*/"

// sample is a file that shows what a rule finds, and what it lets pass.
type sample struct {
	name string
	path string
	src  string
}

// show checks that the rule finds what the samples mark.
func (r rule) show(t *testing.T, samples []sample) {
	t.Helper()
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			f, err := parse(s.path, []byte(strings.ReplaceAll(s.src, mark, "")))
			if err != nil {
				t.Fatalf("parsing the sample: %v", err)
			}
			var got []int
			if r.applies(f) {
				for _, found := range r.check(f) {
					got = append(got, found.line)
				}
			}
			slices.Sort(got)
			if want := marked(s.src); !slices.Equal(got, want) {
				t.Errorf("findings in lines %v, want %v", got, want)
			}
		})
	}
}

func marked(src string) []int {
	var lines []int
	for i, line := range strings.Split(src, "\n") {
		if strings.HasSuffix(line, mark) {
			lines = append(lines, i+1)
		}
	}
	return lines
}

func TestSectionsNamedInMessagesExist(t *testing.T) {
	text := theRepo(t).read(t, "CONTRIBUTING.md")
	headings := anchors(text)
	for _, section := range sections {
		if !headings[section] {
			t.Errorf("CONTRIBUTING.md has no heading whose link is #%s", section)
		}
	}
}
