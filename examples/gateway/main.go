// Command gateway serves two servers at one address, to clients of every revision: one
// that it starts, and one over HTTP. Tools are called files__NAME and web__NAME:
//
//	go run ./examples/gateway https://example.com/mcp npx -y @modelcontextprotocol/server-everything
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func main() {
	addr := flag.String("addr", streamable.DefaultAddr, "listen at `HOST:PORT`")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: gateway [-addr HOST:PORT] URL COMMAND ARGS...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := stdio.Command{Path: flag.Arg(1), Args: flag.Args()[2:]}
	if err := run(ctx, *addr, flag.Arg(0), command); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, addr, url string, command stdio.Command) error {
	files := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		return stdio.Dial(ctx, command, &stdio.DialOptions{DialOptions: options(meta)})
	}, transport.PoolOptions{})
	defer files.Close()
	web := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		return streamable.DialAny(ctx, url, &streamable.DialOptions{DialOptions: options(meta)})
	}, transport.PoolOptions{})
	defer web.Close()

	g := gateway.New(nil)
	defer g.Close()
	if err := errors.Join(g.Add("files", files, nil), g.Add("web", web, nil)); err != nil {
		return err
	}
	listener, err := streamable.Listen(addr, g, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", listener.URL())
	err = listener.Serve(ctx)
	for _, status := range g.Status() {
		fmt.Fprintln(os.Stderr, status)
	}
	return err
}

func options(meta *mcp.Metadata) transport.DialOptions {
	return transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities, Prefer: meta.Revision.Era()}
}
