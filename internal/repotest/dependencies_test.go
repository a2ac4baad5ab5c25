package repotest_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// direct matches the line of go.mod for a module that we import ourselves.
var direct = regexp.MustCompile(`(?m)^(?:require\s+|\t)(\S+) v\S+$`)

func TestEveryDependencyHasAReason(t *testing.T) {
	r := theRepo(t)
	text := r.read(t, "CONTRIBUTING.md")
	_, after, found := strings.Cut(text, "\n## Dependencies\n")
	if !found {
		t.Fatalf("CONTRIBUTING.md has no section Dependencies")
	}
	reasons, _, _ := strings.Cut(after, "\n## ")
	for _, m := range direct.FindAllStringSubmatch(r.read(t, "go.mod"), -1) {
		if !strings.Contains(reasons, "`"+m[1]+"`") {
			t.Errorf("go.mod requires %s, and the section gives no reason for it%s", m[1], see(sectionDependencies))
		}
	}
}

func TestDirect(t *testing.T) {
	const mod = `module example.com/m

go 1.26.0

require example.com/one v1.0.0

require (
	example.com/two/v2 v2.0.0
	example.com/three v1.4.1-0.20240526193622-a339e1f7089c // indirect
	example.com/four v0.1.0
)

tool example.com/four/cmd/tool
`
	var got []string
	for _, m := range direct.FindAllStringSubmatch(mod, -1) {
		got = append(got, m[1])
	}
	want := []string{"example.com/one", "example.com/two/v2", "example.com/four"}
	if !slices.Equal(got, want) {
		t.Errorf("direct matches %q, want %q", got, want)
	}
}
