package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

func connect(ctx context.Context, t *drive.Task) (drive.Runner, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	s, err := c.Connect(ctx, transportOf(t), &mcp.ClientSessionOptions{ProtocolVersion: string(t.Revision)})
	if err != nil {
		return nil, err
	}
	if got := s.InitializeResult().ProtocolVersion; got != string(t.Revision) {
		return nil, fmt.Errorf("revision %s instead of %s", got, t.Revision)
	}
	if _, err := s.ListTools(ctx, nil); err != nil {
		return nil, err
	}
	return &drive.Callers{
		Call: func(ctx context.Context, text string) (string, error) {
			result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: wire.ToolName, Arguments: arguments{text}})
			if err != nil {
				return "", err
			}
			block, ok := result.Content[0].(*mcp.TextContent)
			if !ok {
				return "", fmt.Errorf("not a text but a %T", result.Content[0])
			}
			return block.Text, nil
		},
		Ended: s.Close,
	}, nil
}

func transportOf(t *drive.Task) mcp.Transport {
	if url := t.URL(); url != "" {
		return &mcp.StreamableClientTransport{Endpoint: url}
	}
	cmd := exec.Command(t.Command[0], t.Command[1:]...)
	cmd.Stderr = os.Stderr
	return &mcp.CommandTransport{Command: cmd}
}
