package client

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// CallTool calls a tool. Arguments are encoded by encoding/json's rules and must be
// an object; nil stands for none. That the tool itself has failed is said by the
// result ([mcp.CallToolResult.Failed]).
func (c *Client) CallTool(ctx context.Context, name string, arguments any, opts *CallOptions) (*mcp.CallToolResult, error) {
	call := c.newCall(mcp.MethodCallTool, opts)
	params, memory, err := callParams(name, arguments)
	if err != nil {
		return nil, fmt.Errorf("arguments of the tool %q: %w", name, err)
	}
	if copies(c.link.dialer.target) {
		defer giveMemory(memory)
	}
	call.req.Params = params
	if err := call.complement(); err != nil {
		return nil, err
	}
	result := new(mcp.CallToolResult)
	if err := c.fetch(ctx, call, result); err != nil {
		return nil, err
	}
	return result, nil
}

// ReadResource reads a resource. The server is asked each time, whatever it says of
// caching.
func (c *Client) ReadResource(ctx context.Context, uri string, opts *CallOptions) (*mcp.ReadResourceResult, error) {
	var result mcp.ReadResourceResult
	if err := c.request(ctx, mcp.MethodReadResource, mcp.ReadResourceParams{URI: uri}, opts, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// GetPrompt gets a prompt's messages.
func (c *Client) GetPrompt(ctx context.Context, name string, arguments map[string]string, opts *CallOptions) (*mcp.GetPromptResult, error) {
	params := mcp.GetPromptParams{Name: name, Arguments: arguments}
	var result mcp.GetPromptResult
	if err := c.request(ctx, mcp.MethodGetPrompt, params, opts, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// Complete returns the values that an argument may have.
func (c *Client) Complete(ctx context.Context, params *mcp.CompleteParams, opts *CallOptions) (*mcp.Completion, error) {
	var result mcp.CompleteResult
	if err := c.request(ctx, mcp.MethodComplete, params, opts, &result); err != nil {
		return nil, err
	}
	return &result.Completion, nil
}

// Tools yields the server's tools, page by page as they are asked for. An error
// ends it.
func (c *Client) Tools(ctx context.Context) iter.Seq2[mcp.Tool, error] {
	return pages(ctx, c, mcp.MethodListTools, func(r *mcp.ListToolsResult) []mcp.Tool {
		c.tools.learn(r.Tools)
		return r.Tools
	})
}

// Resources yields the server's resources.
func (c *Client) Resources(ctx context.Context) iter.Seq2[mcp.Resource, error] {
	return pages(ctx, c, mcp.MethodListResources, func(r *mcp.ListResourcesResult) []mcp.Resource {
		return r.Resources
	})
}

// ResourceTemplates yields the server's resource templates.
func (c *Client) ResourceTemplates(ctx context.Context) iter.Seq2[mcp.ResourceTemplate, error] {
	return pages(ctx, c, mcp.MethodListResourceTemplates, func(r *mcp.ListResourceTemplatesResult) []mcp.ResourceTemplate {
		return r.ResourceTemplates
	})
}

// Prompts yields the server's prompts.
func (c *Client) Prompts(ctx context.Context) iter.Seq2[mcp.Prompt, error] {
	return pages(ctx, c, mcp.MethodListPrompts, func(r *mcp.ListPromptsResult) []mcp.Prompt {
		return r.Prompts
	})
}

// A toolBook knows which tools may be called twice.
type toolBook struct {
	repeat func(*mcp.Tool) bool

	mu    sync.Mutex
	tools map[string]bool // guarded by mu
}

// maxToolBook is how many tools are remembered. Further ones are not repeated.
const maxToolBook = 10_000

func (b *toolBook) init(repeat func(*mcp.Tool) bool) {
	b.repeat, b.tools = repeat, make(map[string]bool)
}

// learn takes up what a list says.
func (b *toolBook) learn(tools []mcp.Tool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range tools {
		if may := b.repeat(&tools[i]); may && len(b.tools) < maxToolBook {
			b.tools[tools[i].Name] = true
		} else if !may {
			delete(b.tools, tools[i].Name)
		}
	}
}

// forget forgets what lists have said, since they have changed.
func (b *toolBook) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.tools)
}

func (b *toolBook) repeatable(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools[name]
}
