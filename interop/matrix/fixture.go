package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// What the fixture says of itself.
const (
	fixtureName  = "matrix-fixture"
	fixtureTitle = "Grüezi"
	instructions = "Ask me anything; \"quotes\" too."
	pageSize     = 6
)

// Resources of the fixture.
const (
	memo      = "memo://greeting"
	otherMemo = "memo://other"
	blob      = "memo://blob"
	// The resource that asks when it is read.
	askingMemo = "memo://asking"
	memoText   = "grüezi mitenand \U0001F600 \u2028"
)

// A fixture is a server that does one of each thing that a cell is checked for.
// It is told what to do by calls alone, so that it may be another process.
type fixture struct {
	*server.Server
	events *events
	tasks  *tasks

	// Atomic.
	grown atomic.Int64
	asked atomic.Bool // a legacy client for its consent
}

// newFixture returns a fixture that is served to clients of one era.
func newFixture(era mcp.Era) *fixture {
	f := &fixture{
		Server: server.New(mcp.Implementation{Name: fixtureName, Title: fixtureTitle, Version: "1.2.3"},
			&server.Options{Instructions: instructions, PageSize: pageSize}),
		events: newEvents(),
	}
	f.tasks = newTasks(f.events, era)
	f.addResults()
	f.addCalls()
	f.addQuestions()
	f.addRounds()
	f.addFeatures()
	return f
}

// none are the arguments of a tool without any.
type none struct{}

// tool adds a typed tool.
func tool[In, Out any](f *fixture, name string, run server.ToolFunc[In, Out]) {
	server.AddTool(f.Server, mcp.Tool{Name: name, Description: "The tool " + name}, run)
}

// A weather is structured content.
type weather struct {
	City    string   `json:"city"`
	Celsius float64  `json:"celsius"`
	Words   []string `json:"words"`
}

// regionalSchema has a header annotation (2026-07-28, server/tools).
const regionalSchema = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`

// addResults adds the tools that only return something.
func (f *fixture) addResults() {
	tool(f, "echo", func(_ context.Context, _ *server.Call, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	})
	tool(f, "weather", func(_ context.Context, _ *server.Call, in struct {
		City string `json:"city"`
	}) (weather, error) {
		return weather{City: in.City, Celsius: 21.5, Words: []string{"sunny", "windy"}}, nil
	})
	tool(f, "fail", func(context.Context, *server.Call, none) (string, error) { return "", errors.New("no luck") })
	tool(f, "refuse", func(context.Context, *server.Call, none) (string, error) {
		return "", &jsonrpc.Error{Code: 12345, Message: "no", Data: jsonrpc.Trusted([]byte(errorData))}
	})
	server.AddTool(f.Server, mcp.Tool{Name: "regional", InputSchema: mcp.JSON(regionalSchema)},
		func(_ context.Context, _ *server.Call, in struct {
			Region string `json:"region"`
		}) (string, error) {
			return in.Region, nil
		})
	tool(f, "big", func(_ context.Context, _ *server.Call, in struct {
		Bytes int `json:"bytes"`
	}) (string, error) {
		return bigText(in.Bytes), nil
	})
	f.AddTool(mcp.Tool{Name: "exact"}, exact)
	for _, name := range []string{asidesTool, chatterTool, boldTool} {
		f.AddTool(mcp.Tool{Name: name}, nil) // see Handle
	}
	f.AddTool(mcp.Tool{Name: "whoami"}, whoami)
	f.AddTool(mcp.Tool{Name: workTool, Extra: mcp.Object{"execution": mcp.JSON(`{"taskSupport":"required"}`)}}, nil)
}

// errorData is the data of the error of the tool refuse.
const errorData = `{"why":[1,2.0],"n":9007199254740993}`

// bigText returns a text of n bytes whose parts differ.
func bigText(n int) string {
	text := make([]byte, 0, n+16)
	for i := 0; len(text) < n; i++ {
		text = append(strconv.AppendInt(text, int64(i), 36), '\n')
	}
	return string(text[:n])
}

// whoami returns what the server knows of its client.
func whoami(_ context.Context, c *server.Call) (mcp.Result, error) {
	meta := c.Request().Meta
	known := mcp.Object{"client": meta.Client, "capabilities": meta.Capabilities}
	revision, err := mcp.NewJSON(meta.Revision)
	if err != nil {
		return mcp.Result{}, err
	}
	known["revision"] = revision
	text, err := mcp.NewJSON(known)
	if err != nil {
		return mcp.Result{}, err
	}
	return mcp.NewResult(&mcp.CallToolResult{Content: mcp.Contents{&mcp.Text{Text: string(text)}}})
}

// addFeatures adds all that is no tool.
func (f *fixture) addFeatures() {
	text := func(_ context.Context, _ *server.Call, uri string, _ map[string]string) (*mcp.ReadResourceResult, error) {
		return server.TextContents("text/plain", memoText), nil
	}
	f.AddResource(mcp.Resource{URI: memo, Name: "greeting", MIMEType: "text/plain"}, text)
	f.AddResource(mcp.Resource{URI: otherMemo, Name: "other"}, text)
	f.AddResource(mcp.Resource{URI: blob, Name: "blob"},
		func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
			return server.BlobContents("image/png", []byte{0, 1, 0xfe, 0xff}), nil
		})
	f.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "memo://of/{name}", Name: "memos"},
		func(_ context.Context, _ *server.Call, _ string, variables map[string]string) (*mcp.ReadResourceResult, error) {
			return server.TextContents("text/plain", "memo of "+variables["name"]), nil
		})
	f.CompleteResource("memo://of/{name}", "name", complete)
	f.AddPrompt(mcp.Prompt{Name: "greet", Arguments: []mcp.PromptArgument{{Name: "name", Required: true}, {Name: "style"}}},
		func(_ context.Context, _ *server.Call, args map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{server.UserText("Say grüezi to " + args["name"])}}, nil
		})
	f.CompletePrompt("greet", "name", complete)
}

// complete completes names.
func complete(_ context.Context, _ *server.Call, typed string, _ map[string]string) ([]string, error) {
	var values []string
	for _, name := range []string{"Ada", "Alan", "Zoë"} {
		if strings.HasPrefix(name, typed) {
			values = append(values, name)
		}
	}
	return values, nil
}

// events are things that have happened, by name, and that can be waited for.
type events struct {
	mu       sync.Mutex
	happened map[string]chan struct{} // closed when it has; guarded by mu
	present  map[string]int           // calls that meet; guarded by mu
}

func newEvents() *events {
	return &events{happened: make(map[string]chan struct{}), present: make(map[string]int)}
}

// event returns what is closed when name has happened.
func (e *events) event(name string) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.happened[name]
	if c == nil {
		c = make(chan struct{})
		e.happened[name] = c
	}
	return c
}

// happen says that name has happened. It does so once.
func (e *events) happen(name string) {
	c := e.event(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// await waits until name has happened.
func (e *events) await(ctx context.Context, name string) error {
	select {
	case <-e.event(name):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// meet waits until two calls with a key are there.
func (e *events) meet(ctx context.Context, key string) error {
	e.mu.Lock()
	e.present[key]++
	both := e.present[key] == 2
	e.mu.Unlock()
	if both {
		e.happen("met " + key)
	}
	return e.await(ctx, "met "+key)
}
