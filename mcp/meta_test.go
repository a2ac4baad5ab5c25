package mcp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

const (
	version      = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	clientInfo   = `"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}`
	capabilities = `"io.modelcontextprotocol/clientCapabilities":{}`
	logLevel     = `"io.modelcontextprotocol/logLevel":"info"`
	reserved     = version + "," + clientInfo + "," + capabilities
)

// legacyMeta is what a legacy session knows of its client.
func legacyMeta(t testing.TB, token string) mcp.Metadata {
	return mcp.Metadata{
		Revision:      mcp.Revision20251125,
		Client:        []byte(`{"name":"c","version":"1"}`),
		Capabilities:  []byte(`{}`),
		ProgressToken: id(t, token),
	}
}

// modernMeta is what a modern request with these params says of itself.
func modernMeta(t testing.TB, params string) mcp.Metadata {
	t.Helper()
	v := value(t, params)
	meta := v.Get("_meta")
	m, err := mcp.ReadMetadata(&meta)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParamsOfALegacyRequestGetTheReservedKeys(t *testing.T) {
	for _, c := range []struct{ name, params, has, token, want string }{
		{"absent", ``, ``, ``, `{"_meta":{` + reserved + `}}`},
		{"null", `null`, ``, ``, `{"_meta":{` + reserved + `}}`},
		{"empty", `{}`, ``, ``, `{"_meta":{` + reserved + `}}`},
		{"empty _meta", `{"_meta":{}}`, ``, ``, `{"_meta":{` + reserved + `}}`},
		{"null _meta", `{"_meta":null}`, ``, ``, `{"_meta":{` + reserved + `}}`},
		{
			"B139 token a number", `{"_meta":{"progressToken":1}}`, `1`, `7`,
			`{"_meta":{"progressToken":7,` + reserved + `}}`,
		},
		{
			"B139 token a string", `{"_meta":{"progressToken":"1"}}`, `"1"`, `"t"`,
			`{"_meta":{"progressToken":"t",` + reserved + `}}`,
		},
		{"B139 token kept", `{"_meta":{"progressToken":1}}`, `1`, `1`, `{"_meta":{"progressToken":1,` + reserved + `}}`},
		{"B139 token dropped", `{"_meta":{"progressToken":1}}`, `1`, ``, `{"_meta":{` + reserved + `}}`},
		{"B139 token where there was none", `{"a":1}`, ``, `7`, `{"a":1,"_meta":{` + reserved + `,"progressToken":7}}`},
		{
			"B017 vendor members and their order", `{"z":1.0,"_meta":{"x/b":-0,"x/a":1E2},"arguments":{"id":9007199254740993,"n":-9223372036854775808}}`, ``, ``,
			`{"z":1.0,"_meta":{"x/b":-0,"x/a":1E2,` + reserved + `},"arguments":{"id":9007199254740993,"n":-9223372036854775808}}`,
		},
		{
			"stale keys are overwritten in place", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","x":1,"io.modelcontextprotocol/logLevel":"debug"}}`, ``, ``,
			`{"_meta":{` + version + `,"x":1,` + clientInfo + `,` + capabilities + `}}`,
		},
		{
			"line breaks", "{\r\n \"a\":\n[1,\r\n2],\"_meta\":{\n\"x\":\r{}}}", ``, ``,
			`{"a":[1,2],"_meta":{"x":{},` + reserved + `}}`,
		},
		{"B031 arguments null", `{"arguments":null}`, ``, ``, `{"arguments":null,"_meta":{` + reserved + `}}`},
		{"B031 arguments empty", `{"arguments":{}}`, ``, ``, `{"arguments":{},"_meta":{` + reserved + `}}`},
		{"B031 arguments an array", `{"arguments":[]}`, ``, ``, `{"arguments":[],"_meta":{` + reserved + `}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &mcp.Request{Method: mcp.MethodCallTool, Params: value(t, c.params), Meta: legacyMeta(t, c.has)}
			got := mcp.ForModern(req, mcp.Revision20260728, id(t, c.token))
			if diff := cmp.Diff(c.want, string(got.Raw())); diff != "" {
				t.Error(diff)
			}
			if string(req.Params.Raw()) != c.params {
				t.Errorf("the request was changed to %s", req.Params.Raw())
			}
		})
	}
}

func TestForModernWritesWhatIsKnownOfTheClient(t *testing.T) {
	for _, c := range []struct {
		name string
		meta mcp.Metadata
		want string
	}{
		{"nothing", mcp.Metadata{}, version + `,` + capabilities},
		{"log level", mcp.Metadata{LogLevel: "info"}, version + `,` + capabilities + `,` + logLevel},
		{
			"capabilities as they came",
			mcp.Metadata{Revision: mcp.Revision20250618, Capabilities: []byte(`{"elicitation":{ },"x":1.0}`)},
			version + `,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{ },"x":1.0}`,
		},
		{
			"token", mcp.Metadata{ProgressToken: jsonrpc.IntID(1)},
			version + `,` + capabilities,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A client that the params speak of but the metadata does not is not told.
			params := value(t, `{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"stale","version":"0"},"progressToken":1}}`)
			got := mcp.ForModern(&mcp.Request{Params: params, Meta: c.meta}, mcp.Revision20260728, jsonrpc.ID{})
			if want := `{"_meta":{` + c.want + `}}`; string(got.Raw()) != want {
				t.Errorf("got  %s\nwant %s", got.Raw(), want)
			}
		})
	}
}

func TestModernParamsStayAsTheyAreButForTheToken(t *testing.T) {
	const spaced = "{ \"name\" : \"a\",\n \"_meta\" : { " + reserved + " , \"progressToken\" : \"1\" } }"
	for _, c := range []struct{ name, params, token, want string }{
		{"same token", spaced, `"1"`, spaced},
		{"same token, escaped otherwise", spaced, `"\u0031"`, spaced},
		{"B139 another type", spaced, `1`, `{"name" : "a","_meta" : {` + reserved + `,"progressToken" : 1}}`},
		{"B139 dropped", spaced, ``, `{"name" : "a","_meta" : {` + reserved + `}}`},
		{"B139 added", `{"_meta":{` + reserved + `,"x":1}}`, `2`, `{"_meta":{` + reserved + `,"x":1,"progressToken":2}}`},
		{"no token at all", `{"_meta":{` + capabilities + `,` + version + `}}`, ``, `{"_meta":{` + capabilities + `,` + version + `}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &mcp.Request{Params: value(t, c.params), Meta: modernMeta(t, c.params)}
			got := mcp.ForModern(req, mcp.Revision20260728, id(t, c.token))
			if string(got.Raw()) != c.want {
				t.Errorf("got  %s\nwant %s", got.Raw(), c.want)
			}
		})
	}
}

func TestParamsOfAModernRequestLoseTheReservedKeys(t *testing.T) {
	for _, c := range []struct{ name, params, token, want string }{
		{"nothing else in _meta", `{"name":"a","_meta":{` + reserved + `}}`, ``, `{"name":"a"}`},
		{"nothing else at all", `{"_meta":{` + reserved + `}}`, ``, `{}`},
		{"log level", `{"_meta":{` + reserved + `,` + logLevel + `}}`, ``, `{}`},
		{
			"vendor members and their order", `{"b":1,"_meta":{"z":1E2,` + reserved + `,"a":-0,"traceparent":"00"},"a":2}`, ``,
			`{"b":1,"_meta":{"z":1E2,"a":-0,"traceparent":"00"},"a":2}`,
		},
		{"B139 token a number", `{"_meta":{` + reserved + `,"progressToken":1}}`, `7`, `{"_meta":{"progressToken":7}}`},
		{"B139 token a string", `{"_meta":{"progressToken":"1",` + reserved + `}}`, `"7"`, `{"_meta":{"progressToken":"7"}}`},
		{"B139 token kept", `{"_meta":{"progressToken":"1",` + reserved + `}}`, `"1"`, `{"_meta":{"progressToken":"1"}}`},
		{"B139 token dropped", `{"_meta":{"progressToken":"1",` + reserved + `}}`, ``, `{}`},
		{"B139 token added", `{"_meta":{` + reserved + `}}`, `7`, `{"_meta":{"progressToken":7}}`},
		{"line breaks", "{\"a\":[\n1],\r\n\"_meta\":{\n" + reserved + "\n}}", ``, `{"a":[1]}`},
		{
			"B017 numbers", `{"_meta":{` + reserved + `},"arguments":{"id":9007199254740993,"n":-9223372036854775808,"f":1.0}}`, ``,
			`{"arguments":{"id":9007199254740993,"n":-9223372036854775808,"f":1.0}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &mcp.Request{Params: value(t, c.params), Meta: modernMeta(t, c.params)}
			got := mcp.ForLegacy(req, id(t, c.token))
			if diff := cmp.Diff(c.want, string(got.Raw())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLegacyParamsStayAsTheyAreButForTheToken(t *testing.T) {
	for _, c := range []struct {
		name, params, has, token, want string
		revision                       mcp.Revision
	}{
		{"absent", ``, ``, ``, ``, mcp.Revision20251125},
		{"null", `null`, ``, ``, `null`, mcp.Revision20251125},
		{"empty", `{ }`, ``, ``, `{ }`, mcp.Revision20251125},
		{"empty _meta", `{"_meta": { } }`, ``, ``, `{"_meta": { } }`, mcp.Revision20251125},
		{"spaces", "{ \"a\" :\n1 , \"_meta\" : {\"progressToken\" : 1} }", `1`, `1`, "{ \"a\" :\n1 , \"_meta\" : {\"progressToken\" : 1} }", mcp.Revision20250326},
		{"B139 another token", `{"_meta":{"progressToken":1,"x":{}},"a":1}`, `1`, `2`, `{"_meta":{"progressToken":2,"x":{}},"a":1}`, mcp.Revision20241105},
		{"B139 another type", `{"_meta":{"progressToken":1}}`, `1`, `"1"`, `{"_meta":{"progressToken":"1"}}`, mcp.Revision20251125},
		{"B139 dropped", `{"a":1,"_meta":{"progressToken":1}}`, `1`, ``, `{"a":1}`, mcp.Revision20251125},
		{"B139 added to params that were absent", ``, ``, `2`, `{"_meta":{"progressToken":2}}`, mcp.Revision20251125},
		{"B139 malformed token goes with the change", `{"_meta":{"progressToken":1.5}}`, ``, `2`, `{"_meta":{"progressToken":2}}`, mcp.Revision20251125},
		{"nothing but the token changes inside the era", `{"_meta":{"progressToken":1,` + logLevel + `}}`, `1`, `2`, `{"_meta":{"progressToken":2,` + logLevel + `}}`, mcp.Revision20251125},
		{"made here, absent", ``, ``, ``, ``, ""},
		{"made here, empty _meta", `{"_meta":{}}`, ``, ``, `{"_meta":{}}`, ""},
		{"made here, empty _meta with a space", `{"_meta":{ }}`, ``, ``, `{"_meta":{}}`, ""},
		{"made here, null _meta", `{"_meta":null}`, ``, ``, `{"_meta":null}`, ""},
		{"made here, with token", `{"a":1}`, ``, `2`, `{"a":1,"_meta":{"progressToken":2}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			meta := legacyMeta(t, c.has)
			meta.Revision = c.revision
			got := mcp.ForLegacy(&mcp.Request{Params: value(t, c.params), Meta: meta}, id(t, c.token))
			if string(got.Raw()) != c.want {
				t.Errorf("got  %q\nwant %q", got.Raw(), c.want)
			}
		})
	}
}

func TestModernClientGetsTypeAndCachingHints(t *testing.T) {
	const typed, ttl, scope = `"resultType":"complete"`, `"ttlMs":5`, `"cacheScope":"public"`
	methods := map[string]bool{
		mcp.MethodDiscover: true, mcp.MethodListTools: true, mcp.MethodListPrompts: true, mcp.MethodListResources: true,
		mcp.MethodListResourceTemplates: true, mcp.MethodReadResource: true,
		mcp.MethodCallTool: false, mcp.MethodGetPrompt: false, mcp.MethodComplete: false, mcp.MethodListen: false, "x/vendor": false,
	}
	for method, cacheable := range methods {
		for bits := range 8 {
			members := []string{`"id":9007199254740993`}
			var added []string
			for i, member := range []string{typed, ttl, scope} {
				if bits>>i&1 != 0 {
					members = append(members, member)
				} else if i == 0 || cacheable {
					added = append(added, []string{typed, `"ttlMs":0`, `"cacheScope":"private"`}[i])
				}
			}
			in := "{" + strings.Join(members, ",") + "}"
			r, edits := mcp.ForModernClient(method, mcp.Result{Value: value(t, in)})
			got := string(jsonrpc.AppendEdited(nil, &r.Value, edits...))
			if want := "{" + strings.Join(append(members, added...), ",") + "}"; got != want {
				t.Errorf("%s %s:\ngot  %s\nwant %s", method, in, got, want)
			}
		}
	}
}

func TestModernClientGetsNoHintsWhereTheyAreWrong(t *testing.T) {
	for _, c := range []struct{ name, method, in, want string }{
		{"input is required", mcp.MethodReadResource, `{"resultType":"input_required","requestState":"s"}`, `{"resultType":"input_required","requestState":"s"}`},
		{"B113 type of a vendor", mcp.MethodDiscover, `{"resultType":"vendor"}`, `{"resultType":"vendor"}`},
		{"B113 type no string", mcp.MethodListTools, `{"resultType":1}`, `{"resultType":1}`},
		{"type escaped", mcp.MethodListTools, `{"resultType":"\u0063omplete"}`, `{"resultType":"\u0063omplete","ttlMs":0,"cacheScope":"private"}`},
		{"absent", mcp.MethodCallTool, ``, `{"resultType":"complete"}`},
		{"absent and cacheable", mcp.MethodListTools, ``, `{"resultType":"complete","ttlMs":0,"cacheScope":"private"}`},
		{
			"B016 digits of numbers", mcp.MethodCallTool,
			`{"structuredContent":{"id":9007199254740993,"big":12345678901234567890123,"f":1.0,"e":1E2,"z":-0,"d":0.1000}}`,
			`{"structuredContent":{"id":9007199254740993,"big":12345678901234567890123,"f":1.0,"e":1E2,"z":-0,"d":0.1000},"resultType":"complete"}`,
		},
		{"B148 isError stays a result", mcp.MethodCallTool, `{"content":[],"isError":true}`, `{"content":[],"isError":true,"resultType":"complete"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, edits := mcp.ForModernClient(c.method, mcp.Result{Value: value(t, c.in)})
			if got := string(jsonrpc.AppendEdited(nil, &r.Value, edits...)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			// Edits belong to the caller, as far as appending goes.
			_ = append(edits, jsonrpc.Edit{Name: "ttlMs", Value: []byte("99")})
			_, again := mcp.ForModernClient(mcp.MethodListTools, mcp.Result{})
			if got := string(jsonrpc.AppendEdited(nil, &jsonrpc.Value{}, again...)); got != `{"resultType":"complete","ttlMs":0,"cacheScope":"private"}` {
				t.Errorf("a later result gets %s", got)
			}
		})
	}
}

func TestMetadataIsRead(t *testing.T) {
	for _, c := range []struct {
		name, meta string
		want       mcp.Metadata
		token      string
	}{
		{
			"all", `{` + reserved + `,` + logLevel + `,"progressToken":"t"}`,
			mcp.Metadata{Revision: "2026-07-28", Client: []byte(`{"name":"c","version":"1"}`), Capabilities: []byte(`{}`), LogLevel: "info"}, `"t"`,
		},
		{"required ones", `{` + version + `,` + capabilities + `}`, mcp.Metadata{Revision: "2026-07-28", Capabilities: []byte(`{}`)}, ``},
		{"B139 token a number", `{` + version + `,` + capabilities + `,"progressToken":1}`, mcp.Metadata{Revision: "2026-07-28", Capabilities: []byte(`{}`)}, `1`},
		{"B139 token no id is none", `{` + version + `,` + capabilities + `,"progressToken":1.5}`, mcp.Metadata{Revision: "2026-07-28", Capabilities: []byte(`{}`)}, ``},
		{"B139 token null is none", `{` + version + `,` + capabilities + `,"progressToken":null}`, mcp.Metadata{Revision: "2026-07-28", Capabilities: []byte(`{}`)}, ``},
		{"unknown revision", `{"io.modelcontextprotocol/protocolVersion":"2099-01-01",` + capabilities + `}`, mcp.Metadata{Revision: "2099-01-01", Capabilities: []byte(`{}`)}, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			meta := value(t, c.meta)
			got, err := mcp.ReadMetadata(&meta)
			if err != nil {
				t.Fatal(err)
			}
			if got.ProgressToken.String() != id(t, c.token).String() {
				t.Errorf("token %s, want %s", got.ProgressToken, c.token)
			}
			got.ProgressToken = jsonrpc.ID{}
			if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b jsonrpc.ID) bool { return a.Key() == b.Key() })); diff != "" {
				t.Error(diff)
			}
			if !mcp.HasReserved(&meta) {
				t.Error("it does not count as modern")
			}
		})
	}
}

func TestMetadataThatIsMissingOrMalformedIsNamed(t *testing.T) {
	for _, c := range []struct{ name, meta, want string }{
		{"nothing", ``, mcp.MetaProtocolVersion},
		{"null", `null`, mcp.MetaProtocolVersion},
		{"no object", `"x"`, mcp.MetaProtocolVersion},
		{"empty", `{}`, mcp.MetaProtocolVersion},
		{"no version", `{` + clientInfo + `,` + capabilities + `}`, mcp.MetaProtocolVersion},
		{"version a number", `{"io.modelcontextprotocol/protocolVersion":20260728,` + capabilities + `}`, mcp.MetaProtocolVersion},
		{"version null", `{"io.modelcontextprotocol/protocolVersion":null,` + capabilities + `}`, mcp.MetaProtocolVersion},
		{"no capabilities", `{` + version + `}`, mcp.MetaClientCapabilities},
		{"capabilities null", `{` + version + `,"io.modelcontextprotocol/clientCapabilities":null}`, mcp.MetaClientCapabilities},
		{"capabilities an array", `{` + version + `,"io.modelcontextprotocol/clientCapabilities":[]}`, mcp.MetaClientCapabilities},
		{"client a string", `{` + version + `,` + capabilities + `,"io.modelcontextprotocol/clientInfo":"c"}`, mcp.MetaClientInfo},
		{"client null", `{` + version + `,` + capabilities + `,"io.modelcontextprotocol/clientInfo":null}`, mcp.MetaClientInfo},
		{"unknown level", `{` + version + `,` + capabilities + `,"io.modelcontextprotocol/logLevel":"loud"}`, mcp.MetaLogLevel},
		{"level in another case", `{` + version + `,` + capabilities + `,"io.modelcontextprotocol/logLevel":"INFO"}`, mcp.MetaLogLevel},
		{"level a number", `{` + version + `,` + capabilities + `,"io.modelcontextprotocol/logLevel":6}`, mcp.MetaLogLevel},
		{"level empty", `{` + version + `,` + capabilities + `,"io.modelcontextprotocol/logLevel":""}`, mcp.MetaLogLevel},
	} {
		t.Run(c.name, func(t *testing.T) {
			meta := value(t, c.meta)
			_, err := mcp.ReadMetadata(&meta)
			if err == nil {
				t.Fatal("no error")
			}
			if err.Code != jsonrpc.CodeInvalidParams || !strings.Contains(err.Message, `"`+c.want+`"`) {
				t.Errorf("got %v, want %d with %s", err, jsonrpc.CodeInvalidParams, c.want)
			}
		})
	}
}

func TestProgressTokenOutlivesItsMessage(t *testing.T) {
	raw := []byte(`{"progressToken":"abc"}`)
	meta := jsonrpc.Trusted(raw)
	token := mcp.ReadProgressToken(&meta)
	clear(raw)
	if token.String() != `"abc"` {
		t.Errorf("token is %q", token)
	}
}

func TestProgressIsPassedOnUnderAnotherToken(t *testing.T) {
	for _, c := range []struct{ name, in, token, want string }{
		{"B139 number to string", `{"progress":0.50,"progressToken":1,"message":"m"}`, `"1"`, `{"progress":0.50,"progressToken":"1","message":"m"}`},
		{"B139 string to number", `{"progressToken":"1","progress":1}`, `1`, `{"progressToken":1,"progress":1}`},
		{"B139 none before", `{"progress":1}`, `1`, `{"progress":1,"progressToken":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := value(t, c.in)
			got := mcp.WithProgressToken(&params, id(t, c.token))
			if string(got.Raw()) != c.want {
				t.Errorf("got  %s\nwant %s", got.Raw(), c.want)
			}
			if read := mcp.ProgressToken(&got); read.String() != c.token {
				t.Errorf("read back as %s", read)
			}
		})
	}
}

func TestMessagesAreTaggedWithTheirSubscription(t *testing.T) {
	const key = `"io.modelcontextprotocol/subscriptionId"`
	for _, c := range []struct{ name, in, id, want string }{
		{"B121 number", `{"uri":"a"}`, `1`, `{"uri":"a","_meta":{` + key + `:1}}`},
		{"B121 string", `{"uri":"a"}`, `"1"`, `{"uri":"a","_meta":{` + key + `:"1"}}`},
		{"B121 absent params", ``, `"x"`, `{"_meta":{` + key + `:"x"}}`},
		{"B121 in place of another", `{"_meta":{"a":1,` + key + `:99,"b":2}}`, `"1"`, `{"_meta":{"a":1,` + key + `:"1","b":2}}`},
		{"B121 removed", `{"_meta":{` + key + `:99},"uri":"a"}`, ``, `{"uri":"a"}`},
		{"B121 removed beside others", `{"_meta":{` + key + `:99,"b":2}}`, ``, `{"_meta":{"b":2}}`},
		{"B121 nothing to remove", `{"uri":"a"}`, ``, `{"uri":"a"}`},
		{"B121 nothing to remove from nothing", ``, ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := value(t, c.in)
			got := mcp.WithSubscription(&params, id(t, c.id))
			if string(got.Raw()) != c.want {
				t.Errorf("got  %s\nwant %s", got.Raw(), c.want)
			}
			if read := mcp.SubscriptionID(&got); read.Key() != id(t, c.id).Key() {
				t.Errorf("read back as %s", read)
			}
		})
	}
	malformed := value(t, `{"_meta":{`+key+`:{}}}`)
	if read := mcp.SubscriptionID(&malformed); !read.IsZero() {
		t.Errorf("an object counts as the id %s", read)
	}
}
