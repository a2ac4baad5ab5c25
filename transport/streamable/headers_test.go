package streamable_test

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

func sentinel(text string) string {
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// TestMirroredHeaders posts requests whose headers and bodies disagree.
func TestMirroredHeaders(t *testing.T) {
	calls := make(chan string, 1)
	b := serving(t, counting(echo, calls), strictServer(t))
	call := func(name string) string {
		return modernRequest("3", "tools/call", string(jsonrpc.AppendString([]byte(`"arguments":{},"name":`), name)))
	}
	long := strings.Repeat("u", 8<<10)
	for _, tt := range []struct {
		name, body string
		header     map[string][]string // replaces what belongs to the body; nil values remove
		code       int
	}{
		{"as they belong", call("fast"), nil, 0},
		{"T-A5 another method", call("fast"), map[string][]string{"Mcp-Method": {"tools/list"}}, -32020},
		{"T-A5 a method in another case", call("fast"), map[string][]string{"Mcp-Method": {"TOOLS/CALL"}}, -32020},
		{"T-A5 no method", call("fast"), map[string][]string{"Mcp-Method": nil}, -32020},
		{"T-A5 two methods", call("fast"), map[string][]string{"Mcp-Method": {"tools/call", "tools/call"}}, -32020},
		{"T-A5 two methods in one line", call("fast"), map[string][]string{"Mcp-Method": {"tools/call, tools/call"}}, -32020},
		{"T-A5 another name", call("fast"), map[string][]string{"Mcp-Name": {"slow"}}, -32020},
		{"T-A5 a name in another case", call("fast"), map[string][]string{"Mcp-Name": {"Fast"}}, -32020},
		{"B118 no name", call("fast"), map[string][]string{"Mcp-Name": nil}, -32020},
		{"T-A5 two names", call("fast"), map[string][]string{"Mcp-Name": {"fast", "fast"}}, -32020},
		{"T-A5 a forbidden name second", call("fast"), map[string][]string{"Mcp-Name": {"fast", "slow"}}, -32020},
		{"T-A5 no version", call("fast"), map[string][]string{"Mcp-Protocol-Version": nil}, -32020},
		{"T-A5 another version", call("fast"), map[string][]string{"Mcp-Protocol-Version": {"2025-11-25"}}, -32020},
		{"T-A5 two versions", call("fast"), map[string][]string{"Mcp-Protocol-Version": {"2026-07-28", "2026-07-28"}}, -32020},
		{"B118 spaces around a header's value", call("fast"), map[string][]string{"Mcp-Name": {"  fast  "}}, 0},
		{"B118 encoded without need", call("fast"), map[string][]string{"Mcp-Name": {sentinel("fast")}}, 0},
		{"B118 encoded and another", call("fast"), map[string][]string{"Mcp-Name": {sentinel("slow")}}, -32020},
		{"B118 not ASCII, encoded", call("Hello, 世界"), map[string][]string{"Mcp-Name": {sentinel("Hello, 世界")}}, 0},
		{"B118 not ASCII, raw", call("Hello, 世界"), map[string][]string{"Mcp-Name": {"Hello, 世界"}}, -32020},
		{"B118 padded, encoded", call(" padded "), map[string][]string{"Mcp-Name": {sentinel(" padded ")}}, 0},
		{"B118 padded, raw", call(" padded "), map[string][]string{"Mcp-Name": {" padded "}}, -32020},
		{"B118 a line break, encoded", call("a\nb"), map[string][]string{"Mcp-Name": {sentinel("a\nb")}}, 0},
		{"B118 like an encoded one, encoded", call("=?base64?dGVzdA==?="), map[string][]string{"Mcp-Name": {sentinel("=?base64?dGVzdA==?=")}}, 0},
		{"B118 like an encoded one, raw", call("=?base64?dGVzdA==?="), map[string][]string{"Mcp-Name": {"=?base64?dGVzdA==?="}}, -32020},
		{"B118 a marker in upper case is none", call("fast"), map[string][]string{"Mcp-Name": {strings.Replace(sentinel("fast"), "base64", "BASE64", 1)}}, -32020},
		{"B118 a marker in upper case is text", call("=?BASE64?x?="), map[string][]string{"Mcp-Name": {"=?BASE64?x?="}}, 0},
		{"B118 no suffix is text", call("=?base64?x"), map[string][]string{"Mcp-Name": {"=?base64?x"}}, 0},
		{"B118 bad base64", call("fast"), map[string][]string{"Mcp-Name": {"=?base64?%%%?="}}, -32020},
		{"B118 base64 without padding", call("fast!"), map[string][]string{"Mcp-Name": {"=?base64?ZmFzdCE?="}}, -32020},
		{"B118 base64 of invalid UTF-8", call("fast"), map[string][]string{"Mcp-Name": {sentinel("\xff\xfe")}}, -32020},
		{"B118 8 KiB", call(long), map[string][]string{"Mcp-Name": {long}}, 0},
		{"a name that is no string", strings.Replace(call("7"), `"7"`, `7`, 1), map[string][]string{"Mcp-Name": {"7"}}, -32602},
		{"a prompt's name", modernRequest("3", "prompts/get", `"name":"p"`), map[string][]string{"Mcp-Name": {"q"}}, -32020},
		{"a resource's uri", modernRequest("3", "resources/read", `"uri":"file:///p/é.txt"`), map[string][]string{"Mcp-Name": {"file:///p/e.txt"}}, -32020},
		{"methods without names need none", modernRequest("3", "tools/list", ""), nil, 0},
		{"T-A5 methods without names are checked as well", modernRequest("3", "tools/list", ""), map[string][]string{"Mcp-Method": {"prompts/list"}}, -32020},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := modernHeader(t, tt.body)
			for name, values := range tt.header {
				delete(h, name)
				if values != nil {
					h[name] = values
				}
			}
			r := b.do(t, "POST", tt.body, h)
			status, called := http.StatusOK, 1
			if tt.code != 0 {
				status, called = http.StatusBadRequest, 0
			}
			if r.status != status || r.code(t) != tt.code || !strings.Contains(r.body, `"id":3`) {
				t.Errorf("%.300s, want %d with code %d", r, status, tt.code)
			}
			if n := drained(calls); n != called {
				t.Errorf("the handler was called %d times", n)
			}
		})
	}
}

func TestMissingMetadata(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	const version, capabilities = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
	for _, tt := range []struct {
		name, params string
		code         int
	}{
		{"all there but the client", `{"_meta":{` + version + `,` + capabilities + `}}`, 0},
		{"with the client", `{"_meta":{` + version + `,` + capabilities + `,"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}`, 0},
		{"no params", ``, -32602},
		{"no _meta", `{}`, -32602},
		{"an empty _meta", `{"_meta":{}}`, -32602},
		{"no version", `{"_meta":{` + capabilities + `}}`, -32602},
		{"no capabilities", `{"_meta":{` + version + `}}`, -32602},
		{"capabilities that are no object", `{"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":[]}}`, -32602},
		{"a version that is no string", `{"_meta":{"io.modelcontextprotocol/protocolVersion":1,` + capabilities + `}}`, -32602},
		{"a client that is no object", `{"_meta":{` + version + `,` + capabilities + `,"io.modelcontextprotocol/clientInfo":"x"}}`, -32602},
		{"a level that is none", `{"_meta":{` + version + `,` + capabilities + `,"io.modelcontextprotocol/logLevel":"loud"}}`, -32602},
		{"params that are no object", `[]`, -32602},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := `{"jsonrpc":"2.0","id":9,"method":"tools/list"`
			if tt.params != "" {
				body += `,"params":` + tt.params
			}
			body += "}"
			r := b.do(t, "POST", body, header("Content-Type", "application/json", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"))
			status := 200
			if tt.code != 0 {
				status = 400
			}
			if r.status != status || r.code(t) != tt.code || !strings.Contains(r.body, `"id":9`) {
				t.Errorf("%s, want %d with code %d", r, status, tt.code)
			}
		})
	}
}

func TestRemovedMethods(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method", "notifications/initialized"} {
		r := b.modern(t, modernRequest("1", method, ""))
		if r.status != http.StatusNotFound || r.code(t) != -32601 {
			t.Errorf("B034: %s: %s", method, r)
		}
	}
}

func TestStatusOfErrors(t *testing.T) {
	for code, status := range map[int]int{-32601: 404, -32020: 400, -32021: 400, -32022: 400, -32602: 200, -32603: 200, 12345: 200} {
		b := serving(t, mcp.HandlerFunc(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return mcp.Result{}, jsonrpc.Errorf(code, "no")
		}), strictServer(t))
		if r := b.modern(t, modernRequest("1", "tools/list", "")); r.status != status || r.code(t) != code {
			t.Errorf("a handler's error %d: %s", code, r)
		}
		session := legacyRequest("1", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
		if r := b.do(t, "POST", session, legacyHeader("")); r.status != 200 || r.code(t) != code || r.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("a handler's error %d at initialize: %s", code, r)
		}
	}
}

// annotated lists one tool with annotated parameters, and one whose annotation is
// invalid.
var annotated = mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
	switch req.Method {
	case mcp.MethodListTools:
		return raw(`{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{` +
			`"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"Num"},` +
			`"flag":{"type":"boolean","x-mcp-header":"Flag"},"o":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"Inner"}}}}}},` +
			`{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}`)
	case mcp.MethodCallTool:
		seen := []byte(`{"content":[],"headers":{`)
		for i, name := range mcp.Sorted(req.Meta.Headers) {
			if i > 0 {
				seen = append(seen, ',')
			}
			seen = jsonrpc.AppendString(append(jsonrpc.AppendString(seen, name), ':'), req.Meta.Headers[name])
		}
		return mcp.RawResult(append(seen, "}}"...)), nil
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
})

func TestParamHeaders(t *testing.T) {
	b := serving(t, annotated, strictServer(t))
	call := func(arguments string) string { return modernRequest("1", "tools/call", toolCall("t", arguments)) }
	// Before the tools have been listed nothing is known of them.
	if r := b.modern(t, call(`{"region":"eu"}`)); r.status != 200 {
		t.Errorf("before tools/list: %s", r)
	}
	list := b.modern(t, modernRequest("1", "tools/list", ""))
	if list.status != 200 || strings.Contains(list.body, `"bad"`) || !strings.Contains(list.body, `"t"`) {
		t.Fatalf("B119: the list is %s", list)
	}
	for _, tt := range []struct {
		name, arguments string
		header          map[string][]string
		code            int
		forwarded       string
	}{
		{"none and none", `{}`, nil, 0, "{}"},
		{"a string", `{"region":"us-west1"}`, map[string][]string{"Region": {"us-west1"}}, 0, "{}"},
		{"T-A5 another string", `{"region":"us-west1"}`, map[string][]string{"Region": {"eu"}}, -32020, ""},
		{"T-A5 in another case", `{"region":"Hello"}`, map[string][]string{"Region": {"hello"}}, -32020, ""},
		{"omitted though there is a value", `{"region":"us-west1"}`, nil, -32020, ""},
		{"there though there is no value", `{}`, map[string][]string{"Region": {"us-west1"}}, -32020, ""},
		{"null", `{"region":null}`, nil, 0, "{}"},
		{"T-A5 there twice", `{"region":"a"}`, map[string][]string{"Region": {"a", "a"}}, -32020, ""},
		{"an empty string", `{"region":""}`, map[string][]string{"Region": {""}}, 0, "{}"},
		{"B118 encoded", `{"region":"Zürich"}`, map[string][]string{"Region": {sentinel("Zürich")}}, 0, "{}"},
		{"B118 raw", `{"region":"Zürich"}`, map[string][]string{"Region": {"Zürich"}}, -32020, ""},
		{"B118 bad padding", `{"region":"Hello"}`, map[string][]string{"Region": {"=?base64?SGVsbG8?="}}, -32020, ""},
		{"B118 bad characters", `{"region":"Hello"}`, map[string][]string{"Region": {"=?base64?SGVs!!!bG8=?="}}, -32020, ""},
		{"an integer", `{"n":42}`, map[string][]string{"Num": {"42"}}, 0, "{}"},
		{"an integer written otherwise", `{"n":42}`, map[string][]string{"Num": {"42.0"}}, 0, "{}"},
		{"an integer written otherwise in the body", `{"n":4.2e1}`, map[string][]string{"Num": {"42"}}, 0, "{}"},
		{"T-A5 another integer", `{"n":42}`, map[string][]string{"Num": {"43"}}, -32020, ""},
		{"no integer", `{"n":42}`, map[string][]string{"Num": {"x"}}, -32020, ""},
		{"the largest integer", `{"n":9007199254740991}`, map[string][]string{"Num": {"9007199254740991"}}, 0, "{}"},
		{"B119 beyond it", `{"n":9007199254740993}`, map[string][]string{"Num": {"9007199254740993"}}, -32020, ""},
		{"a boolean", `{"flag":true}`, map[string][]string{"Flag": {"true"}}, 0, "{}"},
		{"T-A5 the other boolean", `{"flag":true}`, map[string][]string{"Flag": {"false"}}, -32020, ""},
		{"an inner property", `{"o":{"x":"y"}}`, map[string][]string{"Inner": {"y"}}, 0, "{}"},
		{"an unknown header", `{}`, map[string][]string{"Tenant": {"blue"}}, 0, `{"Mcp-Param-Tenant":"blue"}`},
		{"an unknown header twice", `{}`, map[string][]string{"Tenant": {"blue", "red"}}, 0, `{"Mcp-Param-Tenant":"blue, red"}`},
		{"known and unknown", `{"region":"a"}`, map[string][]string{"Region": {"a"}, "Tenant": {"blue"}, "Zone": {"1"}}, 0, `{"Mcp-Param-Tenant":"blue","Mcp-Param-Zone":"1"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := call(tt.arguments)
			h := modernHeader(t, body)
			for name, values := range maps.All(tt.header) {
				h["Mcp-Param-"+name] = values
			}
			r := b.do(t, "POST", body, h)
			if r.code(t) != tt.code || (r.status == 200) != (tt.code == 0) {
				t.Fatalf("%s, want code %d", r, tt.code)
			}
			if tt.code != 0 {
				return
			}
			v, err := jsonrpc.ParseValue([]byte(r.body))
			if err != nil {
				t.Fatal(err)
			}
			result := v.Get("result")
			headers := result.Get("headers")
			if diff := cmp.Diff(tt.forwarded, string(headers.Raw())); diff != "" {
				t.Errorf("forwarded (-want +got):\n%s", diff)
			}
		})
	}
}
