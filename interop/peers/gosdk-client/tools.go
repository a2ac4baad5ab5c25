//lint:file-ignore SA1019 logging, sampling and roots are deprecated, and checked for as long as they are in use

package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
			if req.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{
				Role: "assistant", Model: "interop-model", StopReason: "endTurn",
				Content: &mcp.TextContent{Text: "sampled by the client"},
			}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if f := c.onProgress[fmt.Sprint(req.Params.ProgressToken)]; f != nil {
				f(req.Params.Progress)
			}
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			c.note(&c.logs, fmt.Sprint(req.Params.Data))
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			c.note(&c.updated, req.Params.URI)
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			c.note(&c.changed, "tools")
		},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
			c.note(&c.changed, "resources")
		},
	}
}

func (c *client) note(list *[]string, came string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, came)
}

// saw tells whether something that contains want has come.
func (c *client) saw(list *[]string, want string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range *list {
		if strings.Contains(s, want) {
			return true
		}
	}
	return false
}

// tool calls a tool. onProgress runs under the client's lock.
func (c *client) tool(ctx context.Context, name string, args map[string]any, onProgress func(float64)) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: name, Arguments: map[string]any{}, Meta: mcp.Meta{}}
	if args != nil {
		params.Arguments = args
	}
	if c.modern() {
		params.Meta[mcp.MetaKeyLogLevel] = "debug"
	}
	if onProgress != nil {
		token := "progress-of-" + name
		c.mu.Lock()
		c.onProgress[token] = onProgress
		c.mu.Unlock()
		params.SetProgressToken(token)
	}
	return c.session.CallTool(ctx, params)
}

func (c *client) echo(ctx context.Context, text string, i int) (string, error) {
	var result *mcp.CallToolResult
	for _, step := range c.opts.profile.Echo.Steps {
		args := maps.Clone(step.Args)
		for key, value := range args {
			if value == "$TEXT" {
				args[key] = text
			} else if s, ok := value.(string); ok {
				args[key] = strings.Replace(s, "$I", fmt.Sprint(i), 1)
			}
		}
		var err error
		if result, err = c.tool(ctx, step.Tool, args, nil); err != nil {
			return "", err
		}
	}
	got, ok := strings.CutPrefix(textOf(result), c.opts.profile.Echo.Prefix)
	if !ok {
		return "", fmt.Errorf("echo gave %.80q", textOf(result))
	}
	return got, nil
}

func textOf(result *mcp.CallToolResult) string {
	var b strings.Builder
	for _, content := range result.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
