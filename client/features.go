package client

import (
	"context"
	"fmt"
	"iter"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// CallTool calls a tool. Arguments are encoded by encoding/json's rules and must be
// an object; nil stands for none. That the tool itself has failed is said by the
// result ([mcp.CallToolResult.Failed]).
//
// If a list has told the tool's output schema, structured content is checked against
// it ([Options.Output]). It is handed over as it came: a member that is there twice
// is checked twice, and refused by [mcp.JSON.Decode].
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
	if err := c.checkOutput(name, result); err != nil {
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
	return pages(ctx, c, mcp.MethodListTools, func(r *mcp.ListToolsResult, asOf moment) []mcp.Tool {
		c.tools.learn(r.Tools, asOf)
		return r.Tools
	})
}

// Resources yields the server's resources.
func (c *Client) Resources(ctx context.Context) iter.Seq2[mcp.Resource, error] {
	return pages(ctx, c, mcp.MethodListResources, func(r *mcp.ListResourcesResult, _ moment) []mcp.Resource {
		return r.Resources
	})
}

// ResourceTemplates yields the server's resource templates.
func (c *Client) ResourceTemplates(ctx context.Context) iter.Seq2[mcp.ResourceTemplate, error] {
	return pages(ctx, c, mcp.MethodListResourceTemplates, func(r *mcp.ListResourceTemplatesResult, _ moment) []mcp.ResourceTemplate {
		return r.ResourceTemplates
	})
}

// Prompts yields the server's prompts.
func (c *Client) Prompts(ctx context.Context) iter.Seq2[mcp.Prompt, error] {
	return pages(ctx, c, mcp.MethodListPrompts, func(r *mcp.ListPromptsResult, _ moment) []mcp.Prompt {
		return r.Prompts
	})
}
