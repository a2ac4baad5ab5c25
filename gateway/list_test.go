package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

// TestItemsKeepTheirBytes: numbers, order, unknown members, escapes.
func TestItemsKeepTheirBytes(t *testing.T) {
	const tool = `{"x":1e2,"name":"read","inputSchema":{"maximum":9007199254740993,"type":"object"},"annotations":{"readOnlyHint":false},"title":"\u00e4"}`
	const resource = `{"uri":"x:1","name":"r", "size":1.0}`
	b := newFake()
	b.answer(mcp.MethodListTools, `{"tools":[`+tool+`]}`)
	b.answer(mcp.MethodListResources, `{"resources":[`+resource+`]}`)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"one": b, "two": newFake()})
	for _, tt := range []struct{ method, want string }{
		{mcp.MethodListTools, `{"tools":[` + strings.Replace(tool, `"read"`, `"one__read"`, 1) + `]`},
		{mcp.MethodListResources, `{"resources":[` + resource + `]`},
	} {
		result := do(t, g, tt.method, `{}`)
		if got := string(result.Raw()); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s\nwant %s", tt.method, got, tt.want)
		}
	}
	legacy := doAs(t, g, mcp.Metadata{Revision: mcp.NewestLegacy}, mcp.MethodListPrompts, `{}`)
	if got := string(legacy.Raw()); got != `{"prompts":[]}` {
		t.Errorf("a legacy client gets %s", got)
	}
}

// TestLongListsHavePages: which are of one list, also when a backend comes or goes
// between two of them.
func TestLongListsHavePages(t *testing.T) {
	large := newFake()
	var items, want []string
	for i := range 40 {
		items = append(items, fmt.Sprintf(`{"name":"t%02d","description":%q}`, i, strings.Repeat("x", 100_000)))
		want = append(want, fmt.Sprintf("m__t%02d", i))
	}
	large.answer(mcp.MethodListTools, `{"tools":[`+strings.Join(items, ",")+`]}`)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"m": large, "z": newFake("last")})
	if diff := cmp.Diff(append(want, "z__last"), listTools(t, g)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if n := large.times(mcp.MethodListTools); n != 1 {
		t.Errorf("the backend was asked %d times for pages of one list", n)
	}
	first := do(t, g, mcp.MethodListTools, `{}`)
	if len(first.Raw()) > 1<<20+200_000 {
		t.Errorf("a page has %d bytes", len(first.Raw()))
	}
	cursor, _ := first.Lookup("nextCursor")
	add(t, g, "a", newFake("early"))
	second := do(t, g, mcp.MethodListTools, fmt.Sprintf(`{"cursor":%s}`, cursor))
	tools := second.Get("tools")
	if at := jsonrpc.Elements(tools.Raw())[0]; !strings.Contains(string(at[:30]), `"m__t11"`) {
		t.Errorf("the second page begins with %.40s", at)
	}
	g.Remove("m")
	if rest := do(t, g, mcp.MethodListTools, fmt.Sprintf(`{"cursor":%s}`, cursor)); !strings.Contains(string(rest.Raw()), `"z__last"`) {
		t.Errorf("without the backend that the cursor names: %s", rest.Raw())
	}
	other := newGateway(t, unhurried, map[string]mcp.Handler{"m": large, "z": newFake("last")})
	_, err := other.Handle(t.Context(), request(mcp.MethodListTools, fmt.Sprintf(`{"cursor":%s}`, cursor)), mcp.NoCaller{})
	if !strings.Contains(fmt.Sprint(err), "not known any more") {
		t.Errorf("a second page of nothing: %v", err)
	}
	_, err = g.Handle(t.Context(), request(mcp.MethodListPrompts, fmt.Sprintf(`{"cursor":%s}`, cursor)), mcp.NoCaller{})
	if !strings.Contains(fmt.Sprint(err), "not one of this list") {
		t.Errorf("the cursor of another list: %v", err)
	}
}

// TestConflicts: the same URI at two backends, and a name twice at one.
func TestConflicts_B145(t *testing.T) {
	one, two := listed("x:1"), listed("x:1")
	twice := newFake("t", "t")
	for range 2 {
		g := newGateway(t, unhurried, map[string]mcp.Handler{"one": one, "two": two, "twice": twice})
		for range 2 {
			if diff := cmp.Diff([]string{"x:1"}, list(t, g, mcp.MethodListResources, "resources", "uri")); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"twice__t"}, listTools(t, g)); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		}
		want := []gateway.Conflict{
			{List: mcp.MethodListResources, Name: "x:1", Shown: "one", Hidden: "two"},
			{List: mcp.MethodListTools, Name: "t", Shown: "twice", Hidden: "twice"},
		}
		if diff := cmp.Diff(want, g.Conflicts()); diff != "" {
			t.Errorf("conflicts (-want +got):\n%s", diff)
		}
		one.answer(mcp.MethodReadResource, `{"contents":[],"from":"one"}`)
		two.answer(mcp.MethodReadResource, `{"contents":[],"from":"two"}`)
		result := do(t, g, mcp.MethodReadResource, `{"uri":"x:1"}`)
		if from, _ := result.LookupString("from"); from != "one" {
			t.Errorf("it is read from %q", from)
		}
		g.Remove("one")
		if got := g.Conflicts(); len(got) != 1 {
			t.Errorf("conflicts with a backend that was removed: %v", got)
		}
		result = do(t, g, mcp.MethodReadResource, `{"uri":"x:1"}`)
		if from, _ := result.LookupString("from"); from != "two" {
			t.Errorf("afterwards it is read from %q", from)
		}
	}
}

// TestConflictsAreBounded: a server may have names of any length, and others each time.
func TestConflictsAreBounded(t *testing.T) {
	b := newFake()
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	for i := range 1100 {
		uri := fmt.Sprint("x:", i, strings.Repeat("ü", 1000))
		b.answer(mcp.MethodListResources, `{"resources":[{"uri":"`+uri+`"},{"uri":"`+uri+`"}]}`)
		list(t, g, mcp.MethodListResources, "resources", "uri")
	}
	all := g.Conflicts()
	if len(all) != 1000 {
		t.Errorf("%d conflicts are remembered", len(all))
	}
	for _, c := range all {
		if len(c.Name) > 256 || !utf8.ValidString(c.Name) {
			t.Fatalf("%d bytes of a name are remembered: %q", len(c.Name), c.Name)
		}
	}
}

func TestDiscover(t *testing.T) {
	some := newFake()
	some.answer(mcp.MethodDiscover, `{"capabilities":{"tools":{},"logging":{},"tasks":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"instructions":"Read."}`)
	other := newFake()
	other.answer(mcp.MethodDiscover, `{"capabilities":{"resources":{"subscribe":true},"completions":{}},"instructions":"Write."}`)
	silent := newFake()
	silent.hang(mcp.MethodDiscover)
	wordy := newFake()
	wordy.answer(mcp.MethodDiscover, `{"capabilities":{"tools":{},"logging":{}},"instructions":"x`+strings.Repeat("ü", 32<<10)+`"}`)
	const (
		ofSome  = `{"tools":{"listChanged":true},"logging":{}}`
		ofBoth  = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}`
		unknown = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`
	)
	for _, tt := range []struct {
		name         string
		backends     map[string]mcp.Handler
		capabilities string
		instructions string
	}{
		{"none", nil, unknown, ""},
		{"one", map[string]mcp.Handler{"a": some}, ofSome, "Read."},
		{"two", map[string]mcp.Handler{"a": some, "b": other}, ofBoth, "[a]\nRead.\n\n[b]\nWrite."},
		{"one that is wordy", map[string]mcp.Handler{"w": wordy}, ofSome, "x" + strings.Repeat("ü", 16<<10-1)},
		{"one that is silent", map[string]mcp.Handler{"a": some, "s": silent}, unknown, "[a]\nRead."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGateway(t, &gateway.Options{Info: mcp.Implementation{Name: "g", Version: "2"}}, tt.backends)
				for _, most := range []time.Duration{gateway.DefaultListBudget, gateway.DefaultKeptBudget} {
					began := time.Now()
					result := do(t, g, mcp.MethodDiscover, `{}`)
					if took := time.Since(began); took > most {
						t.Errorf("it takes %v", took)
					}
					capabilities, _ := result.Lookup("capabilities")
					if string(capabilities) != tt.capabilities {
						t.Errorf("capabilities %s", capabilities)
					}
					if text, _ := result.LookupString("instructions"); text != tt.instructions {
						t.Errorf("instructions %q", text)
					}
					if info := string(mcp.ServerInfo(&result)); info != `{"name":"g","version":"2"}` {
						t.Errorf("the gateway calls itself %s", info)
					}
				}
			})
		})
	}
}

// TestPagesOfOneBackendAreCounted: as many as there may be are followed, and no more.
func TestPagesOfOneBackendAreCounted(t *testing.T) {
	for pages, want := range map[int]int{gateway.MaxPages: gateway.MaxPages, gateway.MaxPages + 1: 0} {
		b, n := newFake(), 0
		b.handle(mcp.MethodListTools, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			n++
			more := fmt.Sprintf(`,"nextCursor":"%d"`, n)
			if n == pages {
				more = ""
			}
			return mcp.RawResult(fmt.Appendf(nil, `{"tools":[{"name":"t%d"}]%s}`, n, more)), nil
		})
		g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
		if got := len(listTools(t, g)); got != want || n > gateway.MaxPages {
			t.Errorf("of %d pages with a tool each %d tools are shown, and %d pages asked for", pages, got, n)
		}
	}
}

// TestListThatBreaksOffIsNotShown: also if its second page is said not to be there.
func TestListThatBreaksOffIsNotShown(t *testing.T) {
	b := newFake()
	b.handle(mcp.MethodListTools, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		if _, second := req.Params.Lookup("cursor"); second {
			return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
		}
		return mcp.RawResult([]byte(`{"tools":[{"name":"first"}],"nextCursor":"2"}`)), nil
	})
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	if got := listTools(t, g); len(got) != 0 || statusOf(t, g, "b").State != gateway.Degraded {
		t.Errorf("%q are shown: %v", got, statusOf(t, g, "b"))
	}
}

// TestPagesAreForNobodyElse: since all of a list must be for the same, and what follows the
// first is put together of what is remembered, not even the last.
func TestPagesAreForNobodyElse_B155(t *testing.T) {
	for _, n := range []int{1, 25} {
		b := newFake()
		var items []string
		for i := range n {
			items = append(items, fmt.Sprintf(`{"name":"t%d","description":%q}`, i, strings.Repeat("x", 100_000)))
		}
		b.answer(mcp.MethodListTools, `{"tools":[`+strings.Join(items, ",")+`],"ttlMs":60000,"cacheScope":"public"}`)
		g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
		var scopes []string
		for params := `{}`; params != ""; {
			page := do(t, g, mcp.MethodListTools, params)
			scope, _ := page.LookupString("cacheScope")
			scopes, params = append(scopes, scope), ""
			if cursor, more := page.Lookup("nextCursor"); more {
				params = fmt.Sprintf(`{"cursor":%s}`, cursor)
			}
		}
		want := map[int][]string{1: {"public"}, 25: {"private", "private", "private"}}[n]
		if diff := cmp.Diff(want, scopes); diff != "" {
			t.Errorf("pages of %d tools (-want +got):\n%s", n, diff)
		}
	}
}
