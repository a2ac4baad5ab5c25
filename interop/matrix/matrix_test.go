package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
)

func TestMain(m *testing.M) {
	if isChild, err := serveChild(context.Background()); isChild {
		exit(err)
	}
	os.Exit(m.Run())
}

// TestBridgeInRepresentativeCells runs some cells; the command runs them all.
func TestBridgeInRepresentativeCells(t *testing.T) {
	plans, err := choose("", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		t.Run(p.name(), func(t *testing.T) {
			t.Parallel()
			for _, o := range p.run(t.Context()) {
				if o.Failed != "" {
					t.Errorf("%s: %s", o.Check, o.Failed)
				}
			}
		})
	}
}

// TestRepresentativeCellsHaveEachSideTwiceInEachRole: all but the older ones, which
// differ from others in their revision alone.
func TestRepresentativeCellsHaveEachSideTwiceInEachRole(t *testing.T) {
	plans, err := choose("", true)
	if err != nil {
		t.Fatal(err)
	}
	clients, servers, eras := map[string]int{}, map[string]int{}, map[[2]mcp.Era]int{}
	for _, p := range plans {
		clients[p.client.name]++
		servers[p.server.name]++
		eras[[2]mcp.Era{p.client.era, p.server.era}]++
	}
	for _, s := range sides {
		want := 2
		if s.older {
			want = 0
		}
		if clients[s.name] != want || servers[s.name] != want {
			t.Errorf("%s is %d times the client, %d times the server", s.name, clients[s.name], servers[s.name])
		}
	}
	if len(eras) != 4 {
		t.Errorf("only these eras meet: %v", eras)
	}
}

func TestChoose(t *testing.T) {
	n := len(sides)
	for _, tt := range []struct {
		only          string
		cells, checks int
	}{
		{"", n * n, n * n * len(checks)},
		{"http-modern", n, n * len(checks)},
		{"*-modern/stdio-legacy", 3, 3 * len(checks)},
		{"*/*/url*", n * n, n * n * 2},
		{"sse-2024-11-05/http-modern/exact", 1, 1},
	} {
		plans, err := choose(tt.only, false)
		if err != nil {
			t.Errorf("%q: %v", tt.only, err)
		}
		n := 0
		for _, p := range plans {
			n += len(p.checks)
		}
		if len(plans) != tt.cells || n != tt.checks {
			t.Errorf("%q chooses %d cells and %d checks, want %d and %d", tt.only, len(plans), n, tt.cells, tt.checks)
		}
	}
	for _, only := range []string{"nothing", "http-modern/*/no-such-check", "[", "a/b/c/d"} {
		if plans, err := choose(only, false); err == nil {
			t.Errorf("%q chooses %d cells", only, len(plans))
		}
	}
}

func TestChecksThatCannotBeMadeHaveAnotherInstead(t *testing.T) {
	var names []string
	for _, k := range checks {
		if (k.cannot == nil) != (k.instead == nil) || k.run == nil || k.what == "" {
			t.Errorf("%s is not complete", k.name)
		}
		names = append(names, k.name)
	}
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("not all names differ: %q", names)
	}
}

func TestEachReasonNamesItsSection(t *testing.T) {
	for _, client := range sides {
		for _, server := range sides {
			c := &cell{clientSide: client, serverSide: server}
			for _, k := range checks {
				if k.cannot == nil {
					continue
				}
				if why := k.cannot(c); why != "" && !strings.Contains(why, "(20") {
					t.Errorf("%s: %s", k.name, why)
				}
			}
		}
	}
}

// outcomes of a run that did not go well.
var outcomes = []outcome{
	{Client: "stdio-legacy", Server: "http-modern", Check: "call"},
	{Client: "stdio-legacy", Server: "http-modern", Check: "url", Named: "no URLs (2025-11-25, client/elicitation)"},
	{Client: "stdio-legacy", Server: "sse-2024-11-05", Check: "url", Named: "no URLs (2025-11-25, client/elicitation)"},
	{Client: "stdio-legacy", Server: "sse-2024-11-05", Check: "open", Named: "no URLs (2025-11-25, client/elicitation)"},
	{Client: "http-modern", Server: "http-modern", Check: "accept", Named: "no forms (2025-06-18)", Failed: "it was answered"},
	{Client: "http-modern", Server: "http-modern", Check: "call", Failed: "no answer"},
	{Client: "http-modern", Server: "sse-2024-11-05", Check: "call", Failed: "no answer"},
}

func TestReport(t *testing.T) {
	var b strings.Builder
	report(&b, outcomes, 0)
	table := regexp.MustCompile(" +").ReplaceAllString(b.String(), " ")
	for _, want := range []string{
		"\nstdio-legacy - - - - - 1 n1 0 n2 ",
		"\nhttp-modern - - - - - 0 !2 0 !1 ",
		"\nnamed (3): url, open: no URLs (2025-11-25, client/elicitation)\n",
		"\nFAIL accept: it was answered\n in http-modern/http-modern\n",
		"\nFAIL call: no answer\n in http-modern/http-modern http-modern/sse-2024-11-05\n",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
	if !strings.HasSuffix(b.String(), "\n1 passed, 3 named, 3 failed in 0.0 s\nmatrix: 4/7\n") {
		t.Errorf("the report ends in %q", b.String()[max(0, b.Len()-100):])
	}
}

func TestDocumentKeepsWhatIsNotTheMatrix(t *testing.T) {
	name := t.TempDir() + "/interop.md"
	for range 2 { // made anew, and updated
		if err := updateDocument(name, outcomes); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "`matrix: 4/7`"); n != 1 || !strings.HasPrefix(string(text), "# Interop\n") {
		t.Errorf("the document is:\n%s", text)
	}
	got, err := between("before\n"+beginMark+"old"+endMark+"\nafter\n", "new\n")
	if want := "before\n" + beginMark + "\nnew\n" + endMark + "\nafter\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := between("before\nafter\n", "new\n"); err == nil {
		t.Error("a document without markers is taken")
	}
}

// TestDocumentIsOfTheseChecks: whoever adds a side or a check writes the table anew.
func TestDocumentIsOfTheseChecks(t *testing.T) {
	text, err := os.ReadFile("../../docs/interop.md")
	if err != nil {
		t.Fatal(err)
	}
	total := len(sides) * len(sides) * len(checks)
	want := []string{fmt.Sprintf("`matrix: %d/%d`", total, total)}
	for _, k := range checks {
		want = append(want, fmt.Sprintf("| `%s` | %s |\n", k.name, k.what))
	}
	for _, w := range want {
		if !strings.Contains(string(text), w) {
			t.Errorf("docs/interop.md lacks %q: write it by the flag -md", w)
		}
	}
}

// TestCellThatCannotBeMadeFailsAllItsChecks: nothing is left out in silence.
func TestCellThatCannotBeMadeFailsAllItsChecks(t *testing.T) {
	broken := side{name: "broken", open: func(*stage, mcp.Handler, mcp.Era) (reach, error) {
		return nil, errors.New("no way")
	}}
	p := plan{client: sides[0], server: broken, checks: checks}
	all := p.run(t.Context())
	if got := tallyOf(all); got != (tally{failed: len(checks)}) {
		t.Errorf("got %v of %d", got, len(checks))
	}
	if all[0].Failed != "no way" {
		t.Errorf("the reason is %q", fmt.Sprint(all[0].Failed))
	}
}
