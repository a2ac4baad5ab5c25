// Command across has a client of 2026-07-28 call the tool ask of a server of earlier
// revisions, which asks the user for a name:
//
//	go run ./examples/across go run ./cmd/mcpsplice serve --listen stdio --era legacy
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: across COMMAND ARGS...")
		os.Exit(2)
	}
	command := stdio.Command{Path: os.Args[1], Args: os.Args[2:]}
	if err := run(context.Background(), command, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run bridges the server that a command starts to HTTP, and calls it there.
func run(ctx context.Context, command stdio.Command, out io.Writer) (err error) {
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		return stdio.Dial(ctx, command, &stdio.DialOptions{
			DialOptions: transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities},
		})
	}, transport.PoolOptions{})
	bridge, err := streamable.Listen("127.0.0.1:0", pool, nil)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- bridge.Serve(serving) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, pool.Close())
	}()
	return call(ctx, client.URL(bridge.URL()), out)
}

// call calls the tool, and answers what it asks.
func call(ctx context.Context, target client.Target, out io.Writer) error {
	c, err := client.Connect(ctx, target, &client.Options{
		Era: mcp.Modern,
		Elicit: func(_ context.Context, form *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			fmt.Fprintln(out, form.Message)
			return &mcp.ElicitResult{Action: mcp.Accept, Content: mcp.JSON(`{"name":"Ada"}`)}, nil
		},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	result, err := c.CallTool(ctx, "ask", nil, nil)
	if err != nil {
		return err
	}
	for _, block := range result.Content {
		if text, ok := block.(*mcp.Text); ok {
			fmt.Fprintln(out, text.Text)
		}
	}
	return nil
}
