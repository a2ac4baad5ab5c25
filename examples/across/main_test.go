package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/exampletest"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// theServer is the argument of a test binary that is to be the legacy server.
const theServer = "be-the-server"

// TestMain lets the test binary be the example as well, and the server behind it.
func TestMain(m *testing.M) {
	if !exampletest.Running() && os.Args[len(os.Args)-1] == theServer {
		serveBehind()
		return
	}
	exampletest.Main(m, main)
}

type person struct {
	Name string `json:"name"`
}

// serveBehind serves legacy clients only.
func serveBehind() {
	s := server.New(mcp.Implementation{Name: "behind", Version: "1"}, nil)
	server.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		who, action, err := server.Elicit[person](ctx, call, "Who is there?")
		if action != mcp.Accept {
			return "nobody", err
		}
		return who.Name + " of " + string(call.Request().Meta.Revision), err
	})
	opts := &stdio.ServeOptions{ServeOptions: transport.ServeOptions{Era: mcp.Legacy}}
	if err := stdio.Serve(context.Background(), s, opts); err != nil {
		os.Exit(1)
	}
}

// TestModernClientIsAskedByALegacyServer: the server is spoken to in its revision.
func TestModernClientIsAskedByALegacyServer(t *testing.T) {
	cmd := exampletest.Command(os.Args[0], theServer)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out); got != "Who is there?\nAda of 2025-11-25\n" {
		t.Errorf("it prints %q", strings.TrimSpace(got))
	}
}
