package repotest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cutOff finds the commands of testscript that end a script as passed. A command of
// ours that has their name is never called.
var cutOff = regexp.MustCompile(`^(?:\[[^\]]*\] *)*(stop|skip)\b`)

// cutOffs returns the lines of a script that end it, counted from 1. What follows the
// first "-- NAME --" are files.
func cutOffs(script string) []int {
	var lines []int
	n := 0
	for line := range strings.Lines(script) {
		n++
		if strings.HasPrefix(line, "-- ") {
			break
		}
		if cutOff.MatchString(line) {
			lines = append(lines, n)
		}
	}
	return lines
}

// TestScriptsReachTheirEnd: what stands after a line that ends a script was not tested,
// and nobody sees that.
func TestScriptsReachTheirEnd(t *testing.T) {
	root := theRepo(t).root
	scripts := 0
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return fs.SkipDir
		case filepath.Ext(name) != ".txtar":
			return nil
		}
		scripts++
		text, err := os.ReadFile(name)
		for _, line := range cutOffs(string(text)) {
			t.Errorf("%s:%d: the script ends here, and passes%s", name, line, see(sectionTests))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if scripts == 0 {
		t.Error("no scripts were found")
	}
}

func TestCutOffs(t *testing.T) {
	const script = "# stop\nstop\nexec stop\nskip later\n[linux] stop\n[!linux] [x] skip\nstopped\nend\n-- a --\nstop\n"
	if got, want := cutOffs(script), []int{2, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("lines %d end the script, want %d", got, want)
	}
}
