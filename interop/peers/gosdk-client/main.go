//lint:file-ignore SA1019 logging, sampling and roots are deprecated, and checked for as long as they are in use

// Command gosdk-client is a client made with the official Go SDK. The variable
// INTEROP_MODE chooses legacy or auto.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/interop/peers/checks"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	checks.Main(func(opts checks.Options, seen *checks.Seen) checks.Client {
		return &client{opts: opts, seen: seen}
	})
}

// A client implements checks.Client.
type client struct {
	// Set at construction.
	opts checks.Options
	seen *checks.Seen

	// Set by Connect.
	*mcp.ClientSession

	// Guarded by mu.
	mu    sync.Mutex
	level string // of modern calls
}

func (c *client) Connect(ctx context.Context) (server, version string, err error) {
	sdk := mcp.NewClient(&mcp.Implementation{Name: "interop-gosdk", Version: "1.0.0"}, c.handlers())
	sdk.AddRoots(&mcp.Root{URI: c.opts.Profile.Root, Name: "interop"})
	var session *mcp.ClientSessionOptions
	if c.opts.Legacy {
		session = &mcp.ClientSessionOptions{ProtocolVersion: c.opts.Revision()}
	}
	c.ClientSession, err = sdk.Connect(ctx, c.transport(), session)
	if err != nil {
		return "", "", err
	}
	got := c.InitializeResult()
	if got.ServerInfo == nil {
		return "", got.ProtocolVersion, nil
	}
	return got.ServerInfo.Name, got.ProtocolVersion, nil
}

func (c *client) transport() mcp.Transport {
	if c.opts.SSE != "" {
		return &mcp.SSEClientTransport{Endpoint: c.opts.SSE}
	}
	if c.opts.HTTP != "" {
		return &mcp.StreamableClientTransport{Endpoint: c.opts.HTTP}
	}
	cmd := exec.Command(c.opts.Stdio[0], c.opts.Stdio[1:]...)
	cmd.Stderr = os.Stderr
	return &mcp.CommandTransport{Command: cmd, TerminateDuration: 2 * time.Second}
}

func (c *client) modern() bool { return c.InitializeResult().ProtocolVersion >= checks.Modern }

// handlers are what the client does when the server speaks first.
func (c *client) handlers() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			RootsV2: &mcp.RootCapabilities{ListChanged: true},
			Elicitation: &mcp.ElicitationCapabilities{
				Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
			},
		},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			answer := &mcp.ElicitResult{Action: c.seen.Action()}
			if req.Params.Mode != "url" && answer.Action == "accept" {
				answer.Content = map[string]any{"name": "Ada"}
			}
			return answer, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{
				Role: "assistant", Model: "interop-model", StopReason: "endTurn",
				Content: &mcp.TextContent{Text: "sampled by the client"},
			}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.seen.Progress(fmt.Sprint(req.Params.ProgressToken), req.Params.Progress)
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			c.seen.Log(fmt.Sprint(req.Params.Data))
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			c.seen.Updated(req.Params.URI)
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			c.seen.Changed("tools")
		},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
			c.seen.Changed("resources")
		},
	}
}

func (c *client) Tools(ctx context.Context) (names []string, all any, err error) {
	var tools []*mcp.Tool
	for tool, err := range c.ClientSession.Tools(ctx, nil) {
		if err != nil {
			return nil, nil, err
		}
		tools = append(tools, tool)
		names = append(names, tool.Name)
	}
	return names, tools, nil
}

func (c *client) Resources(ctx context.Context) (uris []string, err error) {
	for r, err := range c.ClientSession.Resources(ctx, nil) {
		if err != nil {
			return nil, err
		}
		uris = append(uris, r.URI)
	}
	return uris, nil
}

func (c *client) Prompts(ctx context.Context) (names []string, err error) {
	for p, err := range c.ClientSession.Prompts(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, p.Name)
	}
	return names, nil
}

func (c *client) Call(ctx context.Context, tool string, args map[string]any, token string) (checks.Result, error) {
	if args == nil {
		args = map[string]any{}
	}
	params := &mcp.CallToolParams{Name: tool, Arguments: args, Meta: mcp.Meta{}}
	c.mu.Lock()
	if c.level != "" {
		params.Meta[mcp.MetaKeyLogLevel] = c.level
	}
	c.mu.Unlock()
	if token != "" {
		params.SetProgressToken(token)
	}
	got, err := c.CallTool(ctx, params)
	if err != nil {
		return checks.Result{}, err
	}
	result := checks.Result{Failed: got.IsError, Structured: got.StructuredContent}
	var b strings.Builder
	for _, content := range got.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	result.Text = b.String()
	return result, nil
}

func (c *client) Read(ctx context.Context, uri string) (text string, contents any, err error) {
	result, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	for _, content := range result.Contents {
		b.WriteString(content.Text)
	}
	return b.String(), result.Contents, nil
}

func (c *client) Prompt(ctx context.Context, name string, args map[string]string) (messages any, err error) {
	result, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		return nil, err
	}
	return result.Messages, nil
}

func (c *client) Complete(ctx context.Context, prompt, argument, value string) ([]string, error) {
	result, err := c.ClientSession.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: prompt},
		Argument: mcp.CompleteParamsArgument{Name: argument, Value: value},
	})
	if err != nil {
		return nil, err
	}
	return result.Completion.Values, nil
}

func (c *client) SetLevel(ctx context.Context, level string) error {
	if !c.modern() {
		return c.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level = level
	return nil
}

func (c *client) Subscribe(ctx context.Context, uri string) (stop func() error, err error) {
	err = c.ClientSession.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	return func() error { return c.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}) }, err
}

// Listen does nothing: with handlers for it the SDK listens by itself.
func (c *client) Listen(context.Context, string) (stop func() error, err error) {
	return func() error { return nil }, nil
}

func (c *client) Refused(err error) (text string, code int, ok bool) {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return "", 0, false
	}
	return wire.Message, int(wire.Code), true
}
