package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A row is a feature of the protocol, the revisions that have it, and the
// conversation that shows that a server has it. Each message of the server in it
// is checked against the revision's schema.
type row struct {
	name    string // in the name of the test
	feature string // in docs/protocol.md
	since   mcp.Revision
	until   mcp.Revision // the last; empty for all
	only    string       // transport; empty for all
	declare string       // capabilities of the client; empty for every
	run     func(t *testing.T, p *peer, s *everyFeature)
}

// has reports whether a revision has the feature.
func (r *row) has(revision mcp.Revision) bool {
	return revision >= r.since && (r.until == "" || revision <= r.until)
}

const (
	first = mcp.Revision20241105
	last  = mcp.NewestLegacy
)

var transports = []string{"stdio", "http"}

var protocol = []row{
	{name: "handshake", feature: "`initialize`, version negotiation, instructions", since: first, until: last, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, string(p.initialized.Result), `"protocolVersion":"`+string(p.revision)+`"`, `"instructions":"Try it."`,
			`"serverInfo":{"name":"everything","title":"Everything","version":"1"}`, `"tools":{"listChanged":true}`,
			`"resources":{"subscribe":true,"listChanged":true}`, `"logging":{}`)
	}},
	{name: "discover", feature: "`server/discover`", since: mcp.NewestModern, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.result(mcp.MethodDiscover, `{}`), `"instructions":"Try it."`, `"supportedVersions":["2026-07-28","2025-11-25"`,
			`"tools":{"listChanged":true}`, `"experimental":{"com.example/x":{}}`, `"title":"Everything"`, `"ttlMs":0,"cacheScope":"public"`)
	}},
	{name: "ping", feature: "`ping`", since: first, until: last, run: func(t *testing.T, p *peer, _ *everyFeature) {
		if got := p.result(mcp.MethodPing, `{}`); got != `{}` {
			t.Errorf("ping is answered by %s", got)
		}
	}},
	{name: "list-tools", feature: "`tools/list`", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		all := p.list(t, mcp.MethodListTools)
		wants(t, all, `{"name":"echo","title":"Echo","description":"Says it again.","inputSchema":{"type":"object",`)
	}},
	{name: "pagination", feature: "pages of lists, cursors", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		if n := strings.Count(p.list(t, mcp.MethodListTools), `"inputSchema"`); n != 19 {
			t.Errorf("all pages together hold %d tools", n)
		}
		if m := p.request(mcp.MethodListTools, `{"cursor":"nonsense"}`); m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("a made up cursor is answered by %s", m.raw)
		}
	}},
	{name: "call-tool", feature: "`tools/call`: text", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("echo", `{"Text":"x\u0000é"}`), `[{"type":"text","text":"x\u0000é"}]`)
	}},
	{name: "tool-images", feature: "tool results: images and embedded resources", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("give-image", `{}`), `{"type":"image","data":"AQ==","mimeType":"image/png"}`)
		wants(t, p.call("give-resource", `{}`), `{"type":"resource","resource":{"uri":"test://inside","text":"inside"}}`)
	}},
	{name: "tool-audio", feature: "tool results: audio", since: mcp.Revision20250326, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("give-audio", `{}`), `{"type":"audio","data":"AQ==","mimeType":"audio/wav"}`)
	}},
	{name: "tool-links", feature: "tool results: links to resources", since: mcp.Revision20250618, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("give-link", `{}`), `{"type":"resource_link","uri":"test://text","name":"text"}`)
	}},
	{name: "structured-content", feature: "structured content, output schemas", since: mcp.Revision20250618, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("greet", `{"name":"Ada"}`), `"structuredContent":{"greeting":"Hello Ada"}`, `"text":"{\"greeting\":\"Hello Ada\"}"`)
		wants(t, p.list(t, mcp.MethodListTools), `"outputSchema":{"type":"object","properties":{"greeting":`)
	}},
	{name: "structured-arrays", feature: "structured content that is no object", since: mcp.NewestModern, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("count", `{}`), `"structuredContent":[1,2,3]`)
	}},
	{name: "structured-as-text", feature: "structured content as text for who knows no other", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		got := p.call("count", `{}`)
		wants(t, got, `{"type":"text","text":"[1,2,3]"}`)
		if p.revision.Era() == mcp.Legacy && strings.Contains(got, "structuredContent") {
			t.Errorf("a legacy client gets %s", got)
		}
	}},
	{name: "tool-errors", feature: "failed tools, and invalid arguments, told the model", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("fail", `{}`), `"text":"no luck"`, `"isError":true`)
		wants(t, p.call("echo", `{"Text":1}`), `"text":"invalid arguments: /Text must be of type string"`, `"isError":true`)
	}},
	{name: "errors", feature: "errors of the protocol", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		for request, code := range map[[2]string]int{
			{mcp.MethodCallTool, `{"name":"none"}`}:        jsonrpc.CodeInvalidParams,
			{mcp.MethodCallTool, `{"name":"refuse"}`}:      -32099,
			{mcp.MethodCallTool, `{"name":"panic"}`}:       jsonrpc.CodeInternalError,
			{"tools/none", `{}`}:                           jsonrpc.CodeMethodNotFound,
			{mcp.MethodGetPrompt, `{"name":"greet"}`}:      jsonrpc.CodeInvalidParams,
			{mcp.MethodGetPrompt, `{"name":"unheard-of"}`}: jsonrpc.CodeInvalidParams,
		} {
			if m := p.request(request[0], request[1]); m.Error == nil || m.Error.Code != code {
				t.Errorf("%v is answered by %s", request, m.raw)
			}
		}
	}},
	{name: "resources", feature: "`resources/list`, `resources/read`", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.list(t, mcp.MethodListResources), `{"uri":"test://text","name":"text","title":"Text","mimeType":"text/plain"}`)
		wants(t, p.result(mcp.MethodReadResource, `{"uri":"test://text"}`), `{"uri":"test://text","mimeType":"text/plain","text":"test://text "}`)
		wants(t, p.result(mcp.MethodReadResource, `{"uri":"test://blob"}`), `"blob":"AQID"`)
	}},
	{name: "resource-not-found", feature: "no such resource: -32002, -32602 from 2026-07-28 on", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		code := jsonrpc.CodeResourceNotFound
		if p.revision.Era() == mcp.Modern {
			code = jsonrpc.CodeInvalidParams
		}
		m := p.request(mcp.MethodReadResource, `{"uri":"test://none"}`)
		if m.Error == nil || m.Error.Code != code || string(m.Error.Data) != `{"uri":"test://none"}` {
			t.Errorf("it is answered by %s", m.raw)
		}
	}},
	{name: "templates", feature: "`resources/templates/list` and reading by template", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.list(t, mcp.MethodListResourceTemplates), `{"uriTemplate":"test://numbers/{n}","name":"numbers"}`)
		wants(t, p.result(mcp.MethodReadResource, `{"uri":"test://numbers/7"}`), `"text":"test://numbers/7 7"`)
	}},
	{name: "prompts", feature: "`prompts/list`, `prompts/get`", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.list(t, mcp.MethodListPrompts), `{"name":"greet","description":"Greets.","arguments":[{"name":"name","required":true}]}`)
		wants(t, p.result(mcp.MethodGetPrompt, `{"name":"greet","arguments":{"name":"Ada"}}`), `{"role":"user","content":{"type":"text","text":"Hello Ada"}}`)
	}},
	{name: "completion", feature: "`completion/complete`", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.result(mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"A"}}`),
			`"completion":{"values":["Ada"],"total":1,"hasMore":false}`)
	}},
	{name: "progress", feature: "progress of a request", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		p.call("progress", `{}`) // to nobody
		p.result(mcp.MethodCallTool, `{"name":"progress","_meta":{"progressToken":"p"}}`)
		wants(t, string(p.next(mcp.NotificationProgress).Params), `"progressToken":"p"`, `"progress":1`, `"total":2`, `"message":"half"`)
		wants(t, string(p.next(mcp.NotificationProgress).Params), `"progressToken":"p"`, `"progress":2`)
	}},
	{name: "cancellation", feature: "cancelling a request", since: first, run: func(_ *testing.T, p *peer, s *everyFeature) {
		id, _ := p.send(mcp.MethodCallTool, `{"name":"slow"}`)
		<-s.started
		p.line.abandon(id)
		<-s.cancelled
	}},
	{name: "set-level", feature: "`logging/setLevel`", since: first, until: last, run: func(t *testing.T, p *peer, _ *everyFeature) {
		p.result(mcp.MethodSetLevel, `{"level":"error"}`)
		p.call("log", `{}`)
		wants(t, string(p.next(mcp.NotificationMessage).Params), `"level":"error"`, `"data":"loud"`)
		if m := p.request(mcp.MethodSetLevel, `{"level":"loud"}`); m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("a level that is none is answered by %s", m.raw)
		}
	}},
	{name: "logging", feature: "log messages of the level that was asked for", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		p.logLevel = "info"
		p.call("log", `{}`)
		wants(t, string(p.next(mcp.NotificationMessage).Params), `"level":"warning"`, `"logger":"part"`, `"data":{"n":1}`)
		wants(t, string(p.next(mcp.NotificationMessage).Params), `"level":"error"`)
	}},
	{name: "elicitation", feature: "elicitation of forms", since: mcp.Revision20250618, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("elicit", `{}`), `"text":"accept Ada"`)
		wants(t, string(p.questions()[0].Params), `"requestedSchema":{"type":"object","properties":{"name":{"type":"string","description":"what to call you"},"age":{"type":"integer"}},"required":["name"]}`)
		p.answers = map[string]string{mcp.MethodElicit: `{"action":"decline"}`}
		wants(t, p.call("elicit", `{}`), `"text":"decline "`)
		p.answers = map[string]string{mcp.MethodElicit: `{"action":"accept","content":{"name":1}}`}
		wants(t, p.call("elicit", `{}`), `does not fit the form: /name must be of type string`, `"isError":true`)
	}},
	{name: "elicitation-url", feature: "elicitation by URL", since: mcp.Revision20251125, run: func(t *testing.T, p *peer, _ *everyFeature) {
		p.answers = map[string]string{mcp.MethodElicit: `{"action":"accept"}`}
		wants(t, p.call("elicit-url", `{}`), `"text":"accept"`)
	}},
	{name: "sampling", feature: "sampling", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("sample", `{}`), `"text":"m: Hello."`)
	}},
	{name: "sampling-tools", feature: "sampling with tools", since: mcp.Revision20251125, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("sample", `{"tools":true}`), `"text":"m: Hello."`)
	}},
	{name: "roots", feature: "roots", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("roots", `{}`), `"text":"file:///home"`)
	}},
	{name: "need-input", feature: "results that need input, with sealed state (for legacy clients as requests)", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("need", `{}`), `"text":"step 1 m"`)
		if n := len(p.questions()); n != 1 {
			t.Errorf("the client was asked %d times", n)
		}
	}},
	{name: "sealed-state", feature: "sealed state that was changed, moved or used is refused", since: mcp.NewestModern, run: func(t *testing.T, p *peer, _ *everyFeature) {
		var need struct{ RequestState string }
		if err := json.Unmarshal(p.request(mcp.MethodCallTool, `{"name":"need"}`).Result, &need); err != nil || need.RequestState == "" {
			t.Fatalf("no state came: %v", err)
		}
		retry := func(tool, state string) message {
			return p.request(mcp.MethodCallTool, `{"name":"`+tool+`","requestState":"`+state+`","inputResponses":{"q":`+defaultAnswers[mcp.MethodCreateMessage]+`}}`)
		}
		if m := retry("need", need.RequestState); m.Error != nil {
			t.Errorf("the retry is answered by %s", m.raw)
		}
		for name, state := range map[string]string{"used": need.RequestState, "changed": "A" + need.RequestState, "made up": "x"} {
			if m := retry("need", state); m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("a state that was %s is answered by %s", name, m.raw)
			}
		}
	}},
	{name: "missing-capability", feature: "what the client has not declared is not asked: -32021", since: first, declare: `{}`, run: func(t *testing.T, p *peer, _ *everyFeature) {
		for tool, need := range map[string]string{
			"elicit": `{"elicitation":{}}`, "elicit-url": `{"elicitation":{"url":{}}}`, "sample": `{"sampling":{}}`, "roots": `{"roots":{}}`, "need": `{"sampling":{}}`,
		} {
			m := p.complete(mcp.MethodCallTool, `{"name":"`+tool+`"}`)
			if m.Error == nil || m.Error.Code != jsonrpc.CodeMissingCapability || string(m.Error.Data) != `{"requiredCapabilities":`+need+`}` {
				t.Errorf("%s is answered by %s", tool, m.raw)
			}
			if want := 400; p.revision.Era() == mcp.Modern && m.status != 0 && m.status != want {
				t.Errorf("%s has the status %d", tool, m.status)
			}
		}
		if n := len(p.questions()); n != 0 {
			t.Errorf("the client was asked %d times", n)
		}
	}},
	{name: "list-changed", feature: "list changes told to legacy clients unasked", since: first, until: last, run: func(_ *testing.T, p *peer, s *everyFeature) {
		p.openListens(s)
		addTools(s.Server, "new")
		p.next(mcp.NotificationToolsListChanged)
		s.RemovePrompts("greet")
		p.next(mcp.NotificationPromptsListChanged)
		s.RemoveResources("test://blob")
		p.next(mcp.NotificationResourcesListChanged)
	}},
	{name: "subscribe", feature: "`resources/subscribe`, `resources/unsubscribe`", since: first, until: last, run: func(t *testing.T, p *peer, s *everyFeature) {
		p.openListens(s)
		p.result(mcp.MethodSubscribe, `{"uri":"test://text"}`)
		s.Changed("test://blob", "test://text")
		for m := p.next(mcp.NotificationResourceUpdated); string(m.Params) != `{"uri":"test://text"}`; {
			m = p.next(mcp.NotificationResourceUpdated) // what openListens has left
		}
		p.result(mcp.MethodUnsubscribe, `{"uri":"test://text"}`)
		if m := p.request(mcp.MethodSubscribe, `{"uri":"test://none"}`); m.Error == nil {
			t.Errorf("subscribing to nothing is answered by %s", m.raw)
		}
	}},
	{name: "listen", feature: "`subscriptions/listen`", since: mcp.NewestModern, run: func(t *testing.T, p *peer, s *everyFeature) {
		id, _ := p.send(mcp.MethodListen, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://text","test://none"]}}`)
		sub := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/subscriptionId":%d}`, id)
		wants(t, string(p.next(mcp.NotificationAcknowledged).Params), `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://text"]}`, sub)
		s.RemovePrompts("greet")
		s.Changed("test://blob", "test://text")
		wants(t, string(p.next(mcp.NotificationResourceUpdated).Params), `"uri":"test://text"`, sub)
		addTools(s.Server, "new")
		wants(t, string(p.next(mcp.NotificationToolsListChanged).Params), sub)
		p.line.abandon(id)
	}},
	{name: "caching", feature: "caching hints (`ttlMs`, `cacheScope`)", since: mcp.NewestModern, run: func(t *testing.T, p *peer, _ *everyFeature) {
		for _, method := range []string{mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates} {
			wants(t, p.result(method, `{}`), `"ttlMs":0,"cacheScope":"public"`)
		}
		wants(t, p.result(mcp.MethodReadResource, `{"uri":"test://text"}`), `"ttlMs":0,"cacheScope":"private"`)
	}},
	{name: "meta", feature: "`_meta` of requests and results", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.call("meta", `{}`), `"com.example/k":"v"`)
		wants(t, p.result("com.example/echo", `{"_meta":{"com.example/say":{"a":1.0}}}`), `"said":{"a":1.0}`)
	}},
	{name: "extensions", feature: "methods of extensions", since: first, run: func(t *testing.T, p *peer, _ *everyFeature) {
		wants(t, p.result("com.example/echo", `{}`), `"said":null`)
	}},
	{name: "batches", feature: "JSON-RPC batches", since: mcp.Revision20250326, until: mcp.Revision20250326, run: func(t *testing.T, p *peer, _ *everyFeature) {
		for i, m := range p.batch(
			[2]string{mcp.MethodPing, `{}`},
			[2]string{mcp.MethodCallTool, `{"name":"echo","arguments":{"Text":"x"}}`},
			[2]string{"none", `{}`},
		) {
			if failed := m.Error != nil; failed != (i == 2) {
				t.Errorf("item %d is answered by %s", i, m.raw)
			}
		}
	}},
	{name: "tasks", feature: "tasks (in 2026-07-28 an extension)", since: mcp.Revision20251125, until: mcp.Revision20251125},
}

// wants checks that a text holds parts.
func wants(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%s\nlacks %s", got, part)
		}
	}
}

func (p *peer) call(tool, arguments string) string {
	p.t.Helper()
	return p.result(mcp.MethodCallTool, `{"name":"`+tool+`","arguments":`+arguments+`}`)
}

// list returns all pages of a list.
func (p *peer) list(t *testing.T, method string) string {
	t.Helper()
	var all strings.Builder
	params := `{}`
	for range 100 {
		got := p.result(method, params)
		all.WriteString(got)
		var page struct{ NextCursor string }
		if err := json.Unmarshal([]byte(got), &page); err != nil {
			t.Fatal(err)
		}
		if page.NextCursor == "" {
			return all.String()
		}
		params = `{"cursor":"` + page.NextCursor + `"}`
	}
	t.Fatalf("%s has no end", method)
	return ""
}

// openListens waits until the session of a legacy client hears of changes: it
// opens its listen calls when the client has said that it is there.
func (p *peer) openListens(s *everyFeature) {
	p.t.Helper()
	p.result(mcp.MethodSubscribe, `{"uri":"test://blob"}`)
	for told := false; !told; {
		s.Changed("test://blob")
		addTools(s.Server, "probe")
		select {
		case m := <-p.notes:
			told = m.Method == mcp.NotificationToolsListChanged
		case <-time.After(5 * time.Millisecond): // once more
		case <-p.t.Context().Done():
			p.t.Fatal("no change was told")
		}
	}
	p.result(mcp.MethodUnsubscribe, `{"uri":"test://blob"}`)
}

// batch sends requests at once and returns their responses in order.
func (p *peer) batch(requests ...[2]string) []message {
	p.t.Helper()
	var items []string
	var responses []chan message
	p.mu.Lock()
	for _, r := range requests {
		p.last++
		response := make(chan message, 1)
		p.methods[fmt.Sprint(p.last)], p.waiting[fmt.Sprint(p.last)] = r[0], response
		responses = append(responses, response)
		items = append(items, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, p.last, r[0], r[1]))
	}
	p.mu.Unlock()
	p.line.post([]byte("[" + strings.Join(items, ",") + "]"))
	var got []message
	for i, response := range responses {
		got = append(got, p.wait(requests[i][0], response))
	}
	return got
}

func TestProtocol(t *testing.T) {
	for _, r := range protocol {
		if r.run == nil {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			for _, revision := range revisions {
				if !r.has(revision) {
					continue
				}
				for _, transport := range transports {
					if r.only != "" && r.only != transport {
						continue
					}
					t.Run(string(revision)+"/"+transport, func(t *testing.T) {
						s := oneOfEverything()
						capabilities := r.declare
						if capabilities == "" {
							capabilities = everyCapability
						}
						r.run(t, dial(t, s.Server, revision, transport, capabilities), s)
					})
				}
			}
		})
	}
}
