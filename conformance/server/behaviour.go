package main

import (
	"context"
	"errors"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// pace is how far apart the steps of a tool are.
const pace = 50 * time.Millisecond

// wait waits for a step, or for the call to end.
func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pace):
		return nil
	}
}

// addBehaviourTools adds tools that do something besides giving a result.
func addBehaviourTools(s *server.Server) {
	add := func(name, description string, run server.ToolFunc[nothing, string]) {
		server.AddTool(s, mcp.Tool{Name: name, Description: description}, run)
	}
	add("test_error_handling", "Fails.", func(context.Context, *server.Call, nothing) (string, error) {
		return "", errors.New("the tool fails, as it was asked to")
	})
	add("test_tool_with_logging", "Sends three log messages.", logging)
	add("test_logging_tool", "Sends log messages if they are wanted.", logging)
	add("test_tool_with_progress", "Tells its progress.", progressing)
	add("test_reconnection", "Lets the client go before it answers.", reconnecting)
	add("test_trigger_tool_change", "Changes the list of tools.", func(context.Context, *server.Call, nothing) (string, error) {
		add("test_triggered", "Is there for a moment.", func(context.Context, *server.Call, nothing) (string, error) {
			return "here", nil
		})
		s.RemoveTools("test_triggered")
		return "The list of tools has changed.", nil
	})
	add("test_trigger_prompt_change", "Changes the list of prompts.", func(context.Context, *server.Call, nothing) (string, error) {
		s.AddPrompt(mcp.Prompt{Name: "test_triggered", Description: "Is there for a moment."}, simplePrompt)
		s.RemovePrompts("test_triggered")
		return "The list of prompts has changed.", nil
	})
}

func logging(ctx context.Context, c *server.Call, _ nothing) (string, error) {
	for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if err := errors.Join(c.Log(ctx, "info", "", text), wait(ctx)); err != nil {
			return "", err
		}
	}
	return "Sent three log messages.", nil
}

func progressing(ctx context.Context, c *server.Call, _ nothing) (string, error) {
	for _, progress := range []float64{0, 50, 100} {
		if err := errors.Join(c.Progress(ctx, progress, 100, ""), wait(ctx)); err != nil {
			return "", err
		}
	}
	return "Told the progress.", nil
}

// reconnecting lets the client go: it comes back for the result.
func reconnecting(ctx context.Context, c *server.Call, _ nothing) (string, error) {
	if err := errors.Join(c.Release(ctx), wait(ctx), wait(ctx)); err != nil {
		return "", err
	}
	return "The client has come back.", nil
}
