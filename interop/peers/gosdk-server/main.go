//lint:file-ignore SA1019 logging, sampling and roots are deprecated, and offered for as long as they are in use

// Command gosdk-server is a server made with the official Go SDK.
//
//	gosdk-server             on stdio, both eras
//	gosdk-server -http       Streamable HTTP with sessions: legacy only, as the SDK has it
//	gosdk-server -http -stateless
//	                         Streamable HTTP without sessions: both eras
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

	"github.com/mcpsplice/mcpsplice/interop/peers/fixture"
	"github.com/mcpsplice/mcpsplice/interop/peers/meeting"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const memo = "memo://greeting"

func main() {
	overHTTP := flag.Bool("http", false, "serve Streamable HTTP on a free loopback port")
	stateless := flag.Bool("stateless", false, "with -http: no sessions")
	flag.Parse()
	s := newServer()
	if !*overHTTP {
		if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: *stateless, PropagateRequestCancellation: true})
	l, err := net.Listen("tcp", fixture.Address())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", l.Addr())
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	log.Fatal(http.Serve(l, mux))
}

// A server is the SDK's, with what the tools count.
type server struct {
	*mcp.Server

	// Atomic.
	cancelled, grown atomic.Int64

	meeting meeting.Meeting
}

func newServer() *mcp.Server {
	s := &server{Server: mcp.NewServer(&mcp.Implementation{Name: "interop-gosdk", Version: "1.0.0"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler:  complete,
		PageSize:           5,
	})}
	s.tool("echo", `{"text":{"type":"string"}}`, func(_ context.Context, _ *mcp.CallToolRequest, a args) (*mcp.CallToolResult, error) {
		return text(a.Text), nil
	})
	s.tool("exact", `{"n":{"type":"integer"}}`, func(_ context.Context, _ *mcp.CallToolRequest, a args) (*mcp.CallToolResult, error) {
		r := text(string(a.N))
		r.StructuredContent = map[string]any{"n": a.N}
		return r, nil
	})
	s.tool("fail", `{}`, func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, error) {
		r := text("no luck")
		r.IsError = true
		return r, nil
	})
	s.AddTool(&mcp.Tool{
		Name: "weather", Description: "The tool weather",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		OutputSchema: json.RawMessage(weatherSchema),
	}, s.weather)
	s.tool("meet", `{}`, func(ctx context.Context, _ *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, error) {
		return text("met"), s.meeting.Wait(ctx)
	})
	s.tool("once", `{}`, func(ctx context.Context, _ *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, error) {
		return text("once"), fixture.Once(ctx)
	})
	s.tool("progress", `{"steps":{"type":"integer"}}`, s.progress)
	s.tool("slow", `{"ms":{"type":"integer"}}`, s.slow)
	s.tool("cancelled", `{}`, func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, error) {
		return text(fmt.Sprint(s.cancelled.Load())), nil
	})
	s.tool("log", `{"level":{"type":"string"}}`, func(ctx context.Context, req *mcp.CallToolRequest, a args) (*mcp.CallToolResult, error) {
		err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(a.Level), Data: "a log message"})
		return text("logged"), err
	})
	s.tool("touch", `{}`, func(ctx context.Context, _ *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, error) {
		return text("touched"), s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: memo})
	})
	s.tool("grow", `{}`, func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, error) {
		s.tool(fmt.Sprintf("grown-%d", s.grown.Add(1)), `{}`,
			func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, error) {
				return text("grown"), nil
			})
		return text("grown"), nil
	})
	s.ask("ask-name", &mcp.ElicitParams{
		Message:         "What is your name?",
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
	})
	s.ask("ask-model", &mcp.CreateMessageParams{
		MaxTokens: 10,
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Say something."}}},
	})
	s.ask("ask-roots", &mcp.ListRootsParams{})
	s.ask("ask-url", &mcp.ElicitParams{
		Mode: "url", Message: "Please open this.", URL: "https://example.com/", ElicitationID: "e-1",
	})
	s.AddResource(&mcp.Resource{URI: memo, Name: "greeting", MIMEType: "text/plain"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
				{URI: memo, MIMEType: "text/plain", Text: "grüezi mitenand"},
			}}, nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: "Say grüezi to " + req.Params.Arguments["name"]}},
			}}, nil
		})
	return s.Server
}

// args are the arguments of all tools together.
type args struct {
	Text  string      `json:"text"`
	N     json.Number `json:"n"`
	Steps int         `json:"steps"`
	MS    int         `json:"ms"`
	Level string      `json:"level"`
}

type handler func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, error)

// tool adds a tool whose handler sees its arguments as they came, numbers included.
func (s *server) tool(name, properties string, h handler) {
	schema := json.RawMessage(fmt.Sprintf(`{"type":"object","properties":%s}`, properties))
	s.AddTool(&mcp.Tool{Name: name, Description: "The tool " + name, InputSchema: schema},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var a args
			if len(req.Params.Arguments) > 0 {
				if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
					return nil, err
				}
			}
			return h(ctx, req, a)
		})
}

// ask adds a tool that asks one question the way of 2026-07-28; the SDK turns
// it into a request of the server towards legacy clients.
func (s *server) ask(name string, question mcp.InputRequest) {
	s.tool(name, `{}`, func(_ context.Context, req *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["answer"]
		if !ok {
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{"answer": question}, RequestState: "asked by " + name,
			}, nil
		}
		b, err := json.Marshal(answer)
		return text(fmt.Sprintf("%s: %s", req.Params.RequestState, b)), err
	})
}

const weatherSchema = `{"type":"object","properties":{"city":{"type":"string"},"celsius":{"type":"number"},` +
	`"words":{"type":"array","items":{"type":"string"}}},"required":["city","celsius","words"]}`

func (s *server) weather(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var a struct {
		City string `json:"city"`
	}
	if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
		return nil, err
	}
	found := map[string]any{"city": a.City, "celsius": 21.5, "words": []string{"sunny", "windy"}}
	b, err := json.Marshal(found)
	r := text(string(b))
	r.StructuredContent = found
	return r, err
}

func (s *server) progress(ctx context.Context, req *mcp.CallToolRequest, a args) (*mcp.CallToolResult, error) {
	for step := 1; step <= a.Steps; step++ {
		if err := notifyProgress(ctx, req, step, a.Steps); err != nil {
			return nil, err
		}
		time.Sleep(30 * time.Millisecond)
	}
	return text(fmt.Sprintf("%d steps", a.Steps)), nil
}

func (s *server) slow(ctx context.Context, req *mcp.CallToolRequest, a args) (*mcp.CallToolResult, error) {
	if err := notifyProgress(ctx, req, 1, 2); err != nil {
		return nil, err
	}
	select {
	case <-time.After(time.Duration(a.MS) * time.Millisecond):
		return text("slept"), nil
	case <-ctx.Done():
		s.cancelled.Add(1)
		return nil, ctx.Err()
	}
}

func notifyProgress(ctx context.Context, req *mcp.CallToolRequest, step, total int) error {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: float64(step), Total: float64(total),
	})
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{}
	for _, name := range []string{"Ada", "Alan", "Grace"} {
		if strings.HasPrefix(name, req.Params.Argument.Value) {
			values = append(values, name)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values}}, nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
