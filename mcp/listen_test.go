package mcp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

func uris(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"file:///%d"`, i)
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestFilterIsRead(t *testing.T) {
	for _, c := range []struct {
		name, params string
		want         mcp.Filter
	}{
		{"B121 nothing wanted", `{"notifications":{}}`, mcp.Filter{}},
		{"B121 tools", `{"notifications":{"toolsListChanged":true}}`, mcp.Filter{ToolsListChanged: true}},
		{
			"all", `{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a","b"],"session":true}}`,
			mcp.Filter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: []string{"a", "b"}, Session: true},
		},
		{"false is not wanted", `{"notifications":{"toolsListChanged":false,"resourceSubscriptions":[]}}`, mcp.Filter{ResourceSubscriptions: []string{}}},
		{"members of a vendor", `{"notifications":{"x":1,"promptsListChanged":true},"y":2}`, mcp.Filter{PromptsListChanged: true}},
		{"any members of a vendor", `{"notifications":{"\ud800":"\ud800","x":{"a":1,"a":[1e400]},"toolsListChanged":true}}`, mcp.Filter{ToolsListChanged: true}},
		{"names in another case are others", `{"notifications":{"ToolsListChanged":true}}`, mcp.Filter{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := value(t, c.params)
			got, err := mcp.ReadFilter(&params)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	most := value(t, `{"notifications":{"resourceSubscriptions":`+uris(mcp.MaxResourceSubscriptions)+`}}`)
	if got, err := mcp.ReadFilter(&most); err != nil || len(got.ResourceSubscriptions) != mcp.MaxResourceSubscriptions {
		t.Errorf("a filter at the limit: %d resources, %v", len(got.ResourceSubscriptions), err)
	}
}

func TestFilterThatIsNoneIsRefused(t *testing.T) {
	for _, c := range []struct{ name, params, want string }{
		{"absent params", ``, "missing"},
		{"absent", `{}`, "missing"},
		{"null", `{"notifications":null}`, "missing"},
		{"a string", `{"notifications":"all"}`, "no filter"},
		{"an array", `{"notifications":[]}`, "no filter"},
		{"a member of another type", `{"notifications":{"toolsListChanged":"yes"}}`, "no filter"},
		{"a resource of another type", `{"notifications":{"resourceSubscriptions":[1]}}`, "no filter"},
		{"a member twice", `{"notifications":{"toolsListChanged":true,"toolsListChanged":false}}`, "no filter"},
		{"a member twice, once with escapes", `{"notifications":{"toolsListChanged":true,"tools\u004cistChanged":false}}`, "no filter"},
		{"too many resources", `{"notifications":{"resourceSubscriptions":` + uris(mcp.MaxResourceSubscriptions+1) + `}}`, "MaxResourceSubscriptions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := value(t, c.params)
			_, err := mcp.ReadFilter(&params)
			e, ok := errors.AsType[*jsonrpc.Error](err)
			if !ok || e.Code != jsonrpc.CodeInvalidParams || !strings.Contains(e.Message, c.want) {
				t.Errorf("got %v, want %d with %q", err, jsonrpc.CodeInvalidParams, c.want)
			}
		})
	}
}

func TestFilterLetsThroughOnlyWhatWasAskedFor(t *testing.T) {
	all := map[string]string{
		mcp.NotificationToolsListChanged:     "tools",
		mcp.NotificationPromptsListChanged:   "prompts",
		mcp.NotificationResourcesListChanged: "resources",
		mcp.NotificationAcknowledged:         "always",
		mcp.NotificationMessage:              "session",
		mcp.NotificationElicitationComplete:  "session",
		"x/vendor":                           "session",
	}
	for _, c := range []struct {
		name   string
		filter mcp.Filter
	}{
		{"nothing", mcp.Filter{}},
		{"tools", mcp.Filter{ToolsListChanged: true}},
		{"prompts", mcp.Filter{PromptsListChanged: true}},
		{"resources", mcp.Filter{ResourcesListChanged: true}},
		{"session", mcp.Filter{Session: true}},
	} {
		t.Run("B121 "+c.name, func(t *testing.T) {
			for method, kind := range all {
				want := kind == "always" || kind == c.name
				if got := c.filter.Wants(&mcp.Notification{Method: method}); got != want {
					t.Errorf("%s passes: %t", method, got)
				}
			}
		})
	}
}

func TestUpdatesPassForTheResourceAndItsParts(t *testing.T) {
	for _, c := range []struct {
		of, uri string
		want    bool
	}{
		{"file:///a", "file:///a", true},
		{"file:///a", "file:///a/b", true},
		{"file:///a/", "file:///a/b", true},
		{"file:///a", "file:///a?q", true},
		{"file:///a", "file:///a#f", true},
		{"file:///", "file:///a", true},
		{"file:///a/", "file:///a", false},
		{"file:///a", "file:///ab", false},
		{"file:///a", "file:///aé", false},
		{"file:///a/b", "file:///a", false},
		{"file:///a", "FILE:///a", false},
		{"", "/a", false},
		{"a", "", false},
	} {
		t.Run("B121 "+c.of+" "+c.uri, func(t *testing.T) {
			f := mcp.Filter{ResourceSubscriptions: []string{"x:other", c.of}}
			n, err := mcp.NewNotification(mcp.NotificationResourceUpdated, map[string]string{"uri": c.uri})
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Wants(n); got != c.want {
				t.Errorf("passes: %t", got)
			}
		})
	}
	f := mcp.Filter{ResourceSubscriptions: []string{"a"}, Session: true}
	if f.Wants(&mcp.Notification{Method: mcp.NotificationResourceUpdated}) {
		t.Error("an update of nothing passes")
	}
}

func TestFilterIsEmptyIfItAsksForNothingModern(t *testing.T) {
	for _, c := range []struct {
		filter mcp.Filter
		want   bool
	}{
		{mcp.Filter{}, true},
		{mcp.Filter{Session: true}, true},
		{mcp.Filter{ResourceSubscriptions: []string{}}, true},
		{mcp.Filter{ToolsListChanged: true}, false},
		{mcp.Filter{PromptsListChanged: true}, false},
		{mcp.Filter{ResourcesListChanged: true}, false},
		{mcp.Filter{ResourceSubscriptions: []string{"a"}}, false},
	} {
		if got := c.filter.Empty(); got != c.want {
			t.Errorf("%+v is empty: %t", c.filter, got)
		}
	}
}

func TestAcknowledgementConfirmsTheModernPart(t *testing.T) {
	for _, c := range []struct {
		name   string
		filter mcp.Filter
		want   string
	}{
		{"B121 nothing granted", mcp.Filter{}, `{"notifications":{}}`},
		{"B121 session is not told", mcp.Filter{Session: true}, `{"notifications":{}}`},
		{
			"B121 granted", mcp.Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"file:///é"}, Session: true},
			`{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///é"]}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.filter
			n := c.filter.Acknowledge()
			if n.Method != mcp.NotificationAcknowledged || string(n.Params.Raw()) != c.want {
				t.Errorf("got %s %s", n.Method, n.Params.Raw())
			}
			if diff := cmp.Diff(before, c.filter); diff != "" {
				t.Errorf("the filter was changed: %s", diff)
			}
		})
	}
}

func TestFilterRoundTripsThroughParams(t *testing.T) {
	want := mcp.Filter{PromptsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: []string{`a"b`, "世界"}, Session: true}
	params := want.Params()
	got, err := mcp.ReadFilter(&params)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	bad := mcp.Filter{ResourceSubscriptions: []string{"\xff"}}.Params()
	if string(bad.Raw()) != `{"notifications":{}}` {
		t.Errorf("a resource that is not UTF-8 gives %s", bad.Raw())
	}
}

func TestSessionMemberDoesNotGoOnAModernWire(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"absent", `{ "notifications" : {"toolsListChanged":true}, "x":1 }`, `{ "notifications" : {"toolsListChanged":true}, "x":1 }`},
		{"alone", `{"notifications":{"session":true}}`, `{"notifications":{}}`},
		{
			"beside others", `{"a":1.0,"notifications":{"x":1E2,"session":true,"toolsListChanged":true},"_meta":{"b":2}}`,
			`{"a":1.0,"notifications":{"x":1E2,"toolsListChanged":true},"_meta":{"b":2}}`,
		},
		{"false", `{"notifications":{"session":false}}`, `{"notifications":{}}`},
		{"no filter", `{"session":true}`, `{"session":true}`},
		{"absent params", ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := value(t, c.in)
			got := mcp.WithoutSession(&params)
			if string(got.Raw()) != c.want {
				t.Errorf("got  %s\nwant %s", got.Raw(), c.want)
			}
		})
	}
}

// TestChanges: what a filter lets through is told by the notifications that say so.
func TestChanges(t *testing.T) {
	const all = mcp.ToolsChanged | mcp.PromptsChanged | mcp.ResourcesChanged
	for _, tt := range []struct {
		filter mcp.Filter
		want   []string
	}{
		{mcp.Filter{Session: true, ResourceSubscriptions: []string{"a:b"}}, nil},
		{mcp.Filter{PromptsListChanged: true}, []string{mcp.NotificationPromptsListChanged}},
		{mcp.Filter{ResourcesListChanged: true, ToolsListChanged: true}, []string{mcp.NotificationToolsListChanged, mcp.NotificationResourcesListChanged}},
	} {
		var got []string
		var changes mcp.Changes
		for _, n := range (all & tt.filter.Changes()).AppendNotifications(nil) {
			got = append(got, n.Method)
			changes |= mcp.ChangesOf(n.Method)
			if !tt.filter.Wants(n) {
				t.Errorf("%+v does not want %s", tt.filter, n.Method)
			}
		}
		if !slices.Equal(got, tt.want) || changes != tt.filter.Changes() {
			t.Errorf("%+v: %v, which say %b", tt.filter, got, changes)
		}
	}
	if c := mcp.ChangesOf(mcp.NotificationResourceUpdated); c != 0 {
		t.Errorf("a resource that was updated: %b", c)
	}
}
