// Command ping answers JSON-RPC over stdio, without MCP: the method ping, and
// no other. SIGTERM ends the reading; what is in flight is answered first.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

func ping(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
	if req.Method == "ping" {
		return mcp.RawResult([]byte(`{"pong":true}`)), nil
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := stdio.Serve(ctx, mcp.HandlerFunc(ping), &stdio.ServeOptions{
		ServeOptions: transport.ServeOptions{Plain: true},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
