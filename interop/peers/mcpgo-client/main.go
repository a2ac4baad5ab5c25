//lint:file-ignore SA1019 what legacy servers have is deprecated, and checked for as long as it is in use

// Command mcpgo-client is a client made with mark3labs/mcp-go. The variable
// INTEROP_MODE chooses legacy or auto.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcpsplice/mcpsplice/interop/peers/checks"
)

func main() {
	checks.Main(func(opts checks.Options, seen *checks.Seen) checks.Client {
		return &adapter{opts: opts, seen: seen}
	})
}

// An adapter implements checks.Client.
type adapter struct {
	// Set at construction.
	opts checks.Options
	seen *checks.Seen

	// Set by Connect.
	*client.Client
	modern bool
}

func (a *adapter) Connect(ctx context.Context) (server, version string, err error) {
	over, err := a.transport()
	if err != nil {
		return "", "", err
	}
	// Within the default of 5 s not every server has started on a busy machine, and
	// the SDK would take it for a legacy one.
	options := []client.ClientOption{client.WithDiscoverTimeout(30 * time.Second)}
	if _, asked := over.(transport.BidirectionalInterface); asked {
		// Elsewhere (HTTP with SSE) the SDK leaves questions without an answer, yet
		// declares to answer them if it has the handlers.
		answers := answers{a.opts, a.seen}
		options = append(options,
			client.WithElicitationHandler(answers), client.WithSamplingHandler(answers), client.WithRootsHandler(answers),
			client.WithClientCapabilities(mcp.ClientCapabilities{
				Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
			}))
	}
	if a.opts.Legacy {
		options = append(options, client.WithProtocolVersion(a.opts.Revision()))
	}
	a.Client = client.NewClient(over, options...)
	a.OnNotification(a.notified)
	if err := a.Start(ctx); err != nil {
		return "", "", err
	}
	var init mcp.InitializeRequest
	init.Params.ClientInfo = mcp.Implementation{Name: "interop-mcpgo", Version: "1.0.0"}
	result, err := a.Initialize(ctx, init)
	if err != nil {
		return "", "", err
	}
	a.modern = result.ProtocolVersion >= checks.Modern
	return result.ServerInfo.Name, result.ProtocolVersion, nil
}

func (a *adapter) transport() (transport.Interface, error) {
	if a.opts.SSE != "" {
		return transport.NewSSE(a.opts.SSE)
	}
	if a.opts.HTTP == "" {
		return transport.NewStdioWithOptions(a.opts.Stdio[0], nil, a.opts.Stdio[1:],
			transport.WithCommandStderrWriter(os.Stderr)), nil
	}
	var options []transport.StreamableHTTPCOption
	if a.opts.Legacy {
		options = append(options, transport.WithContinuousListening()) // for what comes outside calls
	}
	return transport.NewStreamableHTTP(a.opts.HTTP, options...)
}

func (a *adapter) notified(n mcp.JSONRPCNotification) {
	field := func(name string) any { return n.Params.AdditionalFields[name] }
	switch n.Method {
	case "notifications/progress":
		progress, _ := field("progress").(float64)
		a.seen.Progress(fmt.Sprint(field("progressToken")), progress)
	case "notifications/message":
		a.seen.Log(fmt.Sprint(field("data")))
	case "notifications/resources/updated":
		a.seen.Updated(fmt.Sprint(field("uri")))
	case "notifications/tools/list_changed":
		a.seen.Changed("tools")
	case "notifications/resources/list_changed":
		a.seen.Changed("resources")
	}
}

// answers are what the client does when the server asks.
type answers struct {
	opts checks.Options
	seen *checks.Seen
}

func (a answers) Elicit(_ context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	answer := &mcp.ElicitationResult{}
	answer.Action = mcp.ElicitationResponseAction(a.seen.Action())
	if req.Params.Mode != mcp.ElicitationModeURL && answer.Action == mcp.ElicitationResponseActionAccept {
		answer.Content = map[string]any{"name": "Ada"}
	}
	return answer, nil
}

func (a answers) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		Model: "interop-model", StopReason: "endTurn",
		SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("sampled by the client")},
	}, nil
}

func (a answers) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: a.opts.Profile.Root, Name: "interop"}}}, nil
}

func (a *adapter) Tools(ctx context.Context) (names []string, all any, err error) {
	result, err := a.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, nil, err
	}
	for _, tool := range result.Tools {
		names = append(names, tool.Name)
	}
	return names, result.Tools, nil
}

func (a *adapter) Resources(ctx context.Context) (uris []string, err error) {
	result, err := a.ListResources(ctx, mcp.ListResourcesRequest{})
	if err != nil {
		return nil, err
	}
	for _, r := range result.Resources {
		uris = append(uris, r.URI)
	}
	return uris, nil
}

func (a *adapter) Prompts(ctx context.Context) (names []string, err error) {
	result, err := a.ListPrompts(ctx, mcp.ListPromptsRequest{})
	if err != nil {
		return nil, err
	}
	for _, p := range result.Prompts {
		names = append(names, p.Name)
	}
	return names, nil
}

func (a *adapter) Call(ctx context.Context, tool string, args map[string]any, token string) (checks.Result, error) {
	if args == nil {
		args = map[string]any{}
	}
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	if token != "" {
		req.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	got, err := a.CallTool(ctx, req)
	if err != nil {
		return checks.Result{}, err
	}
	var b strings.Builder
	for _, content := range got.Content {
		if t, ok := content.(mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return checks.Result{Text: b.String(), Failed: got.IsError, Structured: got.StructuredContent}, nil
}

func (a *adapter) Read(ctx context.Context, uri string) (text string, contents any, err error) {
	var req mcp.ReadResourceRequest
	req.Params.URI = uri
	result, err := a.ReadResource(ctx, req)
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	for _, content := range result.Contents {
		if t, ok := content.(mcp.TextResourceContents); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String(), result.Contents, nil
}

func (a *adapter) Prompt(ctx context.Context, name string, args map[string]string) (messages any, err error) {
	var req mcp.GetPromptRequest
	req.Params.Name, req.Params.Arguments = name, args
	result, err := a.GetPrompt(ctx, req)
	if err != nil {
		return nil, err
	}
	return result.Messages, nil
}

func (a *adapter) Complete(ctx context.Context, prompt, argument, value string) ([]string, error) {
	var req mcp.CompleteRequest
	req.Params.Ref = mcp.PromptReference{Type: "ref/prompt", Name: prompt}
	req.Params.Argument = mcp.CompleteArgument{Name: argument, Value: value}
	result, err := a.Client.Complete(ctx, req)
	if err != nil {
		return nil, err
	}
	return result.Completion.Values, nil
}

func (a *adapter) SetLevel(ctx context.Context, level string) error {
	var req mcp.SetLevelRequest
	req.Params.Level = mcp.LoggingLevel(level)
	return a.Client.SetLevel(ctx, req)
}

func (a *adapter) Subscribe(ctx context.Context, uri string) (stop func() error, err error) {
	if a.modern {
		return a.listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	}
	var req mcp.SubscribeRequest
	req.Params.URI = uri
	err = a.Client.Subscribe(ctx, req)
	return func() error {
		var req mcp.UnsubscribeRequest
		req.Params.URI = uri
		return a.Unsubscribe(ctx, req)
	}, err
}

func (a *adapter) Listen(ctx context.Context, kind string) (stop func() error, err error) {
	if !a.modern {
		return func() error { return nil }, nil
	}
	return a.listen(ctx, mcp.SubscriptionFilter{
		ToolsListChanged: kind == "tools", ResourcesListChanged: kind == "resources",
	})
}

// listen opens a stream. Its end before stop is an error of stop.
func (a *adapter) listen(ctx context.Context, filter mcp.SubscriptionFilter) (stop func() error, err error) {
	broken := make(chan error, 1)
	closeStream, err := a.ListenAsync(ctx, filter, func(err error) { broken <- err })
	return func() error {
		closeStream()
		select {
		case err := <-broken:
			return fmt.Errorf("listening: %w", err)
		default:
			return nil
		}
	}, err
}

// Refused tells errors of the server by their not being the transport's: the SDK
// keeps no codes.
func (a *adapter) Refused(err error) (text string, code int, ok bool) {
	if err == nil {
		return "", 0, false
	}
	if _, lost := errors.AsType[*transport.Error](err); lost || errors.Is(err, context.Canceled) {
		return "", 0, false
	}
	if _, ok := errors.AsType[mcp.URLElicitationRequiredError](err); ok {
		code = -32042
	}
	if _, undecoded := errors.AsType[*json.SyntaxError](err); undecoded {
		return "", 0, false
	}
	return err.Error(), code, true
}
