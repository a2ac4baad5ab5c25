package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// useAll is the usual program: it lists all that the server declares to have, and
// calls, reads and gets it.
func useAll(ctx context.Context, c *client.Client) error {
	server, err := c.Server(ctx)
	if err != nil {
		return err
	}
	if server.Capabilities.Tools != nil {
		if err := callTools(ctx, c); err != nil {
			return err
		}
	}
	if server.Capabilities.Resources != nil {
		if err := readResources(ctx, c); err != nil {
			return err
		}
	}
	if server.Capabilities.Prompts != nil {
		return getPrompts(ctx, c)
	}
	return nil
}

func callTools(ctx context.Context, c *client.Client) error {
	tools, err := collect(c.Tools(ctx))
	if err != nil {
		return err
	}
	for _, tool := range tools {
		arguments, err := fill(tool.InputSchema)
		if err != nil {
			return fmt.Errorf("the schema of %s: %w", tool.Name, err)
		}
		if _, err := c.CallTool(ctx, tool.Name, arguments, nil); err != nil {
			return err
		}
	}
	return nil
}

func readResources(ctx context.Context, c *client.Client) error {
	if _, err := collect(c.ResourceTemplates(ctx)); err != nil {
		return err
	}
	resources, err := collect(c.Resources(ctx))
	if err != nil {
		return err
	}
	for _, resource := range resources {
		if _, err := c.ReadResource(ctx, resource.URI, nil); err != nil {
			return err
		}
	}
	return nil
}

func getPrompts(ctx context.Context, c *client.Client) error {
	prompts, err := collect(c.Prompts(ctx))
	if err != nil {
		return err
	}
	for _, prompt := range prompts {
		arguments := make(map[string]string)
		for _, argument := range prompt.Arguments {
			arguments[argument.Name] = "any"
		}
		if _, err := c.GetPrompt(ctx, prompt.Name, arguments, nil); err != nil {
			return err
		}
	}
	return nil
}

// collect returns all items of a list.
func collect[Item any](list iter.Seq2[Item, error]) ([]Item, error) {
	var items []Item
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// fill returns an object with something in each of the properties of a schema.
func fill(schema mcp.JSON) (map[string]any, error) {
	var object struct {
		Properties map[string]struct {
			Type mcp.JSON `json:"type"`
		} `json:"properties"`
	}
	if err := schema.Decode(&object); err != nil {
		return nil, err
	}
	filled := make(map[string]any)
	for name, property := range object.Properties {
		filled[name] = something(property.Type)
	}
	return filled, nil
}

// something returns a value of a type of JSON Schema, a string for none.
func something(kind mcp.JSON) any {
	switch string(kind) {
	case `"number"`, `"integer"`:
		return 1
	case `"boolean"`:
		return true
	case `"array"`:
		return []any{}
	case `"object"`:
		return map[string]any{}
	case `"null"`:
		return nil
	}
	return "any"
}
