package streamable_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"

	"pgregory.net/rapid"
)

// A cell is a bridge between a client and a server of which it is checked that what
// one of them writes is what the other one reads.
type cell struct {
	client, server side
	capabilities   string // that the client declares
	edge           transport.Edge
	courier        *courier
	pen            *pen // the client's, for all that it does
}

func newCell(t *testing.T, client, server side, capabilities string) *cell {
	c := &cell{client: client, server: server, capabilities: capabilities, courier: newCourier(), pen: newPen()}
	c.edge = bridge(t, c.courier, client, server, capabilities)
	return c
}

// listen has the client listen until the end of the test.
func (c *cell) listen(t *testing.T) {
	filter := mcp.Filter{
		ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true,
		ResourceSubscriptions: []string{"test://a", "file:///project/src/main.rs"}, Session: c.client.era == mcp.Legacy,
	}
	ctx, cancel := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	listening.Go(func() {
		req := &mcp.Request{Method: mcp.MethodListen, Params: filter.Params(), Meta: mcp.Metadata{
			Client: []byte(tester), Capabilities: []byte(c.capabilities),
		}}
		_, _ = c.edge.Handle(ctx, req, c.pen)
	})
	t.Cleanup(func() { cancel(); listening.Wait() })
	// Between an acknowledgement and what it promises there may be a bridge's own.
	for _, method := range []string{mcp.NotificationToolsListChanged, mcp.NotificationResourceUpdated} {
		n := &mcp.Notification{Method: method, Params: jsonrpc.Trusted([]byte(`{"uri":"test://a","` + areYouReady + `":1}`))}
		for heard := ""; heard != method; {
			c.courier.tell(t, n)
			select {
			case heard = <-c.pen.ready:
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// TestWhatIsWrittenIsWhatIsRead: whatever JSON stands in whatever place of a message,
// it arrives token for token, but for the members that the other side needs in another
// form. Run it with -rapid.checks=1000 for more.
func TestWhatIsWrittenIsWhatIsRead_B016_B017(t *testing.T) {
	sides := []side{{"stdio", mcp.Legacy}, {"stdio", mcp.Modern}, {"loose http", mcp.Legacy}, {"loose http", mcp.Modern}, {"sse", mcp.Legacy}}
	for _, client := range sides {
		for _, server := range sides {
			t.Run(client.String()+" to "+server.String(), func(t *testing.T) {
				c := newCell(t, client, server, `{"vendor":{"x":1.0},`+everything[1:])
				c.listen(t)
				rapid.Check(t, func(t *rapid.T) {
					c.forget()
					place := rapid.SampledFrom(c.places()).Draw(t, "place")
					place.check(c, t)
				})
			})
		}
	}
}

// forget drops what a check that failed has left.
func (c *cell) forget() {
	for {
		select {
		case <-c.pen.told:
		case <-c.pen.asked:
		case <-c.courier.got:
		default:
			return
		}
	}
}

// A place is where in a message something is written.
type place struct {
	name  string
	check func(c *cell, t *rapid.T)
}

// String names the place in what is said of a check that fails.
func (p place) GoString() string { return p.name }

func (c *cell) places() []place {
	places := []place{
		{"params of a request", (*cell).checkParams},
		{"result", (*cell).checkResult},
		{"error", (*cell).checkError},
		{"notification of a call", (*cell).checkNotes},
		{"change", (*cell).checkChange},
		{"question", (*cell).checkQuestion},
	}
	if c.client.era == mcp.Legacy && c.server.era == mcp.Legacy {
		// Modern clients send no notifications, and modern servers take none.
		places = append(places, place{"notification of the client", (*cell).checkNotification})
	}
	if c.client.era == mcp.Modern && c.server.era == mcp.Modern {
		places = append(places, place{"subscription", (*cell).checkListen})
	}
	if c.server.era == mcp.Modern {
		places = append(places, place{"input that is required", (*cell).checkInput})
	}
	return places
}

const tester = `{"name":"mcpsplice","version":"0"}`

// reserved are the members of _meta that modern requests have.
var reserved = []string{mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities, mcp.MetaLogLevel}

// A letter is a request as its client writes it.
type letter struct {
	method string
	params object
	text   string // of the params, "" if there are none
}

// letters are requests that the client may make, of the protocol and of others.
func (c *cell) letters(method string, always ...member) *rapid.Generator[letter] {
	return rapid.Custom(func(t *rapid.T) letter {
		params := objects(3).Draw(t, "params").among(t, known(t, method)...).among(t, always...)
		meta := objects(2).Draw(t, "meta")
		if rapid.Bool().Draw(t, "wants progress") {
			meta = meta.among(t, member{`"progressToken"`, rapid.SampledFrom([]string{"7", `"a\u0062c"`, "-1", `""`}).Draw(t, "token")})
		}
		if c.client.era == mcp.Modern {
			meta = meta.among(t, member{`"` + reserved[0] + `"`, `"2026-07-28"`}, member{`"io.modelcontextprotocol\/clientInfo"`, tester},
				member{`"` + reserved[2] + `"`, c.capabilities}, member{`"` + reserved[3] + `"`, `"debug"`})
		}
		if len(meta) > 0 || rapid.Bool().Draw(t, "empty meta") {
			params = params.among(t, member{`"_meta"`, meta.text(t)})
		}
		if c.client.era == mcp.Legacy && len(params) == 0 && rapid.Bool().Draw(t, "absent") {
			return letter{method: method}
		}
		return letter{method, params, params.text(t)}
	})
}

// known are the members that the params of a method must have.
func known(t *rapid.T, method string) []member {
	switch method {
	case mcp.MethodCallTool, mcp.MethodGetPrompt:
		return []member{{`"n\u0061me"`, oddStrings.Draw(t, "name")}, {`"arguments"`, objects(4).Draw(t, "arguments").text(t)}}
	case mcp.MethodReadResource:
		return []member{{`"uri"`, oddStrings.Draw(t, "uri")}}
	case mcp.MethodListResources:
		return []member{{`"cursor"`, oddStrings.Draw(t, "cursor")}}
	}
	return nil
}

// atServer returns the params of a call as a server must get them, whose edge has
// given its own progress token.
func (c *cell) atServer(sent object, token string) object {
	text := sent.get("_meta")
	meta := objectOf(text)
	if meta.get("progressToken") != "" {
		meta = meta.set("progressToken", token)
	}
	switch {
	case c.client.era == mcp.Modern && c.server.era == mcp.Legacy:
		if meta = meta.without(reserved...); len(meta) == 0 {
			return sent.without("_meta")
		}
	case c.client.era == mcp.Legacy && c.server.era == mcp.Modern:
		for i, value := range []string{`"2026-07-28"`, tester, c.capabilities, `"debug"`} {
			meta = meta.set(reserved[i], value)
		}
	case text == "":
		return sent
	}
	return sent.set("_meta", meta.String())
}

// withoutTasks is params of a request without the extension that a bridge declares by
// itself, since it awaits tasks for legacy clients.
func (c *cell) withoutTasks(params string) string {
	if c.client.era != mcp.Legacy || c.server.era != mcp.Modern {
		return params
	}
	o := objectOf(params)
	meta := objectOf(o.get("_meta"))
	declared := objectOf(meta.get(mcp.MetaClientCapabilities)).without("extensions")
	return o.set("_meta", meta.set(mcp.MetaClientCapabilities, declared.String()).String()).String()
}

// read returns the request that a call is.
func (c *cell) read(t rapid.TB, call letter) *mcp.Request {
	t.Helper()
	var params jsonrpc.Value
	if call.text != "" {
		var err error
		if params, err = jsonrpc.ParseValue([]byte(call.text)); err != nil {
			t.Fatalf("the test's own params: %v", err)
		}
	}
	meta := params.Get("_meta")
	req := &mcp.Request{Method: call.method, Params: params}
	if c.client.era == mcp.Modern {
		var refusal *jsonrpc.Error
		if req.Meta, refusal = mcp.ReadMetadata(&meta); refusal != nil {
			t.Fatalf("the test's own params: %v", refusal)
		}
	} else {
		req.Meta = mcp.Metadata{Revision: mcp.NewestLegacy, Client: []byte(tester), ProgressToken: mcp.ReadProgressToken(&meta), LogLevel: "debug"}
	}
	return req
}

// make makes a call, which serve serves.
func (c *cell) make(t rapid.TB, call letter, answer answer, serve mcp.HandlerFunc) (string, error) {
	t.Helper()
	req := c.read(t, call)
	c.courier.expect(call.method, serve)
	defer c.courier.expect("", nil)
	c.pen.answers(answer)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	result, err := c.edge.Handle(ctx, req, c.pen)
	return string(result.Raw()), err
}

// must is make for a call that must succeed.
func (c *cell) must(t rapid.TB, call letter, answer answer, serve mcp.HandlerFunc) string {
	t.Helper()
	result, err := c.make(t, call, answer, serve)
	if err != nil {
		t.Fatalf("the call failed: %v", err)
	}
	return result
}

// same asserts that what was read is what was to be written, token for token.
func same(t rapid.TB, what, want, got string) {
	t.Helper()
	if diff := difference(tokens(want), tokens(got)); diff != "" {
		t.Fatalf("%s is not what was written, %s", what, diff)
	}
}

// sameBytes is same for what nothing had to be changed in. Line breaks do not pass.
func sameBytes(t rapid.TB, what, want, got string) {
	t.Helper()
	if diff := difference(oneLine(want), oneLine(got)); diff != "" {
		t.Fatalf("%s is not what was written, %s", what, diff)
	}
}

// receive takes what must come.
func receive[T any](t rapid.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

var methods = []string{mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource, mcp.MethodListResources, mcp.MethodComplete, "vendor/é", "tools/list"}

func (c *cell) checkParams(t *rapid.T) {
	call := c.letters(anyOf(methods...).Draw(t, "method")).Draw(t, "call")
	c.must(t, call, nil, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		c.courier.take(req)
		c.courier.got <- string(req.Meta.ProgressToken.Raw())
		return raw("{}")
	})
	got, token := receive(t, "the request", c.courier.got), receive(t, "its token", c.courier.got)
	if call.text == "" && c.server.era == mcp.Legacy {
		same(t, "params", "", got)
		return
	}
	same(t, "params", c.atServer(call.params, token).String(), c.withoutTasks(got))
	if c.client.era == c.server.era && token == "" {
		sameBytes(t, "params", call.text, got)
	}
}

func anyOf(methods ...string) *rapid.Generator[string] { return rapid.SampledFrom(methods) }

// plain is a call whose params do not matter.
func (c *cell) plain(method string) letter {
	params := object{{`"name"`, `"x"`}, {`"uri"`, `"test://a"`}, {`"_meta"`, `{"progressToken":"é"}`}}
	if c.client.era == mcp.Modern {
		params = params.set("_meta", `{"progressToken":"é","`+reserved[0]+`":"2026-07-28","`+reserved[1]+`":`+tester+`,"`+
			reserved[2]+`":`+c.capabilities+`,"`+reserved[3]+`":"debug"}`)
	}
	return letter{method, params, params.String()}
}

// A text is an object with white space between its tokens.
type text struct {
	object object
	text   string
}

// results are results of a method.
func results(method string) *rapid.Generator[text] {
	names := map[string]string{mcp.MethodGetPrompt: `"messages"`, mcp.MethodReadResource: `"contents"`, mcp.MethodListResources: `"resources"`}
	return rapid.Custom(func(t *rapid.T) text {
		o := objects(4).Draw(t, "members")
		maybe := func(name string, value *rapid.Generator[string]) {
			if rapid.Bool().Draw(t, "has "+name) {
				o = o.among(t, member{name, value.Draw(t, name)})
			}
		}
		if name, ok := names[method]; ok {
			maybe(name, values(5))
		}
		if method == mcp.MethodListTools {
			maybe(`"tools"`, toolLists)
		}
		if method == mcp.MethodCallTool {
			maybe(`"content"`, values(4))
			maybe(`"structuredContent"`, values(4))
			maybe(`"isError"`, values(0))
		}
		maybe(`"_meta"`, values(3))
		maybe(`"resultType"`, rapid.Just(`"\u0063omplete"`))
		maybe(`"ttlMs"`, rapid.SampledFrom([]string{"0", "1e3", "5.0"}))
		maybe(`"cacheScope"`, rapid.SampledFrom([]string{`"public"`, `"priv\u0061te"`}))
		return text{o, o.text(t)}
	})
}

// atClient returns a result as the client must get it.
func (c *cell) atClient(method string, result object) object {
	if c.client.era == mcp.Legacy || c.server.era == mcp.Legacy {
		result = forLegacy(method, result)
	}
	if c.client.era == mcp.Legacy && c.server.era == mcp.Legacy {
		return result
	}
	missing := object{{`"resultType"`, `"complete"`}}
	if mcp.IsCacheable(method) {
		missing = append(missing, member{`"ttlMs"`, "0"}, member{`"cacheScope"`, `"private"`})
	}
	for _, m := range missing {
		if name := strings.Trim(m.name, `"`); result.get(name) == "" {
			result = result.set(name, m.value)
		}
	}
	return result
}

// toolLists are lists of tools, and of what is none.
var toolLists = rapid.Custom(func(t *rapid.T) string {
	tools := rapid.SliceOfN(rapid.OneOf(values(2), rapid.Custom(func(t *rapid.T) string {
		schema := rapid.OneOf(values(2), rapid.SampledFrom([]string{`{"type":"object"}`, `{"type":"array"}`, `{"$ref":"#/x"}`, `{}`}))
		return objects(2).Draw(t, "tool").among(t, member{`"name"`, oddStrings.Draw(t, "name")}, member{`"outputSchema"`, schema.Draw(t, "schema")}).text(t)
	})), 0, 3).Draw(t, "tools")
	return "[" + joined(t, tools) + "]"
})

// forLegacy is a result without what legacy clients refuse.
func forLegacy(method string, result object) object {
	structured, tools := result.get("structuredContent"), result.get("tools")
	switch {
	case method == mcp.MethodCallTool && structured != "" && structured[0] != '{':
		return result.without("structuredContent")
	case method == mcp.MethodListTools && strings.HasPrefix(tools, "["):
		var kept []string
		for _, item := range jsonrpc.Elements([]byte(tools)) {
			tool := string(item)
			if tool[0] == '{' {
				o := objectOf(tool)
				if schema := o.get("outputSchema"); schema != "" && (schema[0] != '{' || objectOf(schema).get("type") != `"object"`) {
					tool = o.without("outputSchema").String()
				}
			}
			kept = append(kept, tool)
		}
		return result.set("tools", "["+strings.Join(kept, ",")+"]")
	}
	return result
}

func (c *cell) checkResult(t *rapid.T) {
	call := c.plain(anyOf(methods...).Draw(t, "method"))
	result := results(call.method).Draw(t, "result")
	got := c.must(t, call, nil, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		return raw(result.text)
	})
	want := c.atClient(call.method, result.object)
	same(t, "the result", want.String(), got)
	if tokens(want.String()) == tokens(result.text) {
		sameBytes(t, "the result", result.text, got)
	}
}

func (c *cell) checkError(t *rapid.T) {
	failure := rapid.Custom(func(t *rapid.T) text {
		code := rapid.OneOf(rapid.SampledFrom([]string{"1", "-1", "-32601", "-32602", "-32603", "-32600", "-32700", "-32000", "2147483648"}))
		o := objects(3).Draw(t, "members").among(t, member{`"code"`, code.Draw(t, "code")}, member{`"mess\u0061ge"`, oddStrings.Draw(t, "message")})
		if rapid.Bool().Draw(t, "has data") {
			o = o.among(t, member{`"data"`, values(4).Draw(t, "data")})
		}
		return text{o, o.text(t)}
	}).Draw(t, "error")
	result, err := c.make(t, c.plain(anyOf(methods...).Draw(t, "method")), nil, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		v := jsonrpc.Trusted([]byte(failure.text))
		return mcp.Result{}, jsonrpc.ReadError(&v)
	})
	if !jsonrpc.FromPeer(err) {
		t.Fatalf("the server's error became %s, %v", result, err)
	}
	same(t, "the error", failure.text, errorText(err))
}
