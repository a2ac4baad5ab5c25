package repotest_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
)

func TestEveryExampleIsTested(t *testing.T) {
	r := theRepo(t)
	if !r.has("examples") {
		return // the first example brings the folder
	}
	entries, err := os.ReadDir(filepath.Join(r.root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		dir := path.Join("examples", e.Name())
		if e.IsDir() && !slices.ContainsFunc(r.files, func(f *file) bool { return f.test && within(f.path, dir) }) {
			t.Errorf("%s has no test that runs it%s", dir, see(sectionDocuments))
		}
	}
}
