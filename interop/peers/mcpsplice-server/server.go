package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/interop/peers/fixture"
	"github.com/mcpsplice/mcpsplice/interop/peers/meeting"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

const memo = "memo://greeting"

// features are what the server's functions share.
type features struct {
	*server.Server

	// Atomic.
	cancelled, grown atomic.Int64

	meeting meeting.Meeting
}

func newServer(logger *slog.Logger) *server.Server {
	f := &features{Server: server.New(mcp.Implementation{Name: "interop-mcpsplice", Version: "1.0.0"},
		&server.Options{PageSize: 5, Logger: logger})}
	f.addTools()
	f.addCalls()
	f.addQuestions()
	f.AddResource(mcp.Resource{URI: memo, Name: "greeting", MIMEType: "text/plain"},
		func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
			return server.TextContents("text/plain", "grüezi mitenand"), nil
		})
	f.AddPrompt(mcp.Prompt{Name: "greet", Arguments: []mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, _ *server.Call, args map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{server.UserText("Say grüezi to " + args["name"])}}, nil
		})
	f.CompletePrompt("greet", "name", complete)
	return f.Server
}

// none are the arguments of a tool without any.
type none struct{}

// tool adds a typed tool.
func tool[In, Out any](f *features, name string, run server.ToolFunc[In, Out]) {
	server.AddTool(f.Server, mcp.Tool{Name: name, Description: "The tool " + name}, run)
}

// weather is structured content.
type weather struct {
	City    string   `json:"city"`
	Celsius float64  `json:"celsius"`
	Words   []string `json:"words"`
}

// addTools adds the tools that only return something.
func (f *features) addTools() {
	tool(f, "echo", func(_ context.Context, _ *server.Call, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	})
	exact := mcp.JSON(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	server.AddTool(f.Server, mcp.Tool{Name: "exact", Description: "The tool exact", InputSchema: exact},
		func(_ context.Context, _ *server.Call, in struct {
			N mcp.JSON `json:"n"`
		}) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{
				Content:           mcp.Contents{&mcp.Text{Text: string(in.N)}},
				StructuredContent: mcp.JSON(`{"n":` + string(in.N) + `}`),
			}, nil
		})
	tool(f, "fail", func(context.Context, *server.Call, none) (string, error) { return "", errors.New("no luck") })
	tool(f, "weather", func(_ context.Context, _ *server.Call, in struct {
		City string `json:"city"`
	}) (weather, error) {
		return weather{City: in.City, Celsius: 21.5, Words: []string{"sunny", "windy"}}, nil
	})
	tool(f, "cancelled", func(context.Context, *server.Call, none) (string, error) {
		return fmt.Sprint(f.cancelled.Load()), nil
	})
}

// addCalls adds the tools that take their time or say something meanwhile.
func (f *features) addCalls() {
	tool(f, "progress", f.progress)
	tool(f, "slow", f.slow)
	tool(f, "meet", func(ctx context.Context, _ *server.Call, _ none) (string, error) {
		return "met", f.meeting.Wait(ctx)
	})
	tool(f, "once", func(ctx context.Context, _ *server.Call, _ none) (string, error) {
		return "once", fixture.Once(ctx)
	})
	tool(f, "log", func(ctx context.Context, c *server.Call, in struct {
		Level mcp.Level `json:"level"`
	}) (string, error) {
		return "logged", c.Log(ctx, in.Level, "interop", "a log message")
	})
	tool(f, "touch", func(context.Context, *server.Call, none) (string, error) {
		f.Changed(memo)
		return "touched", nil
	})
	tool(f, "grow", func(context.Context, *server.Call, none) (string, error) {
		tool(f, fmt.Sprintf("grown-%d", f.grown.Add(1)), func(context.Context, *server.Call, none) (string, error) {
			return "grown", nil
		})
		return "grown", nil
	})
}

func (f *features) progress(ctx context.Context, c *server.Call, in struct {
	Steps int `json:"steps"`
},
) (string, error) {
	for step := 1; step <= in.Steps; step++ {
		if err := c.Progress(ctx, float64(step), float64(in.Steps), ""); err != nil {
			return "", err
		}
		time.Sleep(30 * time.Millisecond)
	}
	return fmt.Sprintf("%d steps", in.Steps), nil
}

func (f *features) slow(ctx context.Context, c *server.Call, in struct {
	MS int `json:"ms"`
},
) (string, error) {
	if err := c.Progress(ctx, 1, 2, ""); err != nil {
		return "", err
	}
	select {
	case <-time.After(time.Duration(in.MS) * time.Millisecond):
		return "slept", nil
	case <-ctx.Done():
		f.cancelled.Add(1)
		return "", ctx.Err()
	}
}

func complete(_ context.Context, _ *server.Call, typed string, _ map[string]string) ([]string, error) {
	var values []string
	for _, name := range []string{"Ada", "Alan", "Grace"} {
		if strings.HasPrefix(name, typed) {
			values = append(values, name)
		}
	}
	return values, nil
}
