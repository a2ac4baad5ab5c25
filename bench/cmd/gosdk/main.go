// Command gosdk is the benchmarks' contestant made with the official Go SDK:
// one typed tool, added the way its documentation shows.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpsplice/mcpsplice/bench/internal/memstats"
	"github.com/mcpsplice/mcpsplice/bench/internal/serve"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

var errUsage = errors.New("usage: gosdk stdio | gosdk stateful|stateless ADDRESS")

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
	s := newServer()
	switch {
	case len(args) == 1 && args[0] == "stdio":
		return s.Run(context.Background(), &mcp.StdioTransport{})
	case len(args) == 2 && args[0] == "stateful":
		return serveHTTP(s, args[1], &mcp.StreamableHTTPOptions{})
	case len(args) == 2 && args[0] == "stateless":
		return serveHTTP(s, args[1], &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	}
	return errUsage
}

func serveHTTP(s *mcp.Server, addr string, opts *mcp.StreamableHTTPOptions) error {
	getServer := func(*http.Request) *mcp.Server { return s }
	return serve.HTTP(addr, mcp.NewStreamableHTTPHandler(getServer, opts))
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: wire.ToolName, Description: "Gives the text back."}, echo)
	return s
}

type arguments struct {
	Text string `json:"text"`
}

func echo(_ context.Context, _ *mcp.CallToolRequest, a arguments) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, nil, nil
}
