package streamable_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A fixture is a server that does one of each thing that a bridge must carry.
type fixture struct {
	started   chan string // names of slow tools whose call has begun
	cancelled chan string // and has been cancelled

	mu      sync.Mutex
	filters map[*mcp.Filter]bool // of acknowledged listen calls
	changed chan struct{}        // closed and made anew at each change
	update  *mcp.Notification
	heard   int // who has been told of it
}

func newFixture() *fixture {
	return &fixture{
		started: make(chan string, 10), cancelled: make(chan string, 10),
		changed: make(chan struct{}), filters: make(map[*mcp.Filter]bool),
	}
}

func raw(text string) (mcp.Result, error) { return mcp.RawResult([]byte(text)), nil }

func (f *fixture) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return raw(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},` +
			`"resources":{"listChanged":true,"subscribe":true},"logging":{},"completions":{}},"instructions":"try it",` +
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fixture","version":"1.2.3"}}}`)
	case mcp.MethodListen:
		return f.listen(ctx, req, caller)
	case mcp.MethodListTools:
		if cursor, ok := req.Params.LookupString("cursor"); ok {
			return raw(`{"tools":[{"name":"` + cursor + `","inputSchema":{"type":"object"}}],"vendor":1.0}`)
		}
		return raw(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}},` +
			`{"name":"regional","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}],"nextCursor":"p\"2"}`)
	case mcp.MethodCallTool:
		return f.call(ctx, req, caller)
	case mcp.MethodListResources:
		return raw(`{"resources":[{"uri":"test://a","name":"a"}]}`)
	case mcp.MethodListResourceTemplates:
		return raw(`{"resourceTemplates":[{"uriTemplate":"test://{x}","name":"t"}]}`)
	case mcp.MethodReadResource:
		uri, _ := req.Params.LookupString("uri")
		if uri != "test://a" {
			return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "Resource not found")
		}
		return raw(`{"contents":[{"uri":"test://a","text":"content"}]}`)
	case mcp.MethodListPrompts:
		return raw(`{"prompts":[{"name":"p"}]}`)
	case mcp.MethodGetPrompt:
		return raw(`{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`)
	case mcp.MethodComplete:
		return raw(`{"completion":{"values":["one","two"]}}`)
	}
	if req.Notification {
		return mcp.Result{}, nil
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
}

func (f *fixture) call(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	name, _ := req.Params.LookupString("name")
	arguments := req.Params.Get("arguments")
	switch name {
	case "echo":
		return raw(`{"content":[],"structuredContent":` + string(arguments.Raw()) + `,"vendor":{"b":1,"a":1e2}}`)
	case "regional":
		return raw(`{"content":[{"type":"text","text":"ok"}]}`)
	case "progress":
		for i := 1; i <= 3; i++ {
			params := mcp.WithProgressToken(new(jsonrpc.Trusted(fmt.Appendf(nil, `{"progress":%d,"total":3}`, i))), req.Meta.ProgressToken)
			if err := caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress, Params: params}); err != nil {
				return mcp.Result{}, err
			}
		}
		return raw(`{"content":[]}`)
	case "log":
		for _, level := range []string{"debug", "warning", "error"} {
			params := jsonrpc.Trusted([]byte(`{"level":"` + level + `","data":"` + level + ` message"}`))
			if err := caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationMessage, Params: params}); err != nil {
				return mcp.Result{}, err
			}
		}
		return raw(`{"content":[]}`)
	case "slow":
		f.started <- name
		<-ctx.Done()
		f.cancelled <- name
		return mcp.Result{}, ctx.Err()
	case "fail":
		return mcp.Result{}, &jsonrpc.Error{Code: 12345, Message: "no luck", Data: jsonrpc.Trusted([]byte(`{"why":[1,2]}`))}
	case "panic":
		panic("a tool panics")
	case "ask":
		answer, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte(question))})
		if err != nil {
			return mcp.Result{}, err
		}
		return raw(`{"content":[],"structuredContent":{"answer":` + string(answer.Raw()) + `}}`)
	case "input":
		return f.input(req)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Unknown tool")
}

const question = `{"mode":"form","message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`

// input asks the client's name by a result that needs input.
func (f *fixture) input(req *mcp.Request) (mcp.Result, error) {
	responses, ok := req.Params.Lookup("inputResponses")
	if !ok {
		return raw(`{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":` + question + `}},"requestState":"s\u0031"}`)
	}
	state, _ := req.Params.Lookup("requestState")
	return raw(`{"content":[],"structuredContent":{"state":` + string(state) + `,"answers":` + string(responses) + `}}`)
}

// change tells everybody who listens.
func (f *fixture) change(n *mcp.Notification) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.update, f.heard = n, 0
	close(f.changed)
	f.changed = make(chan struct{})
}

// told reports whether everybody who listens has been told of the last change.
func (f *fixture) told(n *mcp.Notification) bool {
	listeners := f.listeners(n)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard >= listeners
}

// enter counts a listen call until leave is called.
func (f *fixture) enter(filter *mcp.Filter) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters[filter] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.filters, filter)
	}
}

// listeners returns how many listen calls would hear of a change.
func (f *fixture) listeners(n *mcp.Notification) (count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for filter := range f.filters {
		if filter.Wants(n) {
			count++
		}
	}
	return count
}

func (f *fixture) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	f.mu.Lock()
	changed := f.changed
	f.mu.Unlock()
	if err := caller.Notify(ctx, filter.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	defer f.enter(&filter)()
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return mcp.Result{}, ctx.Err()
		}
		f.mu.Lock()
		n := f.update
		changed = f.changed
		f.mu.Unlock()
		if filter.Wants(n) {
			if err := caller.Notify(ctx, n); err != nil {
				return mcp.Result{}, err
			}
			f.mu.Lock()
			f.heard++
			f.mu.Unlock()
		}
	}
}
