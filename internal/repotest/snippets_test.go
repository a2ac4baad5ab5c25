package repotest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goBlock matches a fenced block of Go.
var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// isCutFrom reports whether each paragraph of a snippet is a run of lines of the
// source, whatever its indentation.
func isCutFrom(snippet, source string) bool {
	source = "\n" + unindented(source) + "\n"
	for paragraph := range strings.SplitSeq(unindented(snippet), "\n\n") {
		if !strings.Contains(source, "\n"+strings.Trim(paragraph, "\n")+"\n") {
			return false
		}
	}
	return true
}

func unindented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

// TestReadmeShowsCodeThatIsTested: what the README shows as Go is a part of one
// file, so that it compiles and does what is said of it. Programs come from the
// examples, which are run.
func TestReadmeShowsCodeThatIsTested(t *testing.T) {
	r := theRepo(t)
	var sources []string
	for _, f := range r.files {
		if f.main && !f.test {
			text, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(f.path)))
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, string(text))
		}
	}
	blocks := goBlock.FindAllStringSubmatch(r.read(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Error("README.md shows no Go")
	}
	for _, block := range blocks {
		found := false
		for _, source := range sources {
			found = found || isCutFrom(block[1], source)
		}
		if !found {
			t.Errorf("this is a part of no Go file: cut it from an example%s\n%s", see(sectionDocuments), block[1])
		}
	}
}

func TestIsCutFrom(t *testing.T) {
	const source = "package p\n\nfunc f() {\n\tone()\n\ttwo()\n\n\tthree()\n}\n"
	for snippet, want := range map[string]bool{
		"one()\ntwo()\n":           true,
		"\tone()\n\ttwo()\n":       true,
		"two()\n\nthree()\n":       true,
		"one()\n\nthree()\n}\n":    true,
		"one()\nthree()\n":         false,
		"ne()\n":                   false,
		"func f() {\n\none()\n\n":  true,
		"one()\ntwo()\n\nfour()\n": false,
		"one()\n// why\ntwo()\n":   false,
	} {
		if got := isCutFrom(snippet, source); got != want {
			t.Errorf("isCutFrom(%q) = %t, want %t", snippet, got, want)
		}
	}
}
