package streamable_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

// mirrored returns the mirroring headers of a request.
func (s seen) mirrored() map[string]string {
	found := map[string]string{}
	for name, values := range s.header {
		if name == "Mcp-Method" || name == "Mcp-Name" || strings.HasPrefix(name, "Mcp-Param-") {
			found[name] = strings.Join(values, "|")
		}
	}
	return found
}

func TestNamesAreMirrored(t *testing.T) {
	p := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { writeResult(w, m, `{"tools":[]}`) }))
	c := dial(t, p.url, nil)
	long := "file:///" + strings.Repeat("u", 8<<10)
	for _, tt := range []struct{ method, param, name, want string }{
		{"tools/call", "name", "fast", "fast"},
		{"tools/call", "name", "my-hyphenated-tool", "my-hyphenated-tool"},
		{"tools/call", "name", "Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="},
		{"tools/call", "name", " padded ", "=?base64?IHBhZGRlZCA=?="},
		{"prompts/get", "name", "a\nb", sentinel("a\nb")},
		{"tools/call", "name", "a b", "a b"},
		{"tools/call", "name", "=?base64?dGVzdA==?=", sentinel("=?base64?dGVzdA==?=")},
		{"tools/call", "name", "a\r\nX-Evil: 1", sentinel("a\r\nX-Evil: 1")},
		{"resources/read", "uri", "file:///p/é.txt", sentinel("file:///p/é.txt")},
		{"resources/read", "uri", "file:///path/to/file%20name.txt", "file:///path/to/file%20name.txt"},
		{"resources/read", "uri", "https://example.com/resource?id=123", "https://example.com/resource?id=123"},
		{"resources/read", "uri", long, long},
	} {
		params := jsonrpc.Trusted(jsonrpc.AppendString([]byte(`{"`+tt.param+`":`), tt.name))
		params = jsonrpc.Trusted(append(slices.Clone(params.Raw()), '}'))
		if _, err := c.Handle(t.Context(), &mcp.Request{Method: tt.method, Params: params}, mcp.NoCaller{}); err != nil {
			t.Fatal(err)
		}
		all := p.seen(tt.method)
		want := map[string]string{"Mcp-Method": tt.method, "Mcp-Name": tt.want}
		if diff := cmp.Diff(want, all[len(all)-1].mirrored()); diff != "" {
			t.Errorf("B118: %.50q (-want +got):\n%s", tt.name, diff)
		}
	}
	// Other methods have no name, and no method smuggles a header in.
	for _, s := range p.seen("tools/list") {
		if diff := cmp.Diff(map[string]string{"Mcp-Method": "tools/list"}, s.mirrored()); diff != "" {
			t.Error(diff)
		}
	}
	before := len(p.seen(""))
	_, err := c.Handle(t.Context(), &mcp.Request{Method: "a\r\nX-Evil: 1"}, mcp.NoCaller{})
	if e := jsonrpc.ToWire(err); err == nil || e.Code != jsonrpc.CodeMethodNotFound || len(p.seen("")) != before {
		t.Errorf("a method with a line break: %v", err)
	}
}

const annotatedTools = `{"tools":[` +
	`{"name":"valid","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"Method"},` +
	`"flag":{"type":"boolean","x-mcp-header":"Flag"},"query":{"type":"string"},"o":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"Inner"}}}}}},` +
	`{"name":"duplicate","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"region"}}}},` +
	`{"name":"empty","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":""}}}},` +
	`{"name":"break","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"X\r\nY"}}}},` +
	`{"name":"number","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}},` +
	`{"name":"items","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}},` +
	`{"name":"plain","inputSchema":{"type":"object"}}],"vendor":1.0}`

func TestParametersAreMirrored(t *testing.T) {
	p := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "tools/list" {
			writeResult(w, m, annotatedTools)
			return
		}
		writeResult(w, m, `{}`)
	}))
	var log journal
	opts := knownEra(mcp.Modern)
	opts.Logger = log.logger()
	c := dial(t, p.url, opts)
	for _, tt := range []struct {
		arguments string
		want      map[string]string // nil for a refusal
	}{
		{`{"region":"us-west1","query":"SELECT"}`, map[string]string{"Region": "us-west1"}},
		{`{"region":"Zürich"}`, map[string]string{"Region": sentinel("Zürich")}},
		{`{"region":""}`, map[string]string{"Region": ""}},
		{`{"region":"tab\tinside"}`, map[string]string{"Region": "tab\tinside"}},
		{`{"region":"=?base64?literal?="}`, map[string]string{"Region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}},
		{`{"region":null}`, map[string]string{}},
		{`{}`, map[string]string{}},
		{`{"n":42}`, map[string]string{"Method": "42"}},
		{`{"n":-7,"flag":true}`, map[string]string{"Method": "-7", "Flag": "true"}},
		{`{"flag":false}`, map[string]string{"Flag": "false"}},
		{`{"n":9007199254740991}`, map[string]string{"Method": "9007199254740991"}},
		{`{"n":9007199254740993}`, nil},
		{`{"o":{"x":"deep"}}`, map[string]string{"Inner": "deep"}},
		{`{"o":"flat"}`, map[string]string{}},
	} {
		before := len(p.seen("tools/call"))
		_, err := c.Handle(t.Context(), toolRequest("valid", tt.arguments), mcp.NoCaller{})
		all := p.seen("tools/call")
		if tt.want == nil {
			if e := jsonrpc.ToWire(err); err == nil || e.Code != jsonrpc.CodeInvalidParams || len(all) != before {
				t.Errorf("B119: %s: %v", tt.arguments, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "valid"}
		for name, value := range maps.All(tt.want) {
			want["Mcp-Param-"+name] = value
		}
		if diff := cmp.Diff(want, all[len(all)-1].mirrored()); diff != "" {
			t.Errorf("B119: %s (-want +got):\n%s", tt.arguments, diff)
		}
	}
	// Listed once, before the first call.
	if n := len(p.seen("tools/list")); n != 1 {
		t.Errorf("the tools were listed %d times", n)
	}
	list, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListTools}, mcp.NoCaller{})
	if err != nil {
		t.Fatal(err)
	}
	got := string(list.Raw())
	for _, name := range []string{"duplicate", "empty", "break", "number", "items"} {
		if strings.Contains(got, `"`+name+`"`) || !strings.Contains(log.String(), "name="+name) {
			t.Errorf("B119: %s is in the list, or not in the log", name)
		}
	}
	if !strings.Contains(got, `"valid"`) || !strings.Contains(got, `"plain"`) || !strings.Contains(got, `"vendor":1.0`) {
		t.Errorf("B119: the list is %s", got)
	}
	// Headers that came from elsewhere go on.
	req := toolRequest("plain", "{}")
	req.Meta.Headers = map[string]string{"Mcp-Param-Tenant": "blue"}
	if _, err := c.Handle(t.Context(), req, mcp.NoCaller{}); err != nil {
		t.Fatal(err)
	}
	all := p.seen("tools/call")
	if got := all[len(all)-1].header.Get("Mcp-Param-Tenant"); got != "blue" {
		t.Errorf("an unknown header became %q", got)
	}
}

func TestToolsAreListedOnceForAll(t *testing.T) {
	p := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "tools/list" {
			<-time.After(20 * time.Millisecond)
			writeResult(w, m, annotatedTools)
			return
		}
		writeResult(w, m, `{}`)
	}))
	c := dial(t, p.url, nil)
	var calling sync.WaitGroup
	for range 8 {
		calling.Go(func() {
			if _, err := c.Handle(t.Context(), toolRequest("valid", `{"region":"eu"}`), mcp.NoCaller{}); err != nil {
				t.Error(err)
			}
		})
	}
	calling.Wait()
	if n := len(p.seen("tools/list")); n != 1 {
		t.Errorf("the tools were listed %d times", n)
	}
	for _, s := range p.seen("tools/call") {
		if s.header.Get("Mcp-Param-Region") != "eu" {
			t.Errorf("B119: a call has the headers %v", s.mirrored())
		}
	}
}

func TestHeaderMismatchIsMended(t *testing.T) {
	// The tool gets an annotation after it has been listed.
	var mu sync.Mutex
	lists, refusals := 0, 0
	p := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		mu.Lock()
		defer mu.Unlock()
		name, _ := m.Body.LookupString("name")
		switch {
		case string(m.Method) == "tools/list":
			lists++
			header := ""
			if lists > 1 {
				header = `,"x-mcp-header":"Region"`
			}
			writeResult(w, m, `{"tools":[{"name":"late","inputSchema":{"type":"object","properties":{"region":{"type":"string"`+header+`}}}}]}`)
		case r.Header.Get("Mcp-Param-Region") == "" || name == "never":
			refusals++
			writeError(w, 400, m, jsonrpc.CodeHeaderMismatch, "Header mismatch")
		default:
			writeResult(w, m, `{"ok":true}`)
		}
	}))
	c := dial(t, p.url, nil)
	got, err := c.Handle(t.Context(), toolRequest("late", `{"region":"eu"}`), mcp.NoCaller{})
	if err != nil || string(got.Raw()) != `{"ok":true}` || lists != 2 || refusals != 1 {
		t.Errorf("%s, %v after %d lists and %d refusals", got.Raw(), err, lists, refusals)
	}
	// Once, and no more.
	_, err = c.Handle(t.Context(), toolRequest("never", `{"region":"eu"}`), mcp.NoCaller{})
	if e := jsonrpc.ToWire(err); !jsonrpc.FromPeer(err) || e.Code != jsonrpc.CodeHeaderMismatch || refusals != 3 || lists != 3 {
		t.Errorf("%v after %d lists and %d refusals", err, lists, refusals)
	}
}

func TestListingForHeadersIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		cursor func(n int) string
		lists  int
	}{
		"pages":                              {func(n int) string { return fmt.Sprintf(`"p\"%d"`, n) }, 100},
		"B142 the same page for ever":        {func(int) string { return `"p"` }, 2},
		"B142 an empty cursor for ever":      {func(int) string { return `""` }, 2},
		"B142 null":                          {func(int) string { return `null` }, 1},
		"B142 an empty cursor, then another": {func(n int) string { return []string{`""`, `"x"`, `null`}[n-1] }, 3},
	} {
		n := 0
		p := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if string(m.Method) != "tools/list" {
				writeResult(w, m, `{}`)
				return
			}
			n++
			writeResult(w, m, `{"tools":[],"nextCursor":`+tt.cursor(n)+`}`)
		}))
		c := dial(t, p.url, nil)
		for range 3 { // and not again for each call of a tool that is not listed
			if _, err := call(t, c, mcp.NoCaller{}); err != nil {
				t.Fatal(err)
			}
		}
		if n != tt.lists {
			t.Errorf("%s: %d lists, want %d", name, n, tt.lists)
		}
		if name == "pages" && !strings.Contains(p.seen("tools/list")[1].body, `"cursor":"p\"1"`) {
			t.Errorf("the cursor became %s", p.seen("tools/list")[1].body)
		}
	}
}

// TestAnnotationsOfALegacyServer mean nothing: none of its tools is left out.
func TestAnnotationsOfALegacyServer_B119(t *testing.T) {
	const tools = `{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}`
	for _, modern := range []bool{false, true} {
		answer := legacyPeer("2025-11-25", "", onPost(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) { writeResult(w, m, tools) }))
		if modern {
			answer = modernPeer(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) { writeResult(w, m, tools) })
		}
		c := dial(t, newPeer(t, answer).url, knownEra(mcp.NoEra))
		list, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListTools}, mcp.NoCaller{})
		if err != nil || strings.Contains(string(list.Raw()), `"t"`) == modern {
			t.Errorf("modern %v: %s, %v", modern, list.Raw(), err)
		}
	}
}
