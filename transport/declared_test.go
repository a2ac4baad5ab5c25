package transport_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// conditional plays a legacy server that lists a tool for each thing that its
// client has declared, and one that is named as the client is.
func conditional(t *testing.T, p *peer) {
	var tools []string
	for {
		line, err := p.lines.ReadLine()
		if err != nil {
			return
		}
		m := new(jsonrpc.Message)
		if err := jsonrpc.Scan(line, m); err != nil {
			t.Error(err)
			return
		}
		result := "{}"
		switch string(m.Method) {
		case mcp.MethodInitialize:
			capabilities := m.Body.Get("capabilities")
			for name := range capabilities.Members() {
				tools = append(tools, `{"name":"`+name+`"}`)
			}
			client := m.Body.Get("clientInfo")
			name, _ := client.LookupString("name")
			tools = append(tools, `{"name":"for `+name+`"}`)
			result = initialized(mcp.Revision20251125)
		case mcp.MethodListTools:
			result = `{"tools":[` + strings.Join(tools, ",") + `]}`
		}
		if m.Kind == jsonrpc.Request {
			_, _ = fmt.Fprintf(p.conn, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result) // the link may have ended
		}
	}
}

// TestServersSeeWhatClientsDeclare: tools that need something of the client are
// there for those who declared it, and for nobody else.
func TestServersSeeWhatClientsDeclare(t *testing.T) {
	clients := []struct{ name, capabilities, tools string }{
		{"a", `{}`, `for mcpsplice`},
		{"b", `{"roots":{"listChanged":true}}`, `roots, for b`},
		{"c", `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}`, `elicitation, sampling, for c`},
		{"d", `{"experimental":{"x":{}}}`, `experimental, for mcpsplice`},
		{"e", `{"roots":{"listChanged":true}}`, `roots, for e`},
		{"f", `{}`, `for mcpsplice`},
	}
	for _, tt := range []struct {
		isolation transport.Isolation
		tools     func(client, tools string) string
		conns     int
	}{
		{transport.Automatic, func(_, tools string) string { return tools }, 2 + 2*3},
		{transport.Shared, func(client, tools string) string { return strings.Replace(tools, "for "+client, "for mcpsplice", 1) }, 4},
		{transport.Serialized, func(client, tools string) string { return strings.Replace(tools, "for "+client, "for mcpsplice", 1) }, 4},
		{transport.PerClient, func(client, tools string) string { return strings.Replace(tools, "for mcpsplice", "for "+client, 1) }, 12},
	} {
		t.Run(string(tt.isolation), func(t *testing.T) {
			var playing sync.WaitGroup
			defer playing.Wait()
			var mu sync.Mutex
			conns := 0
			pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
				link, p := newLink(t, transport.LineOptions{})
				playing.Go(func() { conditional(t, p) })
				mu.Lock()
				conns++
				mu.Unlock()
				return transport.Dial(ctx, link, transport.DialOptions{Era: mcp.Legacy, Client: meta.Client, Capabilities: meta.Capabilities})
			}, transport.PoolOptions{Isolation: tt.isolation})
			defer func() { _ = pool.Close() }()
			for _, c := range clients {
				for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
					p, _ := serve(t, pool, transport.ServeOptions{})
					got := listed(p, era, c.name, c.capabilities)
					if want := tt.tools(c.name, c.tools); got != want {
						t.Errorf("the %v client %s is listed %s, not %s", era, c.name, got, want)
					}
				}
			}
			if conns != tt.conns {
				t.Errorf("%d connections", conns)
			}
		})
	}
}

// listed returns the names of the tools that a client lists.
func listed(p *peer, era mcp.Era, name, capabilities string) string {
	p.t.Helper()
	info := `{"name":"` + name + `","version":"1"}`
	if era == mcp.Legacy {
		p.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":` + info + `,"capabilities":` + capabilities + `}}`)
		p.line()
		p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	} else {
		p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":` + info + `,"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`)
	}
	m := p.message()
	tools, _ := m.Body.Lookup("tools")
	var names []string
	for _, item := range jsonrpc.Elements(tools) {
		tool := jsonrpc.Trusted(item)
		text, _ := tool.LookupString("name")
		names = append(names, text)
	}
	return strings.Join(names, ", ")
}
