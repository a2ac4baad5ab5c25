// Command heartbeat answers JSON-RPC over HTTP, without MCP, and sends an event
// heartbeat every few seconds to whoever watches /mcp/events, as with
//
//	curl -N http://127.0.0.1:8421/mcp/events
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func ping(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
	if req.Method == "ping" {
		return mcp.RawResult([]byte(`{"pong":true}`)), nil
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
}

func main() {
	addr := flag.String("addr", streamable.DefaultAddr, "listen at `HOST:PORT`")
	every := flag.Duration("every", 5*time.Second, "the `TIME` between heartbeats")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *every); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, addr string, every time.Duration) error {
	s, err := streamable.Listen(addr, mcp.HandlerFunc(ping), &streamable.ServerOptions{
		HandlerOptions: streamable.HandlerOptions{Plain: true},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", s.URL())
	ctx, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() { beat(ctx, s, every) })
	err = s.Serve(ctx)
	cancel()
	beating.Wait()
	return err
}

func beat(ctx context.Context, s *streamable.Server, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if err := s.Broadcast("heartbeat", fmt.Appendf(nil, `{"ts":%d}`, now.UnixMilli())); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
}
