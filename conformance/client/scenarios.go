package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/skills"
)

// A scenario is what the client does in one.
type scenario struct {
	play func(context.Context, *client.Client) error
	// elicit answers forms; nil for fillIn.
	elicit func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
	// dual says that its server is of both eras, whatever the revision of the run.
	dual bool
}

var scenarios = map[string]scenario{
	"initialize":                          {play: useAll},
	"tools_call":                          {play: useAll},
	"elicitation-sep1034-client-defaults": {play: useAll, elicit: acceptAsItIs},
	"sse-retry":                           {play: useAll},
	"request-metadata":                    {play: useAll},
	"sep-2322-client-request-state":       {play: useAll},
	"http-standard-headers":               {play: useAll},
	"http-custom-headers":                 {play: callAsTold},
	"http-invalid-tool-headers":           {play: useAll},
	"json-schema-ref-no-deref":            {play: listTools},
	"json-schema-2020-12-preservation":    {play: echoSchema},
	"sep-2640-client-no-prefetch":         {play: listSkills, dual: true},
	"sep-2640-client-verify-digest":       {play: refuse(skills.ErrDigest), dual: true},
	"sep-2640-client-verify-size":         {play: refuse(skills.ErrSize), dual: true},
	"sep-2640-client-verify-frontmatter":  {play: refuse(skills.ErrFrontmatter), dual: true},
}

// readContext decodes what the suite tells some scenarios.
func readContext(v any) error {
	if err := mcp.JSON(os.Getenv("MCP_CONFORMANCE_CONTEXT")).Decode(v); err != nil {
		return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	return nil
}

// listTools is for a server that can do no more.
func listTools(ctx context.Context, c *client.Client) error {
	_, err := collect(c.Tools(ctx))
	return err
}

// callAsTold makes the calls of the scenario's context.
func callAsTold(ctx context.Context, c *client.Client) error {
	var told struct {
		ToolCalls []struct {
			Name      string   `json:"name"`
			Arguments mcp.JSON `json:"arguments"`
		} `json:"toolCalls"`
	}
	if err := readContext(&told); err != nil {
		return err
	}
	if err := listTools(ctx, c); err != nil {
		return err
	}
	for _, call := range told.ToolCalls {
		if _, err := c.CallTool(ctx, call.Name, call.Arguments, nil); err != nil {
			return err
		}
	}
	return nil
}

// echoSchema sends the schema of one tool back to another.
func echoSchema(ctx context.Context, c *client.Client) error {
	tools, err := collect(c.Tools(ctx))
	if err != nil {
		return err
	}
	for _, tool := range tools {
		if tool.Name == "json_schema_2020_12_tool" {
			_, err := c.CallTool(ctx, "json_schema_echo", mcp.Object{"schema": tool.InputSchema}, nil)
			return err
		}
	}
	return errors.New("there is no tool with the schema")
}

// acceptAsItIs accepts a form without filling in anything.
func acceptAsItIs(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: mcp.Accept}, nil
}

// fillIn accepts a form with something in each of its fields.
func fillIn(_ context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	fields, err := fill(params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	content, err := mcp.NewJSON(fields)
	return &mcp.ElicitResult{Action: mcp.Accept, Content: content}, err
}

func sample(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		Role: mcp.Assistant, Model: "none", Content: mcp.Contents{&mcp.Text{Text: "Hello."}},
	}, nil
}

func roots(context.Context) ([]mcp.Root, error) {
	return []mcp.Root{{URI: "file:///home"}}, nil
}
