package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// rows are those of the table of docs/eras.md that says what of the core's language is
// what on either wire, as docs/eras.md lists them. Here is what no test of one edge
// shows: that it holds between each two sides of a bridge.
var rows = []struct {
	name  string
	check func(c *cell, t *testing.T)
}{
	{"who answers", (*cell).rowWhoAnswers},
	{"who is asking", (*cell).rowWhoIsAsking},
	{"log level", (*cell).rowLogLevel},
	{"liveness", (*cell).rowLiveness},
	{"list hints", (*cell).rowListHints},
	{"result type", (*cell).rowResultType},
	{"errors", (*cell).rowErrors},
	{"pages that are required", (*cell).rowPages},
	{"shapes", (*cell).rowShapes},
	{"header annotations", (*cell).rowHeaderAnnotations},
}

func TestRowsOfEras(t *testing.T) {
	ledger, err := os.ReadFile("../../docs/eras.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !strings.Contains(string(ledger), "`transport/streamable: TestRowsOfEras/"+row.name+"`") {
			t.Errorf("docs/eras.md does not name the row %q", row.name)
		}
	}
	inAllCombinations(t, func(t *testing.T, client, server side) {
		c := newCell(t, client, server, everything)
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				c.forget()
				row.check(c, t)
			})
		}
	})
}

// pick returns a text by the eras of client and server.
func (c *cell) pick(legacyLegacy, legacyModern, modernLegacy, modernModern string) string {
	switch {
	case c.client.era == mcp.Legacy && c.server.era == mcp.Legacy:
		return legacyLegacy
	case c.client.era == mcp.Legacy:
		return legacyModern
	case c.server.era == mcp.Legacy:
		return modernLegacy
	}
	return modernModern
}

// give has the server give a result to a call, and returns what the client gets.
func (c *cell) give(t *testing.T, method, result string) string {
	t.Helper()
	return c.must(t, c.plain(method), nil, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) { return raw(result) })
}

// rowWhoAnswers: what the server says of itself is in TestExamplesOfWhatIsDeclared.
// This one does not name itself.
func (c *cell) rowWhoAnswers(t *testing.T) {
	info := c.edge.Server()
	name := string(mcp.ServerInfo(&info.Discover))
	if c.client.era == mcp.Legacy || c.server.era == mcp.Legacy {
		// A session needs a name: that of the one who stands in for the server.
		if !strings.Contains(name, `"name":"`) {
			t.Errorf("the server is called %s", name)
		}
	} else if name != "" {
		t.Errorf("the server is called %s", name)
	}
	declared := info.Discover.Get("capabilities")
	for what, v := range map[string]jsonrpc.Value{`{"x":1.0}`: declared.Get("vendor"), `{"a":1E2}`: info.Discover.Get("vendor")} {
		if string(v.Raw()) != what {
			t.Errorf("what is not known here, %s, is %s", what, v.Raw())
		}
	}
	want := c.pick(`["2025-11-25"]`, `["2025-11-25"]`, `["2026-07-28"]`, `["2026-07-28"]`)
	if got, _ := info.Discover.Lookup("supportedVersions"); string(got) != want {
		t.Errorf("the listener serves %s, want %s", got, want)
	}
}

func (c *cell) rowWhoIsAsking(t *testing.T) {
	c.must(t, c.plain(mcp.MethodGetPrompt), nil, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		c.courier.got <- string(req.Meta.Client)
		c.courier.got <- string(req.Meta.Capabilities)
		c.courier.got <- string(req.Meta.Revision)
		return raw("{}")
	})
	for _, want := range []string{tester, everything, c.pick("2025-11-25", "2026-07-28", "2025-11-25", "2026-07-28")} {
		if got := receive(t, "who is asking", c.courier.got); got != want {
			t.Errorf("the server is told %s, want %s", got, want)
		}
	}
}

// rowLogLevel: modern requests have none unless they say so. What sessions have is
// for the server to choose until they set one; a modern server sends nothing then.
func (c *cell) rowLogLevel(t *testing.T) {
	logging := func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		for _, level := range []string{"debug", "info", "error"} {
			params := jsonrpc.Trusted([]byte(`{"level":"` + level + `","data":1}`))
			if err := caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationMessage, Params: params}); err != nil {
				return mcp.Result{}, err
			}
		}
		return raw("{}")
	}
	own := newCell(t, c.client, c.server, everything) // whose session has no level yet
	for _, tt := range []struct{ level, legacyLegacy, legacyModern, modern string }{
		{"", "debug info error", "", ""},
		{"error", "error", "error", "error"},
		{"info", "info error", "info error", "info error"},
	} {
		own.courier.expect(mcp.MethodCallTool, logging)
		r := newRecorder()
		req := own.request(t, mcp.MethodCallTool)
		req.Meta.LogLevel = mcp.Level(tt.level)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := own.edge.Handle(ctx, req, r); err != nil {
			t.Fatal(err)
		}
		cancel()
		var got []string
		for _, line := range r.lines() {
			got = append(got, unquoted(objectOf(strings.TrimPrefix(line, mcp.NotificationMessage+" ")).get("level")))
		}
		want := c.pick(tt.legacyLegacy, tt.legacyModern, tt.modern, tt.modern)
		if text := strings.Join(got, " "); text != want {
			t.Errorf("at level %q came %q, want %q", tt.level, text, want)
		}
	}
}

// request is a call as a client's own library makes it, whose edge writes the rest.
func (c *cell) request(t *testing.T, method string) *mcp.Request {
	t.Helper()
	req := &mcp.Request{
		Method: method, Params: jsonrpc.Trusted([]byte(`{"name":"x","uri":"test://a"}`)),
		Meta: mcp.Metadata{Client: []byte(tester), Capabilities: []byte(c.capabilities)},
	}
	if c.client.era == mcp.Legacy {
		req.Meta.Revision = mcp.NewestLegacy
	}
	return req
}

// rowLiveness: a ping is answered by whom it reaches, and modern ones have none.
func (c *cell) rowLiveness(t *testing.T) {
	c.courier.expect(mcp.MethodPing, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		return raw(`{"the server":"is asked"}`)
	})
	result, err := c.edge.Handle(t.Context(), &mcp.Request{Method: mcp.MethodPing, Meta: mcp.Metadata{Revision: mcp.NewestLegacy}}, mcp.NoCaller{})
	if c.client.era == mcp.Modern {
		if !errors.Is(err, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "")) {
			t.Errorf("a modern client's ping is answered with %s, %v", result.Raw(), err)
		}
		return
	}
	if string(result.Raw()) != "{}" || err != nil {
		t.Errorf("a ping is answered with %s, %v", result.Raw(), err)
	}
}

func (c *cell) rowListHints(t *testing.T) {
	for _, method := range []string{
		mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates, mcp.MethodReadResource,
	} {
		for _, tt := range []struct{ given, added string }{
			{`{"x":1}`, `,"resultType":"complete","ttlMs":0,"cacheScope":"private"}`},
			{`{"x":1,"ttlMs":5.0}`, `,"resultType":"complete","cacheScope":"private"}`},
			{`{"x":1,"cacheScope":"public","ttlMs":1e3,"resultType":"complete"}`, `}`},
		} {
			added := c.pick("}", tt.added, tt.added, tt.added)
			if got := c.give(t, method, tt.given); got != strings.TrimSuffix(tt.given, "}")+added {
				t.Errorf("%s: %s becomes %s", method, tt.given, got)
			}
		}
	}
}

func (c *cell) rowResultType(t *testing.T) {
	for _, method := range []string{mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodComplete, "vendor/x"} {
		added := `,"resultType":"complete"}`
		if got := c.give(t, method, `{"x":1}`); got != `{"x":1`+c.pick("}", added, added, added) {
			t.Errorf("%s: the result is %s", method, got)
		}
		if got := c.give(t, method, `{"resultType":"complete","x":1}`); got != `{"resultType":"complete","x":1}` {
			t.Errorf("%s: the result is %s", method, got)
		}
	}
}

func (c *cell) rowErrors(t *testing.T) {
	const gone = `{"code":-32602,"message":"gone","data":{"uri":"test://a"}}`
	for _, tt := range []struct{ method, given, modern string }{
		{mcp.MethodReadResource, `{"code":-32002,"message":"gone"}`, gone},
		{mcp.MethodReadResource, `{"code":-32002,"message":"gone","data":{"uri":"x","more":1.0}}`, gone},
		{mcp.MethodReadResource, `{"code":-32001,"message":"x","data":{"a":1.0}}`, ""},
		{mcp.MethodReadResource, `{"code":-32602,"message":"x"}`, ""},
		{mcp.MethodGetPrompt, `{"code":-32002,"message":"not of a resource"}`, ""},
		{mcp.MethodCallTool, `{"code":-32002,"message":"not of a resource","data":[]}`, ""},
		{mcp.MethodComplete, `{"code":-32042,"message":"not of a call"}`, ""},
		{mcp.MethodCallTool, `{"code":-32603,"message":"x","data":{"vendor":null},"more":1.0}`, ""},
		{"vendor/x", `{"code":-32601,"message":"x"}`, ""},
	} {
		result, err := c.make(t, c.plain(tt.method), nil, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			v := jsonrpc.Trusted([]byte(tt.given))
			return mcp.Result{}, jsonrpc.ReadError(&v)
		})
		want := tt.given
		if tt.modern != "" {
			want = c.pick(want, tt.modern, tt.modern, tt.modern)
		}
		if err == nil || tokens(errorText(err)) != want {
			t.Errorf("%s: %s becomes %s, %v, want %s", tt.method, tt.given, result, err, want)
		}
	}
}

// rowPages: a legacy server's error says which pages the user must open first. Between
// legacy ones it passes; a modern client is asked, and makes its call again. A modern
// server asks itself, and a legacy client is asked what it asks.
func (c *cell) rowPages(t *testing.T) {
	const page = `{"mode":"url","url":"https://a","message":"first","elicitationId":"7"}`
	const required = `{"code":-32042,"message":"first","data":{"elicitations":[` + page + `]}}`
	calls := 0
	serve := func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		if calls++; calls > 1 {
			return raw(`{"done":1.0}`)
		}
		v := jsonrpc.Trusted([]byte(required))
		return mcp.Result{}, jsonrpc.ReadError(&v)
	}
	accept := func(*mcp.Request) (mcp.Result, error) { return raw(`{"action":"accept"}`) }
	first := c.plain(mcp.MethodCallTool)
	result, err := c.make(t, first, accept, serve)
	switch {
	case c.client.era == mcp.Modern:
		state, questions := inputIn(t, result)
		want := `{"q1":{"method":"elicitation/create","params":{"mode":"url","url":"https://a","message":"first"}}}`
		if got := questions.String(); got != want {
			t.Errorf("the client is asked %s", got)
		}
		result = c.must(t, retry(first, state, `{"q1":{"action":"accept"}}`), nil, serve)
	case c.server.era == mcp.Legacy:
		if err == nil || tokens(errorText(err)) != required {
			t.Errorf("the error becomes %s, %v", result, err)
		}
		return
	default:
		asked := receive(t, "the question", c.pen.asked)
		same(t, "the question", `elicitation/create {"mode":"url","url":"https://a","message":"first"}`, c.unnamed(t, asked))
		receive(t, "the end of the elicitation", c.pen.told)
	}
	if result != `{"done":1.0,"resultType":"complete"}` {
		t.Errorf("the call ends with %s, %v", result, err)
	}
}

func (c *cell) rowShapes(t *testing.T) {
	const object, array = `{"name":"o","outputSchema":{"type":"object","x":1.0}}`, `{"name":"a","outputSchema":{"type":"array"},"x":1.0}`
	const none, any = `{"name":"n"}`, `{"name":"y","outputSchema":{"type":["object","null"]}}`
	got := objectOf(c.give(t, mcp.MethodListTools, `{"tools":[`+object+`,`+array+`,`+none+`,`+any+`]}`)).get("tools")
	legacy := `[` + object + `,{"name":"a","x":1.0},` + none + `,{"name":"y"}]`
	if want := c.pick(legacy, legacy, legacy, `[`+object+`,`+array+`,`+none+`,`+any+`]`); got != want {
		t.Errorf("the tools are %s, want %s", got, want)
	}
	for _, structured := range []string{`{"a":1.0}`, `[1.0]`, `"x"`, `null`, `1e400`} {
		result := objectOf(c.give(t, mcp.MethodCallTool, `{"content":[{"type":"text","text":"x"}],"structuredContent":`+structured+`}`))
		want := c.pick("", "", "", structured)
		if structured[0] == '{' {
			want = structured
		}
		if got := result.get("structuredContent"); got != want || result.get("content") != `[{"type":"text","text":"x"}]` {
			t.Errorf("structured content %s becomes %s in %s", structured, got, result)
		}
	}
}

// rowHeaderAnnotations: HTTP clients are not shown tools that they could not call, and
// neither is whoever is behind an HTTP edge of ours.
func (c *cell) rowHeaderAnnotations(t *testing.T) {
	const valid = `{"name":"valid","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`
	const invalid = `{"name":"invalid","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}`
	list := func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		return raw(`{"tools":[` + valid + `,` + invalid + `]}`)
	}
	got := objectOf(c.must(t, c.plain(mcp.MethodListTools), nil, list)).get("tools")
	want := `[` + valid + `]`
	if c.client.kind == "stdio" && c.server.kind == "stdio" {
		want = `[` + valid + `,` + invalid + `]`
	}
	if got != want {
		t.Errorf("the tools are %s, want %s", got, want)
	}
	// An HTTP edge mirrors the parameter, and the one that serves compares it: else
	// the call were refused.
	params := objectOf(c.plain(mcp.MethodCallTool).text).set("name", `"valid"`).set("arguments", `{"region":"Zürich \u0000"}`)
	got = c.must(t, letter{mcp.MethodCallTool, params, params.String()}, nil, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		arguments, _ := req.Params.Lookup("arguments")
		return raw(`{"structuredContent":` + string(arguments) + `}`)
	})
	if got := objectOf(got).get("structuredContent"); got != `{"region":"Zürich \u0000"}` {
		t.Errorf("the call of an annotated tool gives %s", got)
	}
}

// A lost edge fails calls of tools as one does whose server has gone.
type lost struct{ transport.Edge }

func (l lost) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	switch {
	case req.Method == mcp.MethodCallTool:
		return mcp.Result{}, &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: errors.New("a secret of ours")}
	case req.Method == mcp.MethodGetPrompt:
		return mcp.Result{}, &mcp.CallError{Kind: mcp.LimitExceeded, Outcome: mcp.NotSent, Limit: "MaxCalls", Public: "later"}
	case req.Method == mcp.MethodComplete:
		return mcp.Result{}, errors.New("a secret of ours")
	}
	return l.Edge.Handle(ctx, req, caller)
}

// TestOurOwnFailures: they cannot be mistaken for the server's, and tell no secrets.
func TestOurOwnFailures_B148(t *testing.T) {
	inAllCombinations(t, func(t *testing.T, client, server side) {
		dialServer := transports[server.kind](t, newCourier(), server.era)
		pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
			edge, err := dialServer(ctx, transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities, Logger: logger})
			return lost{edge}, err
		}, transport.PoolOptions{Logger: logger})
		t.Cleanup(func() { _ = pool.Close() })
		edge, err := transports[client.kind](t, pool, client.era)(t.Context(), transport.DialOptions{Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = edge.Close() })
		for method, want := range map[string]string{
			mcp.MethodCallTool:  `{"code":-32603,"message":"Internal error: connection lost","data":{"mcpsplice":{"kind":"connection lost","outcome":"maybe executed"}}}`,
			mcp.MethodGetPrompt: `{"code":-32603,"message":"Internal error: limit exceeded: later","data":{"mcpsplice":{"kind":"limit exceeded","outcome":"not sent","limit":"MaxCalls"}}}`,
			mcp.MethodComplete:  `{"code":-32603,"message":"Internal error"}`,
		} {
			req := &mcp.Request{Method: method, Params: jsonrpc.Trusted([]byte(`{"name":"x"}`))}
			if _, err := edge.Handle(t.Context(), req, mcp.NoCaller{}); !jsonrpc.FromPeer(err) || errorText(err) != want {
				t.Errorf("%s: the client is told %s", method, errorText(err))
			}
		}
	})
}

// TestUnknownHeadersPass: a parameter's header that no annotation known here explains
// goes on with the call.
func TestUnknownHeadersPass(t *testing.T) {
	c := newCourier()
	c.expect(mcp.MethodCallTool, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		return raw(`{"structuredContent":{"tenant":"` + req.Meta.Headers["Mcp-Param-Tenant"] + `"}}`)
	})
	dial := serveHTTP(t, c, mcp.Modern)
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		return dial(ctx, transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities, Logger: logger})
	}, transport.PoolOptions{Logger: logger})
	t.Cleanup(func() { _ = pool.Close() })
	url := listen(t, pool, &streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Logger: logger}})
	body := modernRequest("1", "tools/call", toolCall("x", "{}"))
	r := newBrowser(t, url).modern(t, body, "Mcp-Param-Tenant", "blue")
	if r.status != http.StatusOK || !strings.Contains(r.body, `"tenant":"blue"`) {
		t.Errorf("the call is answered with %v", r)
	}
}
