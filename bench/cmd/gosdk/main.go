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

	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
	"github.com/mcpsplice/mcpsplice/bench/internal/memstats"
	"github.com/mcpsplice/mcpsplice/bench/internal/serve"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

var errUsage = errors.New("usage: gosdk stdio | gosdk stateful|stateless|listen ADDRESS")

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
	s := newServer(nil)
	switch {
	case len(args) == 1 && args[0] == "stdio":
		return s.Run(context.Background(), &mcp.StdioTransport{})
	case len(args) == 2 && args[0] == "stateful":
		return serveHTTP(s, args[1], &mcp.StreamableHTTPOptions{})
	case len(args) == 2 && args[0] == "stateless":
		return serveHTTP(s, args[1], &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	case len(args) == 2 && args[0] == "listen":
		return serveHTTP(newListenServer(), args[1], &mcp.StreamableHTTPOptions{Stateless: true})
	}
	return errUsage
}

func serveHTTP(s *mcp.Server, addr string, opts *mcp.StreamableHTTPOptions) error {
	getServer := func(*http.Request) *mcp.Server { return s }
	return serve.HTTP(addr, mcp.NewStreamableHTTPHandler(getServer, opts))
}

func newServer(opts *mcp.ServerOptions) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1.0.0"}, opts)
	mcp.AddTool(s, &mcp.Tool{Name: wire.ToolName, Description: "Gives the text back."}, echo)
	return s
}

type arguments struct {
	Text string `json:"text"`
}

func echo(_ context.Context, _ *mcp.CallToolRequest, a arguments) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, nil, nil
}

// newListenServer returns a server with resources, and a tool that says of each
// that it has changed.
func newListenServer() *mcp.Server {
	s := newServer(&mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	uris := wire.Resources(wire.ResourceCount)
	for _, uri := range uris {
		s.AddResource(&mcp.Resource{URI: uri, Name: uri},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{}, nil
			})
	}
	mcp.AddTool(s, &mcp.Tool{Name: wire.ChangeName, Description: "Changes every resource."},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			for _, uri := range uris {
				if err := s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
					return nil, nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil, nil
		})
	return s
}
