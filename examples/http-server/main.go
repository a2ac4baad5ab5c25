// Command http-server is an MCP server over HTTP with a tool that asks the user.
// Legacy clients have sessions and are sent the question as a request; modern
// ones get it as the result of their call, and come back with the answer.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

type guest struct {
	Name string `json:"name" jsonschema:"for the name plate"`
	Note string `json:"note,omitempty" jsonschema:"what the kitchen should know"`
}

type table struct {
	People int `json:"people"`
}

func reserve(ctx context.Context, call *server.Call, in table) (string, error) {
	question := fmt.Sprintf("Whom is the table for %d for?", in.People)
	who, action, err := server.Elicit[guest](ctx, call, question)
	if err != nil {
		return "", err
	}
	if action != mcp.Accept {
		return "Nothing was reserved.", nil
	}
	return fmt.Sprintf("A table for %d is reserved for %s.", in.People, who.Name), nil
}

func main() {
	addr := flag.String("addr", streamable.DefaultAddr, "listen at `HOST:PORT`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, addr string) error {
	s := server.New(mcp.Implementation{Name: "restaurant", Version: "1.0"}, nil)
	server.AddTool(s, mcp.Tool{Name: "reserve", Description: "Reserves a table."}, reserve)
	listener, err := streamable.Listen(addr, s, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", listener.URL())
	return listener.Serve(ctx)
}
