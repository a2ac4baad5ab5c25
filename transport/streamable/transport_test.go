package streamable_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
	"github.com/mcpsplice/mcpsplice/transport/transporttest"
)

func TestTransportOfHTTPWithSSE(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, handler mcp.Handler) transporttest.Server {
		endpoints := streamable.NewSSEHandler(handler, &streamable.HandlerOptions{Logger: logger})
		server := httptest.NewServer(endpoints)
		client := &http.Transport{}
		t.Cleanup(func() {
			endpoints.Close()
			server.Close()
			client.CloseIdleConnections()
		})
		return transporttest.Server{
			Dial: func(ctx context.Context, opts transporttest.DialOptions) (transport.Edge, error) {
				return streamable.DialSSE(ctx, server.URL+"/sse", &streamable.DialOptions{
					DialOptions: opts.DialOptions, MaxBody: opts.MaxMessage, Transport: client,
				})
			},
			Vanish: func() {
				_ = server.Listener.Close()
				server.CloseClientConnections()
			},
		}
	}, mcp.Legacy)
}

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, handler mcp.Handler) transporttest.Server {
		endpoint := streamable.NewHandler(handler, &streamable.HandlerOptions{Logger: logger})
		server := httptest.NewServer(endpoint)
		client := &http.Transport{}
		t.Cleanup(func() {
			endpoint.Close()
			server.Close()
			client.CloseIdleConnections()
		})
		return transporttest.Server{
			Dial: func(ctx context.Context, opts transporttest.DialOptions) (transport.Edge, error) {
				return streamable.Dial(ctx, server.URL, &streamable.DialOptions{
					DialOptions: opts.DialOptions, MaxBody: opts.MaxMessage, Transport: client,
				})
			},
			Vanish: func() {
				_ = server.Listener.Close()
				server.CloseClientConnections()
			},
		}
	})
}
