package repotest_test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	note         = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	numberedNote = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\(#\d+\)`)
)

// notesRule: what is left to do is an issue. A note in the code leads to it.
var notesRule = rule{
	section: sectionNotes,
	applies: func(*file) bool { return true },
	check: func(f *file) []finding {
		var all []finding
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				for i, line := range strings.Split(c.Text, "\n") {
					if note.MatchString(line) && !numberedNote.MatchString(line) {
						all = append(all, finding{f.line(c.Pos()) + i, "a note about work to do names no issue: write it as in TODO(#123)"})
					}
				}
			}
		}
		return all
	},
}

func TestNotesNameAnIssue(t *testing.T) {
	notesRule.enforce(t)
}

func TestNotesRule(t *testing.T) {
	notesRule.show(t, []sample{{"comments", "mcp/a.go", `package mcp
// TODO: later /*!*/
// TODO(#12): later
// FIXME(name): later /*!*/
const s = "TODO"
/* One line,
then XXX. /*!*/
*/
`}})
}
