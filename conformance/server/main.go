// Server is the server under test of the official conformance suite: one
// process, one endpoint, all revisions. It is built with the exported API only.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func main() {
	addr := flag.String("listen", "127.0.0.1:0", "`address` to listen on; the endpoint is /mcp")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "conformance server:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, addr string) error {
	opts := &streamable.ServerOptions{}
	opts.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	listener, err := streamable.Listen(addr, newServer(), opts)
	if err != nil {
		return err
	}
	fmt.Println(listener.URL())
	return listener.Serve(ctx)
}

// newServer returns a server with the features that the suite looks for.
func newServer() *server.Server {
	s := server.New(mcp.Implementation{Name: "mcpsplice-conformance", Version: "1.0.0"}, &server.Options{
		Instructions: "The server under test of the conformance suite.",
	})
	addContentTools(s)
	addBehaviourTools(s)
	addQuestionTools(s)
	addRoundTools(s)
	addResources(s)
	addPrompts(s)
	return s
}
