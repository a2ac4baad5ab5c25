package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

func mustJSON(v any) mcp.JSON {
	raw, err := mcp.NewJSON(v)
	if err != nil {
		panic(err) // invariant: tests encode strings
	}
	return raw
}

// echoOf answers calls with the name of a backend and that of the tool.
func echoOf(backend string) mcp.HandlerFunc {
	return func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		name, _ := req.Params.LookupString("name")
		return mcp.NewResult(map[string]string{"was": backend + "\x00" + name})
	}
}

// TestAmbiguousNames has the names of the case: each tool is shown once, called by that
// name, and found in the same place in whatever order the backends came.
func TestAmbiguousNames_B145(t *testing.T) {
	backends := []string{"a", "a_", "a__b", "A"}
	tools := []string{"x", "_x", "b__x", "__x"}
	var first []string
	for turn := range backends {
		g := newGateway(t, unhurried, nil)
		for i := range backends {
			backend := backends[(i+turn)%len(backends)]
			add(t, g, backend, named(backend, tools))
		}
		var got []string
		page := do(t, g, mcp.MethodListTools, `{}`)
		raw, _ := page.Lookup("tools")
		for tool := range jsonrpc.IndexedItems(raw) {
			name, _ := tool.LookupString("name")
			description, _ := tool.LookupString("description")
			result := do(t, g, mcp.MethodCallTool, string(mustJSON(map[string]string{"name": name})))
			if was, _ := result.LookupString("was"); was != description {
				t.Errorf("%s was called as %q and is %q", name, was, description)
			}
			got = append(got, name)
		}
		if len(got) != len(backends)*len(tools) || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			t.Errorf("the tools are shown as %q", got)
		}
		if first == nil {
			first = got
		} else if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("in another order (-first +now):\n%s", diff)
		}
	}
}

func TestSingleBackendHasNoPrefix(t *testing.T) {
	one, two := newFake("read", "a.b"), newFake("read")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"one": one})
	names := listTools(t, g)
	if len(names) != 2 || names[0] != "read" || names[1] != gateway.ExposedName("", "a.b", 0) {
		t.Fatalf("a single backend has %q", names)
	}
	for i, want := range []string{"read", "a.b"} {
		if got := callTool(t, g, names[i]); got != want {
			t.Errorf("%q is called as %q", names[i], got)
		}
	}
	add(t, g, "two", two)
	want := []string{"one__read", gateway.ExposedName("one", "a.b", 0), "two__read"}
	if diff := cmp.Diff(want, listTools(t, g)); diff != "" {
		t.Errorf("with a second one (-want +got):\n%s", diff)
	}
	if !g.Remove("one") || g.Remove("one") {
		t.Error("a backend is not removed once")
	}
	if diff := cmp.Diff([]string{"read"}, listTools(t, g)); diff != "" {
		t.Errorf("with the second one alone (-want +got):\n%s", diff)
	}
}

// TestRemovedBackendLendsNoNames: a list that was under way then shows nothing of it that
// would lead to another one.
func TestRemovedBackendLendsNoNames_B145(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake("x", "y"), newFake("x")
		b.handle(mcp.MethodListTools, after(time.Second, newFake("x")))
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": a, "b": b})
		shown := make(chan []string)
		go func() { shown <- listTools(t, g) }()
		synctest.Wait()
		g.Remove("a")
		for _, name := range <-shown {
			_, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"`+name+`"}`), mcp.NoCaller{})
			if err == nil {
				t.Errorf("%s of a list from before leads to a backend that may not have shown it", name)
			}
		}
		if diff := cmp.Diff([]string{"x"}, listTools(t, g)); diff != "" {
			t.Errorf("then (-want +got):\n%s", diff)
		}
	})
}

// TestCallBeforeAnyList: a client may know names from before a restart.
func TestCallBeforeAnyList(t *testing.T) {
	one, two := newFake("read"), newFake("read")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"one": one, "two": two})
	if got := callTool(t, g, "two__read"); got != "read" {
		t.Errorf("the tool is called as %q", got)
	}
	if one.times(mcp.MethodListTools) != 0 {
		t.Error("a backend was asked whose the name cannot be")
	}
	if two.times(mcp.MethodCallTool) != 1 || one.times(mcp.MethodCallTool) != 0 {
		t.Error("the call went elsewhere")
	}
}

// TestCallWaitsForASlowStart: a server that is being installed when it is first called.
func TestCallWaitsForASlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, hung := newFake("read"), newFake()
		slow.handle(mcp.MethodDiscover, after(30*time.Second, newFake()))
		hung.hang(mcp.MethodDiscover)
		g := newGateway(t, hurried, map[string]mcp.Handler{"slow": slow, "hung": hung})
		began := time.Now()
		if got := callTool(t, g, "slow__read"); got != "read" || time.Since(began) != 30*time.Second {
			t.Errorf("the tool is called as %q after %v", got, time.Since(began))
		}
		if n := slow.times(mcp.MethodListTools); n != 1 {
			t.Errorf("the list was asked for %d times", n)
		}
		_, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"hung__read"}`), mcp.NoCaller{})
		if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.Unreachable || e.Outcome != mcp.NotSent {
			t.Errorf("the call of a backend that hangs: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = g.Handle(ctx, request(mcp.MethodCallTool, `{"name":"hung__read"}`), mcp.NoCaller{})
		if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.TimedOut {
			t.Errorf("a call with a deadline: %v", err)
		}
	})
}

// TestToolOfANewerList: which another client was shown, or one that is not there any more.
func TestToolOfANewerList_B146(t *testing.T) {
	b := newFake("old")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": newFake("old"), "b": b})
	listTools(t, g)
	b.setTools("old", "new")
	if got := callTool(t, g, "b__new"); got != "new" {
		t.Errorf("the tool is called as %q", got)
	}
	asked := b.times(mcp.MethodListTools)
	callTool(t, g, "b__new")
	b.answer(mcp.MethodListTools, `{"tools":[],"ttlMs":60000}`)
	listTools(t, g)
	for range 2 {
		_, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"b__new"}`), mcp.NoCaller{})
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Message != "Unknown tool: b__new" {
			t.Errorf("a tool that is not in a list that is fresh: %v", err)
		}
	}
	if n := b.times(mcp.MethodListTools); n != asked+1 {
		t.Errorf("the backend was asked %d times for what is known", n-asked-1)
	}
}

// TestSlowBackendIsFoundAmongDeadOnes: whose a shortened name is may be said late, and
// by none that it might be of as well.
func TestSlowBackendIsFoundAmongDeadOnes_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alike, tool := strings.Repeat("b", gateway.DefaultMaxName), strings.Repeat("t", gateway.DefaultMaxName)
		dead, hung, slow := newFake(), newFake(), newFake(tool)
		dead.fail(mcp.MethodListTools, errCrashed)
		hung.hang(mcp.MethodListTools)
		slow.handle(mcp.MethodListTools, after(5*time.Second, newFake(tool)))
		g := newGateway(t, hurried, map[string]mcp.Handler{alike + "1": dead, alike + "2": hung, alike + "3": slow, alike + "4": dead})
		began := time.Now()
		if got := callTool(t, g, gateway.ExposedName(alike+"3", tool, 0)); got != tool || time.Since(began) != 5*time.Second {
			t.Errorf("the tool is called as %q after %v", got, time.Since(began))
		}
		began = time.Now()
		_, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"`+gateway.ExposedName(alike+"3", tool+"u", 0)+`"}`), mcp.NoCaller{})
		if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.Unreachable || time.Since(began) > gateway.DefaultLateLimit {
			t.Errorf("a tool that none of them lists, after %v: %v", time.Since(began), err)
		}
	})
}

// TestBackendThatBecomesAnother: it has tools now, and has said so.
func TestBackendThatBecomesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("read")
		b.answer(mcp.MethodDiscover, `{"capabilities":{}}`)
		radio := newRadio(b)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		_, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		if got := listTools(t, g); len(got) != 0 {
			t.Errorf("at first it has %q", got)
		}
		b.answer(mcp.MethodDiscover, everything)
		(<-radio.calls).tell(t, &mcp.Notification{Method: mcp.NotificationToolsListChanged})
		if diff := cmp.Diff([]string{"read"}, listTools(t, g)); diff != "" {
			t.Errorf("then (-want +got):\n%s", diff)
		}
	})
}

func TestUnknownNames(t *testing.T) {
	dead := newFake()
	dead.fail(mcp.MethodDiscover, &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent})
	g := newGateway(t, unhurried, map[string]mcp.Handler{"one": newFake("read"), "two": newFake("read"), "dead": dead})
	for _, tt := range []struct {
		method, params string
		code           int
		text           string
	}{
		{mcp.MethodCallTool, `{"name":"one__write"}`, jsonrpc.CodeInvalidParams, "Unknown tool: one__write"},
		{mcp.MethodCallTool, `{"name":"read"}`, jsonrpc.CodeInvalidParams, "Unknown tool: read"},
		{mcp.MethodCallTool, `{"name":7}`, jsonrpc.CodeInvalidParams, "name must be a string"},
		{mcp.MethodCallTool, `{}`, jsonrpc.CodeInvalidParams, "name must be a string"},
		{mcp.MethodGetPrompt, `{"name":"one__ask"}`, jsonrpc.CodeInvalidParams, "Unknown prompt: one__ask"},
		{mcp.MethodReadResource, `{}`, jsonrpc.CodeInvalidParams, "uri must be a string"},
		{mcp.MethodComplete, `{"ref":{"type":"ref/tool"}}`, jsonrpc.CodeInvalidParams, "ref must be"},
		{mcp.MethodComplete, `{"ref":{"type":"ref/resource","uri":"x:/{y}"}}`, jsonrpc.CodeInvalidParams, "Unknown resource template: x:/{y}"},
		{mcp.MethodListTools, `{"cursor":"7"}`, jsonrpc.CodeInvalidParams, "cursor"},
		{"tasks/get", `{"taskId":"1"}`, jsonrpc.CodeMethodNotFound, "Method not found: tasks/get"},
		{"no/such", `{}`, jsonrpc.CodeMethodNotFound, "no/such"},
		// It may have that tool.
		{mcp.MethodCallTool, `{"name":"dead__read"}`, jsonrpc.CodeInternalError, `"dead__read" may be of backend "dead"`},
	} {
		t.Run(tt.method+tt.params, func(t *testing.T) {
			_, err := g.Handle(t.Context(), request(tt.method, tt.params), mcp.NoCaller{})
			if err == nil {
				t.Fatal("it succeeds")
			}
			wire := jsonrpc.ToWire(err)
			if wire.Code != tt.code || !strings.Contains(wire.Message, tt.text) {
				t.Errorf("error %d %q, want %d with %q", wire.Code, wire.Message, tt.code, tt.text)
			}
		})
	}
}

// TestEverythingPasses: nothing of a call is changed but the name, on no way.
func TestEverythingPasses_B148(t *testing.T) {
	b := newFake("read")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"one": b, "two": newFake()})
	const params = `{"_meta":{"progressToken": 7,"x":1e2},"name":"one__read","arguments":{"n":9007199254740993, "\u00e4":"\ud800"},"requestState":"s=="}`
	listTools(t, g)
	for _, params := range []string{
		params, `{"n\u00e4":1,"name":"one__read"}`, `{"x/y":1,"name":"one__read"}`, `{"n\u0061me":"one__read"}`,
	} {
		result := do(t, g, mcp.MethodCallTool, params)
		was, _ := result.Lookup("was")
		if want := strings.Replace(params, "one__read", "read", 1); string(was) != want {
			t.Errorf("the backend got  %s\nwant             %s", was, want)
		}
	}
	for _, raw := range []string{
		`{"code":-32602,"message":"no","data":{"deep":[1]}}`, `{"code":12345,"message":""}`, `{"code":-32042,"message":"open","data":null,"x":1}`,
	} {
		v := jsonrpc.Trusted([]byte(raw))
		fromPeer := jsonrpc.ReadError(&v)
		b.fail(mcp.MethodCallTool, fromPeer)
		if _, err := g.Handle(t.Context(), request(mcp.MethodCallTool, params), mcp.NoCaller{}); !errors.Is(err, fromPeer) || err != error(fromPeer) {
			t.Errorf("the error %s became %v", raw, err)
		}
	}
	const needs = `{"resultType":"input_required","requestState":"x y","inputRequests":{"k":{"method":"elicitation/create","params":{}}}}`
	b.answer(mcp.MethodCallTool, needs)
	result := do(t, g, mcp.MethodCallTool, params)
	if string(result.Raw()) != needs {
		t.Errorf("the result became %s", result.Raw())
	}
}

// asking is a Caller that keeps what it is told and asked.
type asking struct {
	told  []string
	asked []string
}

func (a *asking) Notify(_ context.Context, n *mcp.Notification) error {
	a.told = append(a.told, n.Method+" "+string(n.Params.Raw()))
	return nil
}

func (a *asking) Ask(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	a.asked = append(a.asked, req.Method)
	return mcp.RawResult([]byte(`{"action":"accept"}`)), nil
}

func TestCallerIsHandedOn_B151(t *testing.T) {
	b := newFake("ask")
	b.handle(mcp.MethodCallTool, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if err := caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(`{"progress":1}`))}); err != nil {
			return mcp.Result{}, err
		}
		return caller.Ask(ctx, request(mcp.MethodElicit, `{}`))
	})
	g := newGateway(t, unhurried, map[string]mcp.Handler{"one": b, "two": newFake("ask")})
	caller := new(asking)
	req := request(mcp.MethodCallTool, `{"name":"one__ask"}`)
	req.Meta.Principal = mcp.Principal{Issuer: "i", Subject: "s"}
	req.Meta.ProgressToken = jsonrpc.IntID(7)
	result, err := g.Handle(t.Context(), req, caller)
	if err != nil || string(result.Raw()) != `{"action":"accept"}` {
		t.Errorf("result %s, %v", result.Raw(), err)
	}
	if diff := cmp.Diff(&asking{told: []string{`notifications/progress {"progress":1}`}, asked: []string{mcp.MethodElicit}}, caller, cmp.AllowUnexported(asking{})); diff != "" {
		t.Errorf("the client (-want +got):\n%s", diff)
	}
	last := b.lastRequest()
	if last.Meta.Principal != req.Meta.Principal || last.Meta.ProgressToken.Key() != "7" {
		t.Errorf("the backend is told %+v", last.Meta)
	}
}

// TestTasksAreNotMade: nobody would find them again.
func TestTasksAreNotMade(t *testing.T) {
	b := newFake("work")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"one": b})
	for _, slash := range []string{`/`, `\/`} {
		declared := `{"extensions":{"io.modelcontextprotocol` + slash + `tasks":{},"x/y":{}},"sampling":{}}`
		meta := modern
		meta.Capabilities = []byte(declared)
		doAs(t, g, meta, mcp.MethodCallTool, `{"name":"work","_meta":{"io.modelcontextprotocol`+slash+`clientCapabilities":`+declared+`}}`)
		const left = `{"extensions":{"x/y":{}},"sampling":{}}`
		last := b.lastRequest()
		inMeta := last.Params.Get("_meta")
		told, _ := inMeta.Lookup(mcp.MetaClientCapabilities)
		if string(last.Meta.Capabilities) != left || string(told) != left {
			t.Errorf("the backend is told %s, and in the params %s", last.Meta.Capabilities, told)
		}
	}
	legacy := mcp.Metadata{Revision: mcp.NewestLegacy, TakesTasks: true}
	doAs(t, g, legacy, mcp.MethodCallTool, `{"name":"work","task":{"ttl":1}}`)
	if last := b.lastRequest(); last.Meta.TakesTasks || strings.Contains(string(last.Params.Raw()), "task") {
		t.Errorf("the backend of a legacy client gets %s", last.Params.Raw())
	}
	b.answer(mcp.MethodCallTool, `{"resultType":"task","taskId":"1"}`)
	_, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"work"}`), mcp.NoCaller{})
	if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.Unsupported {
		t.Errorf("a task that was made all the same: %v", err)
	}
}

func TestCompletionsAreOfWhatTheyNameAndNothingElse(t *testing.T) {
	one, two := newFake(), newFake()
	for _, f := range []*fake{one, two} {
		f.answer(mcp.MethodListPrompts, `{"prompts":[{"name":"p"}]}`)
		f.handle(mcp.MethodComplete, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			return mcp.Result{Value: req.Params}, nil
		})
		f.handle(mcp.MethodGetPrompt, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			return mcp.Result{Value: req.Params}, nil
		})
	}
	two.answer(mcp.MethodListResourceTemplates, `{"resourceTemplates":[{"uriTemplate":"x:/{y}","name":"t"}]}`)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"one": one, "two": two})
	for _, tt := range []struct{ method, params, want string }{
		{mcp.MethodComplete, `{"argument":{"name":"a","value":""},"ref":{"type":"ref/prompt","name":"two__p","title":"t"}}`,
			`{"argument":{"name":"a","value":""},"ref":{"type":"ref/prompt","name":"p","title":"t"}}`},
		{mcp.MethodComplete, `{"ref":{"type":"ref/resource","uri":"x:/{y}"}}`, `{"ref":{"type":"ref/resource","uri":"x:/{y}"}}`},
		{mcp.MethodComplete, `{"ref":{"type":"ref/resource","uri":"x:/1"}}`, `{"ref":{"type":"ref/resource","uri":"x:/1"}}`},
		{mcp.MethodGetPrompt, `{"name":"two__p"}`, `{"name":"p"}`},
	} {
		result := do(t, g, tt.method, tt.params)
		if string(result.Raw()) != tt.want {
			t.Errorf("the backend gets %s, want %s", result.Raw(), tt.want)
		}
	}
	if one.times(mcp.MethodComplete)+one.times(mcp.MethodGetPrompt) != 0 || two.times(mcp.MethodComplete) != 3 {
		t.Error("requests went to the other backend")
	}
}

// TestLimitOfOneBackend: each may have its own.
func TestLimitOfOneBackend_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := newFake("x")
		small.handle(mcp.MethodCallTool, after(time.Second, newFake()))
		g := newGateway(t, nil, nil)
		if err := g.Add("small", small, &gateway.BackendOptions{MaxCalls: 1}); err != nil {
			t.Fatal(err)
		}
		listTools(t, g)
		first := make(chan string)
		go func() { first <- callTool(t, g, "x") }()
		synctest.Wait()
		_, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"x"}`), mcp.NoCaller{})
		if wire := jsonrpc.ToWire(err); !strings.Contains(wire.Message, `1 calls of backend "small" are in flight, the limit is 1`) ||
			string(wire.Data.Raw()) != `{"mcpsplice":{"kind":"limit exceeded","outcome":"not sent","limit":"MaxCalls"}}` {
			t.Errorf("one call more: %v %s", wire, wire.Data.Raw())
		}
		if got := <-first; got != "x" {
			t.Errorf("the first call: %q", got)
		}
		if got := callTool(t, g, "x"); got != "x" {
			t.Errorf("and one after it: %q", got)
		}
	})
}

// TestLongKeys: what clients say of themselves is compared in full, however long it is.
func TestLongKeys_B155(t *testing.T) {
	b := personal(`,"ttlMs":60000`)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	long := strings.Repeat("x", 1000)
	for _, who := range []string{long + "1", long + "2"} {
		result := doAs(t, g, as(who, `{}`), mcp.MethodListTools, `{}`)
		if !strings.Contains(string(result.Raw()), gateway.ExposedName("", who, 0)) {
			t.Errorf("somebody is shown the list of somebody else: %.100s", result.Raw())
		}
	}
}

func TestAddRefuses(t *testing.T) {
	g := newGateway(t, unhurried, map[string]mcp.Handler{"one": newFake()})
	for _, tt := range []struct {
		name string
		want error
	}{
		{"", gateway.ErrBackendName}, {"\xff", gateway.ErrBackendName},
		{strings.Repeat("x", gateway.MaxBackendName+1), gateway.ErrBackendName}, {"one", gateway.ErrBackendUsed},
	} {
		if err := g.Add(tt.name, newFake(), nil); !errors.Is(err, tt.want) {
			t.Errorf("adding %.20q: %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := g.Add("nil", nil, nil); err == nil {
		t.Error("nothing was added")
	}
	for i := range gateway.MaxBackends - 1 {
		add(t, g, fmt.Sprint(i), newFake())
	}
	if err := g.Add("more", newFake(), nil); err == nil || !strings.Contains(err.Error(), "MaxBackends") {
		t.Errorf("adding one too many: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Add("late", newFake(), nil); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("adding to a closed gateway: %v", err)
	}
	if _, err := g.Handle(t.Context(), request(mcp.MethodListTools, `{}`), mcp.NoCaller{}); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("a request to a closed gateway: %v", err)
	}
}

// TestNameThatOnlyBeginsAlikeWaitsForNobody: it cannot be the hung backend's.
func TestNameThatOnlyBeginsAlikeWaitsForNobody_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := newFake()
		hung.hang(mcp.MethodListTools)
		g := newGateway(t, hurried, map[string]mcp.Handler{"hung": hung, "b": newFake("x")})
		began := time.Now()
		_, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"hungry__x"}`), mcp.NoCaller{})
		if jsonrpc.ToWire(err).Code != jsonrpc.CodeInvalidParams || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestNotificationsOfClientsCountAsCalls: one client could fill a backend's memory with
// them.
func TestNotificationsOfClientsCountAsCalls_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := newFake("x")
		hung.hang(mcp.NotificationRootsListChanged)
		g := newGateway(t, nil, nil)
		if err := g.Add("hung", hung, &gateway.BackendOptions{MaxCalls: 2}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			n := request(mcp.NotificationRootsListChanged, `{}`)
			n.Notification = true
			if _, err := g.Handle(t.Context(), n, mcp.NoCaller{}); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if s := statusOf(t, g, "hung"); s.Calls != 2 || s.Refused != 3 {
			t.Errorf("meanwhile: %v", s)
		}
		time.Sleep(gateway.DefaultListBudget)
		synctest.Wait()
		if s := statusOf(t, g, "hung"); s.Calls != 0 {
			t.Errorf("afterwards: %v", s)
		}
	})
}
