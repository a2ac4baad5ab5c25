package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestOldServer_B134_S128: a URL is that of a server of HTTP with SSE, which is
// found out or known, and is connected to again when its stream has ended.
func TestOldServer_B134_S128(t *testing.T) {
	handler := streamable.NewSSEHandler(demo.New("1"), nil)
	listener := httptest.NewServer(handler)
	t.Cleanup(func() {
		listener.Close()
		handler.Close()
	})
	known := client.URL(listener.URL + "/sse")
	known.Options.Binding = streamable.HTTPWithSSE
	for name, target := range map[string]client.Target{"found out": client.URL(listener.URL + "/sse"), "known": known} {
		t.Run(name, func(t *testing.T) {
			left := make(chan error, 100)
			c, err := client.Connect(t.Context(), target, &client.Options{State: func(_ client.State, err error) {
				if err != nil {
					left <- err
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			if era := c.Verdict().Era; era != mcp.Legacy {
				t.Errorf("taken for %s", era)
			}
			for range 2 {
				result, err := c.CallTool(t.Context(), "echo", map[string]string{"text": "hello"}, nil)
				if err != nil || result.Content[0].(*mcp.Text).Text != "hello" {
					t.Fatalf("%v, %v", result, err)
				}
				listener.CloseClientConnections()
				<-left // so that the next call does not find the stream that has ended
			}
		})
	}
}

// TestServerInProcessFailsAsModernOne: whoever is told that the server speaks
// 2026-07-28 gets the errors of that revision, also where no wire is between.
func TestServerInProcessFailsAsModernOne(t *testing.T) {
	handler := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			return mcp.RawResult([]byte(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`)), nil
		}
		return mcp.Result{}, fmt.Errorf("reading: %w", jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "Resource not found"))
	})
	c, err := client.Connect(t.Context(), client.Handler(handler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, err = c.ReadResource(t.Context(), "memo://none", nil)
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || wire.Code != jsonrpc.CodeInvalidParams || string(wire.Data.Raw()) != `{"uri":"memo://none"}` {
		t.Errorf("a missing resource is answered with %v", err)
	}
	if _, err = c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "")) {
		t.Errorf("another error became %v", err)
	}
}
