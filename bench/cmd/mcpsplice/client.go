package main

import (
	"context"
	"fmt"

	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// connect returns a client that calls with Go types, or one of the kind raw that
// forwards requests as they are.
func connect(ctx context.Context, t *drive.Task) (drive.Runner, error) {
	var target client.Target
	if url := t.URL(); url != "" {
		target = client.URL(url)
	} else {
		target = client.Command(t.Command[0], t.Command[1:]...)
	}
	opts := &client.Options{Era: mcp.Revision(t.Revision).Era(), Info: mcp.Implementation{Name: "bench", Version: "1.0.0"}}
	c, err := client.Connect(ctx, target, opts)
	if err != nil {
		return nil, err
	}
	if got := c.Verdict().Revision; got != mcp.Revision(t.Revision) {
		return nil, fmt.Errorf("revision %s instead of %s", got, t.Revision)
	}
	for _, err := range c.Tools(ctx) {
		if err != nil {
			return nil, err
		}
	}
	r := &drive.Callers{Ended: c.Close}
	if t.Kind == "raw" {
		r.Call = rawCall(c, wire.Text(t.Size))
	} else {
		r.Call = func(ctx context.Context, text string) (string, error) { return typedCall(ctx, c, text) }
	}
	return r, nil
}

func typedCall(ctx context.Context, c *client.Client, text string) (string, error) {
	result, err := c.CallTool(ctx, wire.ToolName, arguments{text}, nil)
	if err != nil {
		return "", err
	}
	block, ok := result.Content[0].(*mcp.Text)
	if !ok {
		return "", fmt.Errorf("not a text but a %T", result.Content[0])
	}
	return block.Text, nil
}

// rawCall returns what makes one request, encoded before, and gives the text that
// was sent if the length of the result is what it must be.
func rawCall(c *client.Client, text string) func(context.Context, string) (string, error) {
	quoted := jsonrpc.AppendString(nil, text)
	params := append([]byte(`{"name":"`+wire.ToolName+`","arguments":{"text":`), quoted...)
	indexed := jsonrpc.Trusted(append(params, "}}"...))
	req := &mcp.Request{Method: mcp.MethodCallTool, Params: indexed.Indexed()} // as those that an edge has received
	return func(ctx context.Context, text string) (string, error) {
		result, err := c.Handle(ctx, req, mcp.NoCaller{})
		if err != nil {
			return "", err
		}
		content, _ := result.Lookup("content")
		if want := len(quoted) + len(`[{"type":"text","text":}]`); len(content) != want {
			return "", fmt.Errorf("%d bytes of content, want %d", len(content), want)
		}
		return text, nil
	}
}
