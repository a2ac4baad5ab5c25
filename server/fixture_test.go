package server_test

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

type greeting struct {
	Greeting string `json:"greeting"`
}

type person struct {
	Name string `json:"name" jsonschema:"what to call you"`
	Age  *int   `json:"age,omitempty"`
}

// An everyFeature is a server with one of everything.
type everyFeature struct {
	*server.Server
	started, cancelled chan struct{} // by the tool that is slow
}

func oneOfEverything() *everyFeature {
	e := &everyFeature{
		Server: server.New(mcp.Implementation{Name: "everything", Title: "Everything", Version: "1"}, &server.Options{
			Instructions: "Try it.", PageSize: 5,
			Capabilities: mcp.ServerCapabilitySet{Experimental: mcp.Object{"com.example/x": mcp.JSON("{}")}},
		}),
		started: make(chan struct{}, 10), cancelled: make(chan struct{}, 10),
	}
	e.addPlainTools()
	e.addAskingTools()
	e.addContents()
	server.AddTool(e.Server, mcp.Tool{Name: "slow"}, func(ctx context.Context, _ *server.Call, _ struct{}) (string, error) {
		e.started <- struct{}{}
		<-ctx.Done()
		e.cancelled <- struct{}{}
		return "", ctx.Err()
	})
	e.AddResource(mcp.Resource{URI: "test://text", Name: "text", Title: "Text", MIMEType: "text/plain"}, readText)
	e.AddResource(mcp.Resource{URI: "test://blob", Name: "blob"}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return server.BlobContents("image/png", []byte{1, 2, 3}), nil
	})
	e.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "test://numbers/{n}", Name: "numbers"}, readText)
	e.AddPrompt(mcp.Prompt{Name: "greet", Description: "Greets.", Arguments: []mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, _ *server.Call, args map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "A greeting.", Messages: []mcp.PromptMessage{server.UserText("Hello " + args["name"])}}, nil
		})
	e.CompletePrompt("greet", "name", func(_ context.Context, _ *server.Call, typed string, _ map[string]string) ([]string, error) {
		return []string{typed + "da"}, nil
	})
	e.Method("com.example/echo", func(_ context.Context, call *server.Call) (mcp.Result, error) {
		return mcp.NewResult(mcp.Object{"said": call.Meta("com.example/say")})
	})
	return e
}

func readText(_ context.Context, _ *server.Call, uri string, variables map[string]string) (*mcp.ReadResourceResult, error) {
	return server.TextContents("text/plain", uri+" "+variables["n"]), nil
}

func (e *everyFeature) addPlainTools() {
	server.AddTool(e.Server, mcp.Tool{Name: "echo", Title: "Echo", Description: "Says it again."},
		func(_ context.Context, _ *server.Call, in struct{ Text string }) (string, error) { return in.Text, nil })
	server.AddTool(e.Server, mcp.Tool{Name: "greet"}, func(_ context.Context, _ *server.Call, in person) (greeting, error) {
		return greeting{"Hello " + in.Name}, nil
	})
	server.AddTool(e.Server, mcp.Tool{Name: "count"}, func(_ context.Context, _ *server.Call, _ struct{}) ([]int, error) {
		return []int{1, 2, 3}, nil
	})
	server.AddTool(e.Server, mcp.Tool{Name: "fail"}, func(context.Context, *server.Call, struct{}) (string, error) {
		return "", errors.New("no luck")
	})
	server.AddTool(e.Server, mcp.Tool{Name: "refuse"}, func(context.Context, *server.Call, struct{}) (string, error) {
		return "", jsonrpc.Errorf(-32099, "refused")
	})
	server.AddTool(e.Server, mcp.Tool{Name: "panic"}, func(context.Context, *server.Call, struct{}) (string, error) { panic("oh no") })
	server.AddTool(e.Server, mcp.Tool{Name: "progress"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		return "done", errors.Join(call.Progress(ctx, 1, 2, "half"), call.Progress(ctx, 2, 2, ""))
	})
	server.AddTool(e.Server, mcp.Tool{Name: "log"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		return "done", errors.Join(
			call.Log(ctx, "debug", "part", "quiet"), call.Log(ctx, "warning", "part", mcp.Object{"n": mcp.JSON("1")}), call.Log(ctx, "error", "", "loud"))
	})
	server.AddTool(e.Server, mcp.Tool{Name: "meta"}, func(context.Context, *server.Call, struct{}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{ResultMembers: mcp.ResultMembers{Meta: mcp.Object{"com.example/k": mcp.JSON(`"v"`)}}}, nil
	})
}

func (e *everyFeature) addAskingTools() {
	server.AddTool(e.Server, mcp.Tool{Name: "elicit"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		who, action, err := server.Elicit[person](ctx, call, "Who are you?")
		return string(action) + " " + who.Name, err
	})
	server.AddTool(e.Server, mcp.Tool{Name: "elicit-url"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		answer, err := call.Elicit(ctx, mcp.ElicitParams{Mode: mcp.ElicitURL, Message: "Sign in.", URL: "https://example.com/"})
		if err != nil {
			return "", err
		}
		return string(answer.Action), nil
	})
	server.AddTool(e.Server, mcp.Tool{Name: "sample"}, func(ctx context.Context, call *server.Call, in struct {
		Tools bool `json:"tools,omitempty"`
	}) (string, error) {
		params := sampling()
		if in.Tools {
			params.Tools = []mcp.Tool{{Name: "t", InputSchema: mcp.JSON(`{"type":"object"}`)}}
			params.ToolChoice = &mcp.ToolChoice{Mode: "auto"}
		}
		answer, err := call.Sample(ctx, params)
		if err != nil {
			return "", err
		}
		return answer.Model + ": " + answer.Content[0].(*mcp.Text).Text, nil
	})
	server.AddTool(e.Server, mcp.Tool{Name: "roots"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		roots, err := call.Roots(ctx)
		if err != nil {
			return "", err
		}
		return roots[0].URI, nil
	})
	server.AddTool(e.Server, mcp.Tool{Name: "need"}, func(_ context.Context, call *server.Call, _ struct{}) (string, error) {
		state, err := call.State()
		if err != nil {
			return "", err
		}
		var answer mcp.CreateMessageResult
		if !call.Answer("q", &answer) {
			return "", server.NeedInput(map[string]mcp.InputRequest{"q": server.SampleRequest(sampling())}, []byte("step 1"))
		}
		return string(state) + " " + answer.Model, nil
	})
}

func sampling() mcp.CreateMessageParams {
	return mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.User, Content: mcp.Contents{&mcp.Text{Text: "Say hello."}}}},
		MaxTokens: 10,
	}
}

func (e *everyFeature) addContents() {
	text := "inside"
	for name, block := range map[string]mcp.Content{
		"image":    &mcp.Image{Data: []byte{1}, MIMEType: "image/png"},
		"audio":    &mcp.Audio{Data: []byte{1}, MIMEType: "audio/wav"},
		"resource": &mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "test://inside", Text: &text}},
		"link":     &mcp.ResourceLink{Resource: mcp.Resource{URI: "test://text", Name: "text"}},
	} {
		server.AddTool(e.Server, mcp.Tool{Name: "give-" + name}, func(context.Context, *server.Call, struct{}) (mcp.Contents, error) {
			return mcp.Contents{&mcp.Text{Text: "a text"}, block}, nil
		})
	}
}
