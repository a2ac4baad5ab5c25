package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A fake is a backend whose answers a test sets. It is safe for concurrent use.
type fake struct {
	mu    sync.Mutex
	on    map[string]mcp.HandlerFunc // by method
	asked map[string]int             // how often, by method
	last  *mcp.Request               // copied
}

// everything is the capabilities of a fake.
const everything = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"completions":{}}}`

// newFake returns a backend with tools of these names, each of which says what it was
// called with.
func newFake(tools ...string) *fake {
	f := &fake{on: make(map[string]mcp.HandlerFunc), asked: make(map[string]int)}
	f.answer(mcp.MethodDiscover, everything)
	f.setTools(tools...)
	f.answer(mcp.MethodListPrompts, `{"prompts":[]}`)
	f.answer(mcp.MethodListResources, `{"resources":[]}`)
	f.answer(mcp.MethodListResourceTemplates, `{"resourceTemplates":[]}`)
	f.handle(mcp.MethodCallTool, func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		return mcp.RawResult(jsonrpc.AppendEdited(nil, &jsonrpc.Value{}, jsonrpc.Edit{Name: "was", Value: req.Params.Raw()})), nil
	})
	return f
}

func (f *fake) setTools(names ...string) {
	items := make([]string, len(names))
	for i, name := range names {
		items[i] = `{"name":` + string(jsonrpc.AppendString(nil, name)) + `,"inputSchema":{"type":"object"}}`
	}
	f.answer(mcp.MethodListTools, `{"tools":[`+strings.Join(items, ",")+`]}`)
}

func (f *fake) answer(method, result string) { f.handle(method, answering(result)) }

func answering(result string) mcp.HandlerFunc {
	return func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		return mcp.RawResult([]byte(result)), nil
	}
}

func (f *fake) fail(method string, err error) {
	f.handle(method, func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) { return mcp.Result{}, err })
}

// hang has a method never answer.
func (f *fake) hang(method string) {
	f.handle(method, func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		<-ctx.Done()
		return mcp.Result{}, &mcp.CallError{Method: req.Method, Kind: mcp.Cancelled, Outcome: mcp.MaybeExecuted, Err: ctx.Err()}
	})
}

func (f *fake) handle(method string, h mcp.HandlerFunc) {
	f.mu.Lock()
	f.on[method] = h
	f.mu.Unlock()
}

func (f *fake) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	copied := *req
	f.mu.Lock()
	f.asked[req.Method]++
	f.last = &copied
	h := f.on[req.Method]
	f.mu.Unlock()
	if h == nil {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	return h(ctx, req, caller)
}

func (f *fake) times(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[method]
}

func (f *fake) lastRequest() *mcp.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Where time is that of the machine, nothing is late on a slow one. In synctest bubbles
// the defaults are as good.
var (
	unhurried = &gateway.Options{ListBudget: patience, KeptBudget: patience}
	hurried   = new(gateway.Options)
)

// newGateway returns a gateway over backends, given by name.
func newGateway(t testing.TB, opts *gateway.Options, backends map[string]mcp.Handler) *gateway.Gateway {
	t.Helper()
	g := gateway.New(opts)
	t.Cleanup(func() { _ = g.Close() })
	for name, b := range backends {
		add(t, g, name, b)
	}
	return g
}

func add(t testing.TB, g *gateway.Gateway, name string, b mcp.Handler) {
	t.Helper()
	if err := g.Add(name, b, nil); err != nil {
		t.Fatal(err)
	}
}

// modern is what a modern client says of itself.
var modern = mcp.Metadata{Revision: mcp.NewestModern, Capabilities: []byte(`{}`), Client: []byte(`{"name":"c","version":"1"}`)}

func request(method, params string) *mcp.Request {
	return &mcp.Request{Method: method, Params: jsonrpc.Trusted([]byte(params)), Meta: modern}
}

// do makes a request that must succeed.
func do(t testing.TB, h mcp.Handler, method, params string) mcp.Result {
	t.Helper()
	return doAs(t, h, modern, method, params)
}

func doAs(t testing.TB, h mcp.Handler, meta mcp.Metadata, method, params string) mcp.Result {
	t.Helper()
	req := request(method, params)
	req.Meta = meta
	result, err := h.Handle(t.Context(), req, mcp.NoCaller{})
	if err != nil {
		t.Fatalf("%s %s: %v", method, params, err)
	}
	return result
}

// list returns the names of all items of a list, page by page.
func list(t testing.TB, h mcp.Handler, method, member, key string) []string {
	t.Helper()
	return listAs(t, h, modern, method, member, key)
}

func listAs(t testing.TB, h mcp.Handler, meta mcp.Metadata, method, member, key string) (names []string) {
	t.Helper()
	params := `{}`
	for {
		page := doAs(t, h, meta, method, params)
		raw, _ := page.Lookup(member)
		for item := range jsonrpc.IndexedItems(raw) {
			name, _ := item.LookupString(key)
			names = append(names, name)
		}
		cursor, more := page.Lookup("nextCursor")
		if !more {
			return names
		}
		params = fmt.Sprintf(`{"cursor":%s}`, cursor)
	}
}

func listTools(t testing.TB, h mcp.Handler) []string {
	t.Helper()
	return list(t, h, mcp.MethodListTools, "tools", "name")
}

// callTool calls a tool and returns the name under which its backend was called.
func callTool(t testing.TB, h mcp.Handler, name string) string {
	t.Helper()
	quoted := jsonrpc.AppendString(nil, name)
	result := do(t, h, mcp.MethodCallTool, fmt.Sprintf(`{"name":%s}`, quoted))
	was := result.Get("was")
	called, _ := was.LookupString("name")
	return called
}

// statusOf returns the status of a backend.
func statusOf(t testing.TB, g *gateway.Gateway, name string) gateway.Status {
	t.Helper()
	for _, s := range g.Status() {
		if s.Backend == name {
			return s
		}
	}
	t.Fatalf("there is no backend %q", name)
	return gateway.Status{}
}
