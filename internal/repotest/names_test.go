package repotest_test

import (
	"path"
	"regexp"
	"slices"
	"testing"
)

// emptyNames say nothing about what a package does, so everything ends up in it.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "shared", "types", "pkg", "misc"}

func TestPackageNamesSayWhatThePackageDoes(t *testing.T) {
	rule{
		section: sectionNames,
		applies: func(*file) bool { return true },
		check: func(f *file) []finding {
			for _, name := range []string{path.Base(f.dir), f.ast.Name.Name} {
				if slices.Contains(emptyNames, name) {
					return []finding{at(f, f.ast.Package, "package name %s says nothing: put the code beside its first user, or name the package after what it does", name)}
				}
			}
			return nil
		},
	}.enforce(t)
}

// history matches test files that are named after when or why they were made.
var history = regexp.MustCompile(`(issue|bug|pr)_?\d+|_(additional|extra|more|new|old|misc|coverage)_test\.go$`)

var historyRule = rule{
	section: sectionNames,
	applies: func(f *file) bool { return f.test },
	check: func(f *file) []finding {
		if history.MatchString(path.Base(f.path)) {
			return []finding{at(f, f.ast.Package, "a test file is named after the thing it tests: a fixed bug adds a case to that thing's file")}
		}
		return nil
	},
}

func TestTestFilesAreNamedAfterWhatTheyTest(t *testing.T) {
	historyRule.enforce(t)
}

func TestHistoryRule(t *testing.T) {
	historyRule.show(t, []sample{
		{"a noun", "mcp/request_test.go", "package mcp_test\n"},
		{"an issue", "mcp/issue583_test.go", "package mcp_test /*!*/\n"},
		{"an afterthought", "mcp/request_additional_test.go", "package mcp_test /*!*/\n"},
	})
}
