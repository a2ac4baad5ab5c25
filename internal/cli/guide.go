package cli

import (
	"fmt"
	"strings"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// An exampleCall is a tools/call of the demo as a modern client makes it.
type exampleCall struct {
	headers []string
	body    string
}

func newExampleCall() exampleCall {
	return exampleCall{
		headers: []string{
			"Content-Type: application/json",
			"Accept: application/json, text/event-stream",
			"MCP-Protocol-Version: " + string(mcp.NewestModern),
			"Mcp-Method: " + mcp.MethodCallTool,
			"Mcp-Name: echo",
		},
		body: fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":"echo","arguments":{"text":"hello"},
     "_meta":{%q:%q,%q:{}}}}`,
			mcp.MethodCallTool, mcp.MetaProtocolVersion, mcp.NewestModern, mcp.MetaClientCapabilities),
	}
}

// guide says how the demo is called at an address, and where clients of HTTP with
// SSE find it, if they do.
func guide(url, sse string) string {
	call := newExampleCall()
	var b strings.Builder
	fmt.Fprintf(&b, "\nThis is the built-in demo server. At another terminal:\n\n  mcpsplice ls %s\n  mcpsplice call %s ask\n", url, url)
	fmt.Fprintf(&b, "\nOr call one of its tools without mcpsplice:\n\n  curl -sS %s", url)
	for _, header := range call.headers {
		fmt.Fprintf(&b, " \\\n    -H '%s'", header)
	}
	fmt.Fprintf(&b, " \\\n    -d '%s'\n", call.body)
	fmt.Fprintf(&b, "\nClients of revisions up to %s begin with initialize at the same address.\n", mcp.NewestLegacy)
	if sse != "" {
		fmt.Fprintf(&b, "Those that know only the HTTP with SSE of %s use %s\n", mcp.Revision20241105, sse)
	}
	fmt.Fprintf(&b, "Most hosts take it from their configuration:\n\n"+
		"  {\"mcpServers\": {\"demo\": {\"type\": \"http\", \"url\": %q}}}\n\n", url)
	return b.String()
}
