package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

func connect(ctx context.Context, t *drive.Task) (drive.Runner, error) {
	over, err := transportOf(t)
	if err != nil {
		return nil, err
	}
	c := client.NewClient(over, client.WithProtocolVersion(string(t.Revision)))
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var init mcp.InitializeRequest
	init.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1.0.0"}
	result, err := c.Initialize(ctx, init)
	if err != nil {
		return nil, err
	}
	if result.ProtocolVersion != string(t.Revision) {
		return nil, fmt.Errorf("revision %s instead of %s", result.ProtocolVersion, t.Revision)
	}
	if _, err := c.ListTools(ctx, mcp.ListToolsRequest{}); err != nil {
		return nil, err
	}
	return &drive.Callers{
		Call: func(ctx context.Context, text string) (string, error) {
			var req mcp.CallToolRequest
			req.Params.Name, req.Params.Arguments = wire.ToolName, arguments{text}
			result, err := c.CallTool(ctx, req)
			if err != nil {
				return "", err
			}
			block, ok := result.Content[0].(mcp.TextContent)
			if !ok {
				return "", fmt.Errorf("not a text but a %T", result.Content[0])
			}
			return block.Text, nil
		},
		Ended: c.Close,
	}, nil
}

func transportOf(t *drive.Task) (transport.Interface, error) {
	if url := t.URL(); url != "" {
		return transport.NewStreamableHTTP(url)
	}
	return transport.NewStdioWithOptions(t.Command[0], nil, t.Command[1:], transport.WithCommandStderrWriter(os.Stderr)), nil
}
