package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/exampletest"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// theServer is the argument of a test binary that is to be the bridge's server.
const theServer = "be-the-server"

// TestMain lets the test binary be the example as well, and the server behind it.
func TestMain(m *testing.M) {
	if !exampletest.Running() && os.Args[len(os.Args)-1] == theServer {
		serveBehind()
		return
	}
	exampletest.Main(m, main)
}

func serveBehind() {
	s := server.New(mcp.Implementation{Name: "behind", Version: "1"}, nil)
	server.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, _ *server.Call, in struct{ Text string }) (string, error) {
		return in.Text, nil
	})
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		os.Exit(1)
	}
}

func TestBridgeCarriesCallsOfBothEras(t *testing.T) {
	url := exampletest.Listen(t, os.Args[0], theServer)
	const call = `"method":"tools/call","params":{"name":"echo","arguments":{"Text":"hi"}`
	modern := exampletest.Body(t, exampletest.Post(t, url, `{"jsonrpc":"2.0","id":1,`+call+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo"))
	if !strings.Contains(modern, `"text":"hi"`) {
		t.Errorf("a modern client gets %s", modern)
	}
	res := exampletest.Post(t, url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	session := []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25"}
	if got := exampletest.Body(t, res); !strings.Contains(got, `"serverInfo":{"name":"behind"`) {
		t.Errorf("initialize is answered with %s", got)
	}
	exampletest.Post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	legacy := exampletest.Body(t, exampletest.Post(t, url, `{"jsonrpc":"2.0","id":2,`+call+`}}`, session...))
	if !strings.Contains(legacy, `"text":"hi"`) {
		t.Errorf("a legacy client gets %s", legacy)
	}
}
