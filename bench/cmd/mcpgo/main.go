// Command mcpgo is the benchmarks' contestant made with mark3labs/mcp-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
	"github.com/mcpsplice/mcpsplice/bench/internal/memstats"
	"github.com/mcpsplice/mcpsplice/bench/internal/serve"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

var errUsage = errors.New("usage: mcpgo KIND stdio | mcpgo KIND stateful|stateless ADDRESS, " +
	"with the KIND plain, typed, typed-novalidation or listen")

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
	if len(args) > 0 && args[0] == drive.Command {
		return drive.Main(args, connect)
	}
	if len(args) < 2 {
		return errUsage
	}
	s := newServer(args[0])
	switch {
	case s == nil:
		return errUsage
	case len(args) == 2 && args[1] == "stdio":
		return server.ServeStdio(s)
	case len(args) == 3 && args[1] == "stateful":
		return serve.HTTP(args[2], server.NewStreamableHTTPServer(s, server.WithStateful(true)))
	case len(args) == 3 && args[1] == "stateless":
		return serve.HTTP(args[2], server.NewStreamableHTTPServer(s, server.WithStateLess(true)))
	}
	return errUsage
}

// newServer returns a server of a kind, nil if there is no such kind: one whose
// tool looks for its argument itself, or one whose tool takes a Go struct, with
// the schema inferred from it, with and without the checks that are off unless
// asked for.
func newServer(kind string) *server.MCPServer {
	opts := []server.ServerOption{server.WithToolCapabilities(false)}
	description := mcp.WithDescription("Gives the text back.")
	tool := mcp.NewTool(wire.ToolName, description, mcp.WithInputSchema[arguments]())
	h := mcp.NewTypedToolHandler(typedEcho)
	switch kind {
	case "plain":
		tool = mcp.NewTool(wire.ToolName, description, mcp.WithString("text", mcp.Required()))
		h = echo
	case "typed":
		opts = append(opts, server.WithInputSchemaValidation(), server.WithOutputSchemaValidation())
	case "typed-novalidation":
	case "listen":
		return newListenServer()
	default:
		return nil
	}
	s := server.NewMCPServer("mcpgo", "1.0.0", opts...)
	s.AddTool(tool, h)
	return s
}

type arguments struct {
	Text string `json:"text"`
}

func typedEcho(_ context.Context, _ mcp.CallToolRequest, a arguments) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(a.Text), nil
}

func echo(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	text, err := r.RequireString("text")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText(text), nil
}
