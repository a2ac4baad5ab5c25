package main

import (
	"context"
	"os"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/exampletest"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"

	"github.com/google/go-cmp/cmp"
)

// theServer is the argument of a test binary that is to be the legacy server.
const theServer = "be-the-server"

// TestMain lets the test binary be the example as well, and a server behind it.
func TestMain(m *testing.M) {
	if !exampletest.Running() && os.Args[len(os.Args)-1] == theServer {
		opts := &stdio.ServeOptions{ServeOptions: transport.ServeOptions{Era: mcp.Legacy}}
		if err := stdio.Serve(context.Background(), speaking("legacy"), opts); err != nil {
			os.Exit(1)
		}
		return
	}
	exampletest.Main(m, main)
}

// speaking has one tool that tells which server it is of, and what is spoken to it.
func speaking(name string) *server.Server {
	s := server.New(mcp.Implementation{Name: name, Version: "1"}, nil)
	server.AddTool(s, mcp.Tool{Name: "which"}, func(_ context.Context, call *server.Call, _ struct{}) (string, error) {
		return name + " " + string(call.Request().Meta.Revision), nil
	})
	return s
}

func TestTwoServersAtOneAddress(t *testing.T) {
	modern, err := streamable.Listen("127.0.0.1:0", speaking("modern"), &streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Era: mcp.Modern}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- modern.Serve(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	url := exampletest.Listen(t, modern.URL(), os.Args[0], theServer)
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		c, err := client.Connect(t.Context(), client.URL(url), &client.Options{Era: era})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		got := make(map[string]string)
		for _, tool := range []string{"files__which", "web__which"} {
			result, err := c.CallTool(t.Context(), tool, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := result.Content[0].(*mcp.Text); ok {
				got[tool] = text.Text
			}
		}
		want := map[string]string{"files__which": "legacy 2025-11-25", "web__which": "modern 2026-07-28"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a %s client (-want +got):\n%s", era, diff)
		}
	}
}
