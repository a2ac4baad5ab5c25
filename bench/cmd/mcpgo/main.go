// Command mcpgo is the benchmarks' contestant made with mark3labs/mcp-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpsplice/mcpsplice/bench/internal/memstats"
	"github.com/mcpsplice/mcpsplice/bench/internal/serve"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

var errUsage = errors.New("usage: mcpgo stdio | mcpgo stateful|stateless ADDRESS")

func main() {
	err := memstats.ServeFromEnv()
	if err == nil {
		err = run(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	s := server.NewMCPServer("mcpgo", "1.0.0", server.WithToolCapabilities(false))
	tool := mcp.NewTool(wire.ToolName,
		mcp.WithDescription("Gives the text back."),
		mcp.WithString("text", mcp.Required()))
	s.AddTool(tool, echo)
	switch {
	case len(args) == 1 && args[0] == "stdio":
		return server.ServeStdio(s)
	case len(args) == 2 && args[0] == "stateful":
		return serve.HTTP(args[1], server.NewStreamableHTTPServer(s, server.WithStateful(true)))
	case len(args) == 2 && args[0] == "stateless":
		return serve.HTTP(args[1], server.NewStreamableHTTPServer(s, server.WithStateLess(true)))
	}
	return errUsage
}

func echo(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	text, err := r.RequireString("text")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText(text), nil
}
