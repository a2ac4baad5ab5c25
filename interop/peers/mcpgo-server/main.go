// Command mcpgo-server is a server made with mark3labs/mcp-go.
//
//	mcpgo-server          on stdio
//	mcpgo-server -http    Streamable HTTP with sessions; both eras on one endpoint
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcpsplice/mcpsplice/interop/peers/fixture"
	"github.com/mcpsplice/mcpsplice/interop/peers/meeting"
)

const memo = "memo://greeting"

func main() {
	overHTTP := flag.Bool("http", false, "serve Streamable HTTP on a free loopback port")
	flag.Parse()
	s := newServer()
	if !*overHTTP {
		if err := server.ServeStdio(s); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	l, err := net.Listen("tcp", fixture.Address())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", l.Addr())
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s, server.WithStateful(true)))
	log.Fatal(http.Serve(l, mux))
}

// tools is the server's with what the tools count.
type tools struct {
	*server.MCPServer

	// Atomic.
	cancelled, grown atomic.Int64

	meeting meeting.Meeting
}

// weather is structured content.
type weather struct {
	City    string   `json:"city"`
	Celsius float64  `json:"celsius"`
	Words   []string `json:"words"`
}

func newServer() *server.MCPServer {
	s := &tools{MCPServer: server.NewMCPServer("interop-mcpgo", "1.0.0",
		server.WithToolCapabilities(true),
		server.WithResourceCapabilities(false, true),
		server.WithPromptCapabilities(true),
		server.WithLogging(),
		server.WithElicitation(),
		server.WithRoots(),
		server.WithCompletions(),
		server.WithPromptCompletionProvider(completer{}),
		server.WithPaginationLimit(5),
	)}
	s.EnableSampling()
	s.tool("echo", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(req.GetString("text", "")), nil
	}, mcp.WithString("text", mcp.Required()))
	s.tool("fail", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no luck"), nil
	})
	s.tool("weather", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		found := weather{req.GetString("city", ""), 21.5, []string{"sunny", "windy"}}
		b, err := json.Marshal(found)
		return mcp.NewToolResultStructured(found, string(b)), err
	}, mcp.WithString("city", mcp.Required()), mcp.WithOutputSchema[weather]())
	s.tool("meet", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("met"), s.meeting.Wait(ctx)
	})
	s.tool("once", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("once"), fixture.Once(ctx)
	})
	s.tool("progress", s.progress, mcp.WithNumber("steps", mcp.Required()))
	s.tool("slow", s.slow, mcp.WithNumber("ms", mcp.Required()))
	s.tool("cancelled", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(s.cancelled.Load())), nil
	})
	s.tool("log", func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		level := mcp.LoggingLevel(req.GetString("level", "info"))
		err := s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(level, "interop", "a log message"))
		time.Sleep(50 * time.Millisecond) // the SDK loses some of what is sent just before the result
		return mcp.NewToolResultText("logged"), err
	}, mcp.WithString("level", mcp.Required()))
	s.tool("grow", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.tool(fmt.Sprintf("grown-%d", s.grown.Add(1)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("grown"), nil
		})
		return mcp.NewToolResultText("grown"), nil
	})
	s.questions()
	s.AddResource(mcp.NewResource(memo, "greeting", mcp.WithMIMEType("text/plain")),
		func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{
				mcp.TextResourceContents{URI: memo, MIMEType: "text/plain", Text: "grüezi mitenand"},
			}, nil
		})
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("name", mcp.RequiredArgument())),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{
				mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Say grüezi to "+req.Params.Arguments["name"])),
			}), nil
		})
	return s.MCPServer
}

func (s *tools) tool(name string, h server.ToolHandlerFunc, options ...mcp.ToolOption) {
	s.AddTool(mcp.NewTool(name, append(options, mcp.WithDescription("The tool "+name))...), h)
}

// questions adds tools that ask one question each, the way of 2026-07-28; the
// SDK turns it into a request of the server towards legacy clients.
func (s *tools) questions() {
	ask := func(name string, add func(*server.InputRequestBuilder)) {
		s.tool(name, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if answer, ok := server.InputResponse(req.Params.InputResponses, "answer"); ok {
				b, err := json.Marshal(answer)
				return mcp.NewToolResultText(fmt.Sprintf("%s: %s", req.Params.RequestState, b)), err
			}
			b := server.NewInputRequestBuilder("asked by " + name)
			add(b)
			return b.ToolResult(), nil
		})
	}
	ask("ask-name", func(b *server.InputRequestBuilder) {
		b.Elicit("answer", mcp.ElicitationParams{
			Mode:    mcp.ElicitationModeForm,
			Message: "What is your name?",
			RequestedSchema: map[string]any{
				"type": "object", "required": []string{"name"},
				"properties": map[string]any{"name": map[string]any{"type": "string"}},
			},
		})
	})
	ask("ask-model", func(b *server.InputRequestBuilder) {
		b.Sample("answer", mcp.CreateMessageParams{
			MaxTokens: 10,
			Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("Say something.")}},
		})
	})
	ask("ask-roots", func(b *server.InputRequestBuilder) { b.Roots("answer") })
	ask("ask-url", func(b *server.InputRequestBuilder) {
		b.Elicit("answer", mcp.ElicitationParams{
			Mode: mcp.ElicitationModeURL, Message: "Please open this.", URL: "https://example.com/", ElicitationID: "e-1",
		})
	})
}

func (s *tools) progress(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	steps := req.GetInt("steps", 0)
	for step := 1; step <= steps; step++ {
		if err := s.notifyProgress(ctx, req, step, steps); err != nil {
			return nil, err
		}
		time.Sleep(30 * time.Millisecond)
	}
	return mcp.NewToolResultText(fmt.Sprintf("%d steps", steps)), nil
}

func (s *tools) slow(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if err := s.notifyProgress(ctx, req, 1, 2); err != nil {
		return nil, err
	}
	select {
	case <-time.After(time.Duration(req.GetInt("ms", 0)) * time.Millisecond):
		return mcp.NewToolResultText("slept"), nil
	case <-ctx.Done():
		s.cancelled.Add(1)
		return nil, ctx.Err()
	}
}

func (s *tools) notifyProgress(ctx context.Context, req mcp.CallToolRequest, step, total int) error {
	if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
		return nil
	}
	return s.SendNotificationToClient(ctx, string(mcp.MethodNotificationProgress), map[string]any{
		"progressToken": req.Params.Meta.ProgressToken, "progress": step, "total": total,
	})
}

type completer struct{}

func (completer) CompletePromptArgument(_ context.Context, _ string, arg mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	values := []string{}
	for _, name := range []string{"Ada", "Alan", "Grace"} {
		if strings.HasPrefix(name, arg.Value) {
			values = append(values, name)
		}
	}
	return &mcp.Completion{Values: values}, nil
}
