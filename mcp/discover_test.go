package mcp_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

const serverInfo = `"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1.0"}`

func result(t testing.TB, raw string) *mcp.Result {
	t.Helper()
	return &mcp.Result{Value: value(t, raw)}
}

func TestDiscoverResultSaysWhatInitializeResultSays(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{
			"all", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"x":1.0},"serverInfo":{"name":"s","version":"1.0"},"instructions":"do","_meta":{"a":1E2}}`,
			`{"resultType":"complete","supportedVersions":["2025-11-25"],"capabilities":{"tools":{"listChanged":true},"x":1.0},"instructions":"do","_meta":{"a":1E2,` + serverInfo + `}}`,
		},
		{
			"least", `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1.0"}}`,
			`{"resultType":"complete","supportedVersions":["2024-11-05"],"capabilities":{},"_meta":{` + serverInfo + `}}`,
		},
		{"nothing", `{}`, `{"resultType":"complete","supportedVersions":[],"capabilities":{}}`},
		{"malformed capabilities", `{"capabilities":[]}`, `{"resultType":"complete","supportedVersions":[],"capabilities":{}}`},
		{"malformed name", `{"serverInfo":"s","_meta":{"a":1}}`, `{"resultType":"complete","supportedVersions":[],"capabilities":{},"_meta":{"a":1}}`},
		{
			"malformed _meta", `{"serverInfo":{"name":"s","version":"1.0"},"_meta":"x"}`,
			`{"resultType":"complete","supportedVersions":[],"capabilities":{},"_meta":{` + serverInfo + `}}`,
		},
		{
			"members of others", `{"x":1.0,"capabilities":{},"ServerInfo":{"a":1E2},"ttlMs":1}`,
			`{"resultType":"complete","supportedVersions":[],"capabilities":{},"x":1.0,"ServerInfo":{"a":1E2}}`,
		},
		{
			"line breaks", "{\"capabilities\":{\r\n},\"serverInfo\":{\"name\":\n\"s\",\"version\":\"1.0\"}}",
			`{"resultType":"complete","supportedVersions":[],"capabilities":{},"_meta":{` + serverInfo + `}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			init := value(t, c.in)
			got := mcp.DiscoverFromInitialize(&init)
			if diff := cmp.Diff(c.want, string(got.Raw())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInitializeResultSaysWhatDiscoverResultSays(t *testing.T) {
	fallback := mcp.Implementation{Name: "backend", Version: "0"}
	for _, c := range []struct{ name, in, want string }{
		{
			"all", `{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public","capabilities":{"x":1.0},"instructions":"do","_meta":{"a":1E2,` + serverInfo + `,"b":{}}}`,
			`{"protocolVersion":"2025-06-18","capabilities":{"x":1.0},"serverInfo":{"name":"s","version":"1.0"},"instructions":"do","_meta":{"a":1E2,"b":{}}}`,
		},
		{"_meta that is emptied", `{"capabilities":{},"_meta":{` + serverInfo + `}}`, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1.0"}}`},
		{"no name", `{"capabilities":{}}`, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"backend","version":"0"}}`},
		{
			"malformed name", `{"capabilities":{},"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":"s"}}`,
			`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"backend","version":"0"},"_meta":{"a":1}}`,
		},
		{"malformed capabilities", `{"capabilities":null}`, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"backend","version":"0"}}`},
		{
			"members of others", `{"x":1.0,"capabilities":{},"serverInfo":{"name":"not so"},"y":[1E2]}`,
			`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"backend","version":"0"},"x":1.0,"y":[1E2]}`,
		},
		{"nothing", ``, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"backend","version":"0"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mcp.InitializeFromDiscover(result(t, c.in), mcp.Revision20250618, fallback)
			if diff := cmp.Diff(c.want, string(got.Raw())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInitializeResultSurvivesTheWayThroughDiscover(t *testing.T) {
	for _, in := range []string{
		`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`,
		`{"protocolVersion":"2024-11-05","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"s","title":"S","version":"1","x":1.0},"instructions":"é\n","_meta":{"a":{"b":1E2}}}`,
		`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"},"vendor":{"a":1.0},"Capabilities":[1E2,"\u2028"]}`,
	} {
		init := value(t, in)
		discover := mcp.DiscoverFromInitialize(&init)
		revision, _ := init.LookupString("protocolVersion")
		got := mcp.InitializeFromDiscover(&discover, mcp.Revision(revision), mcp.Implementation{Name: "fallback"})
		if diff := cmp.Diff(in, string(got.Raw())); diff != "" {
			t.Error(diff)
		}
	}
}

func TestImplementationIsWritten(t *testing.T) {
	for _, c := range []struct {
		in   mcp.Implementation
		want string
	}{
		{mcp.Implementation{Name: "a", Version: "1"}, `{"name":"a","version":"1"}`},
		{mcp.Implementation{Name: "a", Title: `"A"`, Version: "1"}, `{"name":"a","title":"\"A\"","version":"1"}`},
		{mcp.Implementation{}, `{"name":"","version":""}`},
		{mcp.Implementation{Name: "\xff"}, `{"name":"unknown","version":"0"}`},
	} {
		if got := string(c.in.JSON()); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestServerInfoIsWhatTheServerCallsItself(t *testing.T) {
	for in, want := range map[string]string{
		`{"_meta":{` + serverInfo + `}}`:                             `{"name":"s","version":"1.0"}`,
		`{"_meta":{"io.modelcontextprotocol/serverInfo":null}}`:      ``,
		`{"serverInfo":{"name":"of another era","version":"1.0"}}`:   ``,
		`{"_meta":{"serverInfo":{"name":"elsewhere","version":""}}}`: ``,
		``: ``,
	} {
		if got := mcp.ServerInfo(result(t, in)); string(got) != want || want == "" && got != nil {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestSupportedVersionsAreRead(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []mcp.Revision
	}{
		{"B113 without resultType", `{"capabilities":{"tools":{}},"supportedVersions":["2026-07-28"]}`, []mcp.Revision{"2026-07-28"}},
		{"B113 without supportedVersions", `{"capabilities":{"tools":{}}}`, nil},
		{"unknown ones too", `{"supportedVersions":["2099-01-01","2025-11-25"]}`, []mcp.Revision{"2099-01-01", "2025-11-25"}},
		{"other types are passed over", `{"supportedVersions":[1,null,"2026-07-28",{}]}`, []mcp.Revision{"2026-07-28"}},
		{"empty", `{"supportedVersions":[]}`, nil},
		{"no array", `{"supportedVersions":"2026-07-28"}`, nil},
		{"null", `{"supportedVersions":null}`, nil},
		{"absent result", ``, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mcp.SupportedVersions(result(t, c.in)); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestListenerListsItsOwnVersions(t *testing.T) {
	in := result(t, `{"a":1.0,"supportedVersions":["2025-11-25"],"b":2}`)
	got := mcp.WithSupportedVersions(in, []mcp.Revision{"2026-07-28", "2025-11-25"})
	if want := `{"a":1.0,"supportedVersions":["2026-07-28","2025-11-25"],"b":2}`; string(got.Raw()) != want {
		t.Errorf("got  %s\nwant %s", got.Raw(), want)
	}
	if none := mcp.WithSupportedVersions(in, nil); string(none.Raw()) != `{"a":1.0,"supportedVersions":[],"b":2}` {
		t.Errorf("no versions: %s", none.Raw())
	}
}

func TestServerCapabilitiesAreRead(t *testing.T) {
	for _, c := range []struct {
		name, in                                 string
		logging, tools, prompts, resources, subs bool
	}{
		{"all", `{"logging":{},"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}`, true, true, true, true, true},
		{"none", `{}`, false, false, false, false, false},
		{"without list changes", `{"logging":{},"tools":{},"prompts":{},"resources":{}}`, true, false, false, false, false},
		{"false", `{"tools":{"listChanged":false},"resources":{"subscribe":false,"listChanged":true}}`, false, false, false, true, false},
		{"members of a vendor", `{"x":{},"tools":{"x":1,"listChanged":true},"logging":{"x":1}}`, true, true, false, false, false},
		{"null ones", `{"logging":null,"tools":null,"resources":{"subscribe":true}}`, false, false, false, false, true},
		{"malformed whole", `[]`, false, false, false, false, false},
		{"null whole", `null`, false, false, false, false, false},
		{"malformed one leaves the rest", `{"tools":true,"logging":1,"prompts":{"listChanged":"true"},"resources":{"subscribe":true,"listChanged":1}}`, false, false, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := value(t, `{"capabilities":`+c.in+`}`)
			got := mcp.ReadServerCapabilities(&v)
			if (got.Logging != nil) != c.logging || got.Tools.ListChanged != c.tools || got.Prompts.ListChanged != c.prompts ||
				got.Resources.ListChanged != c.resources || got.Resources.Subscribe != c.subs {
				t.Errorf("got %+v", got)
			}
			want := mcp.Filter{ToolsListChanged: c.tools, PromptsListChanged: c.prompts, ResourcesListChanged: c.resources}
			if diff := cmp.Diff(want, got.ListFilter()); diff != "" {
				t.Error(diff)
			}
		})
	}
	absent := jsonrpc.Value{}
	if got := mcp.ReadServerCapabilities(&absent); got.Logging != nil || !cmp.Equal(got.ListFilter(), mcp.Filter{}) {
		t.Errorf("nothing gives %+v", got)
	}
}

func TestCapabilitiesThatNeedTheUser(t *testing.T) {
	for _, c := range []struct {
		in    string
		needs bool
	}{
		{``, false},
		{`{}`, false},
		{`{"experimental":{"x":1.0}}`, false},
		{`{"elicitation":{}}`, true},
		{`{"sampling":{"tools":{}},"x":1}`, true},
		{`{"x":1,"roots":{"listChanged":true},"y":2}`, true},
		{`{"elicitation":{"url":{}},"sampling":{},"roots":{}}`, true},
		{`{"experimental":{"elicitation":{}}}`, false},
		{`{"elicitation":null,"sampling":null,"roots":null}`, false},
	} {
		t.Run(c.in, func(t *testing.T) {
			if got := mcp.NeedsUser([]byte(c.in)); got != c.needs {
				t.Errorf("needs the user: %t", got)
			}
		})
	}
}
