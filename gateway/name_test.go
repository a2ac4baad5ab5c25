package gateway_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestNames has the hashes left out, which TestNamesOfNow shows.
func TestNames_B146(t *testing.T) {
	long := strings.Repeat("long_", 24)
	for _, tt := range []struct {
		backend, name string
		limit         int
		want          string
	}{
		{"files", "read", 0, "files__read"},
		{"my-files", "read_file", 0, "my-files__read_file"},
		{"my_files", "read", 0, "my_files__read"},
		{"files", "", 0, "files_0"},
		{"files", "a/b", 0, "files_a_b_0"},
		{"files", "a b", 0, "files_a_b_0"},
		{"files", "ü", 0, "files_0"},
		{"files", "a.b-c_d", 0, "files_a_b-c_d_0"},
		{"ü", "ü", 0, "x_0"},
		{"a", "_x", 0, "a_x_0"},
		{"a_", "x", 0, "a_x_0"},
		{"a", "b__x", 0, "a_b_x_0"},
		{"a", "__x", 0, "a_x_0"},
		{strings.Repeat("s", 30), long, 0, strings.Repeat("s", 25) + "_" + long[:24] + "_0"},
		{strings.Repeat("s", 30), long, 128, strings.Repeat("s", 30) + "_" + strings.TrimRight(long[:128-14-31], "_") + "_0"},
		{"s", strings.Repeat("t", 29), 32, "s__" + strings.Repeat("t", 29)},
		{"s", strings.Repeat("t", 30), 1, "s_" + strings.Repeat("t", 16) + "_0"},
		{"s", strings.Repeat("t", 125), 500, "s__" + strings.Repeat("t", 125)},
		{"s", strings.Repeat("t", 126), 500, "s_" + strings.Repeat("t", 112) + "_0"},
		{"", "read", 0, "read"},
		{"", "a__b", 0, "a__b"},
		{"", "__x", 0, "__x"},
		{"", "list_organizations", 0, "list_organizations"},
		{"", "a.b", 0, "a_b_0"},
		{"", "looks_0abcdefghijkl", 0, "looks_0abcdefghijkl_0"},
	} {
		t.Run(fmt.Sprintf("%.10s %.10s %d", tt.backend, tt.name, tt.limit), func(t *testing.T) {
			got := gateway.ExposedName(tt.backend, tt.name, tt.limit)
			if strings.HasSuffix(tt.want, "_0") {
				got = digest.ReplaceAllString(got, "_0")
			}
			if got != tt.want {
				t.Errorf("name %q, want %q", got, tt.want)
			}
		})
	}
}

var digest = regexp.MustCompile(`_0[a-z2-7]{12}$`)

// TestNamesOfNow: names that hosts have remembered, in permissions for example, must
// lead to the same tools after an update.
func TestNamesOfNow(t *testing.T) {
	for _, tt := range []struct{ backend, name, want string }{
		{"files", "a/b", "files_a_b_0hvg5nlrd7t6b"},
		{"a", "b__x", "a_b_x_0n3j4tgff4ixa"},
		{"", "a.b", "a_b_0e74uovg64haf"},
	} {
		if got := gateway.ExposedName(tt.backend, tt.name, 0); got != tt.want {
			t.Errorf("ExposedName(%q, %q) = %q, want %q", tt.backend, tt.name, got, tt.want)
		}
	}
}

// aName is a name as people give them, or as nobody should.
func aName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[ab_]{0,6}`),
		rapid.StringMatching(`[a-zA-Z0-9_.-]{1,140}`),
		rapid.StringMatching(`(a_){20,40}[xy]`),
		rapid.StringMatching(`[a-c]{0,3}_0[a-z2-7]{12}`),
		rapid.String(),
	)
}

type feature struct{ backend, name string }

func aFeature(single bool) *rapid.Generator[feature] {
	return rapid.Custom(func(t *rapid.T) feature {
		f := feature{name: aName().Draw(t, "name")}
		if !single {
			f.backend = aName().Filter(func(s string) bool { return s != "" }).Draw(t, "backend")
		}
		return f
	})
}

var legal = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func TestNamesAreLegalAndDifferent_B145_B146(t *testing.T) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprintf("single %t", single), rapid.MakeCheck(func(t *rapid.T) {
			limit := rapid.IntRange(gateway.MinMaxName, gateway.MaxMaxName).Draw(t, "limit")
			all := rapid.SliceOfDistinct(aFeature(single), func(f feature) feature { return f }).Draw(t, "features")
			seen := make(map[string]feature)
			for _, f := range all {
				name := gateway.ExposedName(f.backend, f.name, limit)
				if len(name) > limit || !legal.MatchString(name) {
					t.Fatalf("%q is shown as %q", f, name)
				}
				if other, there := seen[name]; there {
					t.Fatalf("%q and %q are both shown as %q", f, other, name)
				}
				seen[name] = f
			}
		}))
	}
}

// TestNamesLeadBack: whatever backends have, in whatever order they come, every tool
// that is listed can be called, and is the one that was listed.
func TestNamesLeadBack_B145_B146_TH4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(aFeature(false), 1, 12, func(f feature) feature { return f }).Draw(t, "features")
		byBackend := make(map[string][]string)
		for _, f := range all {
			byBackend[f.backend] = append(byBackend[f.backend], f.name)
		}
		var first []string
		for range 2 {
			g := gateway.New(&gateway.Options{AlwaysPrefix: true, ListBudget: patience})
			names := rapid.Permutation(keysOf(byBackend)).Draw(t, "order")
			for _, backend := range names {
				if len(backend) > gateway.MaxBackendName {
					continue
				}
				if err := g.Add(backend, named(backend, byBackend[backend]), nil); err != nil {
					t.Fatal(err)
				}
			}
			shown := shownTools(t, g)
			if first == nil {
				first = shown
			} else if diff := cmp.Diff(first, shown); diff != "" {
				t.Fatalf("in another order (-first +now):\n%s", diff)
			}
			if len(shown) != len(all) {
				t.Fatalf("%d of %d tools are shown", len(shown), len(all))
			}
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func keysOf(m map[string][]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// named is a backend that answers calls with its name and that of the tool, and puts
// both into the descriptions of its tools.
func named(backend string, tools []string) *fake {
	f := newFake()
	var text strings.Builder
	text.WriteString(`{"tools":[`)
	for i, name := range tools {
		if i > 0 {
			text.WriteString(",")
		}
		text.WriteString(string(mustJSON(map[string]string{"name": name, "description": backend + "\x00" + name})))
	}
	f.answer(mcp.MethodListTools, text.String()+`]}`)
	f.handle(mcp.MethodCallTool, echoOf(backend))
	return f
}

// shownTools lists and calls all tools, and returns their names in the order of the
// list.
func shownTools(t *rapid.T, g *gateway.Gateway) (names []string) {
	page, err := g.Handle(t.Context(), request(mcp.MethodListTools, `{}`), mcp.NoCaller{})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := page.Lookup("tools")
	for tool := range jsonrpc.IndexedItems(raw) {
		name, _ := tool.LookupString("name")
		description, _ := tool.LookupString("description")
		params := string(mustJSON(map[string]string{"name": name}))
		result, err := g.Handle(t.Context(), request(mcp.MethodCallTool, params), mcp.NoCaller{})
		if err != nil {
			t.Fatal(err)
		}
		if was, _ := result.LookupString("was"); was != description {
			t.Fatalf("%q was called as %q and is %q", name, was, description)
		}
		names = append(names, name)
	}
	return names
}
