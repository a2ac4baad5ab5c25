// Command mcpsplice-server is a server made with this project's own package
// server.
//
//	mcpsplice-server -stdio    on stdio, both eras
//	mcpsplice-server -http     on a free loopback port, both eras on one endpoint,
//	                           and HTTP with SSE beside it
//
// Both at once are one process, which ends with its stdio client.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpsplice/mcpsplice/interop/peers/fixture"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func main() {
	overStdio := flag.Bool("stdio", false, "serve stdio")
	overHTTP := flag.Bool("http", false, "serve HTTP on a free loopback port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *overStdio, *overHTTP); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, overStdio, overHTTP bool) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := newServer(logger)
	if !overHTTP {
		return serveStdio(ctx, s, logger)
	}
	listener, err := streamable.Listen(fixture.Address(), s, &streamable.ServerOptions{
		HandlerOptions: streamable.HandlerOptions{Logger: logger},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on %s\n", listener.URL())
	if !overStdio {
		return listener.Serve(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- listener.Serve(ctx) }()
	err = serveStdio(ctx, s, logger)
	stop()
	if err2 := <-ended; err == nil {
		err = err2
	}
	return err
}

func serveStdio(ctx context.Context, handler mcp.Handler, logger *slog.Logger) error {
	opts := &stdio.ServeOptions{}
	opts.Logger = logger
	return stdio.Serve(ctx, handler, opts)
}
