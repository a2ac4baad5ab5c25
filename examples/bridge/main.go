// Command bridge serves a stdio server over HTTP, to clients of every revision:
//
//	go run ./examples/bridge npx -y @modelcontextprotocol/server-everything
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func main() {
	addr := flag.String("addr", streamable.DefaultAddr, "listen at `HOST:PORT`")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: bridge [-addr HOST:PORT] COMMAND ARGS...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := stdio.Command{Path: flag.Arg(0), Args: flag.Args()[1:]}
	if err := run(ctx, *addr, command); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, addr string, command stdio.Command) error {
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		return stdio.Dial(ctx, command, &stdio.DialOptions{
			DialOptions: transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities},
		})
	}, transport.PoolOptions{})
	defer pool.Close()

	listener, err := streamable.Listen(addr, pool, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", listener.URL())
	return listener.Serve(ctx)
}
