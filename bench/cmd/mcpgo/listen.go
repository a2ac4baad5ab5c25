package main

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// watchers are the sessions of subscriptions. Over HTTP the library keeps no
// resources with them and tells none of them of a resource's change: who wants to
// has to note them as they come.
type watchers struct {
	mu       sync.Mutex
	sessions map[server.ClientSession]struct{} // guarded by mu
}

func (w *watchers) note(ctx context.Context, _ any, method mcp.MCPMethod, _ any) {
	if method != mcp.MethodSubscriptionsListen {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions[server.ClientSessionFromContext(ctx)] = struct{}{}
}

// newListenServer returns a server with resources, and a tool that says of each
// that it has changed.
func newListenServer() *server.MCPServer {
	w := &watchers{sessions: make(map[server.ClientSession]struct{})}
	hooks := new(server.Hooks)
	hooks.AddBeforeAny(w.note)
	s := server.NewMCPServer("mcpgo", "1.0.0", server.WithToolCapabilities(false),
		server.WithResourceCapabilities(true, false), server.WithHooks(hooks))
	s.AddTool(mcp.NewTool(wire.ToolName, mcp.WithString("text", mcp.Required())), echo)
	uris := wire.Resources(wire.ResourceCount)
	for _, uri := range uris {
		s.AddResource(mcp.NewResource(uri, uri),
			func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) { return nil, nil })
	}
	s.AddTool(mcp.NewTool(wire.ChangeName), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, uri := range uris {
			w.tell(ctx, s, uri)
		}
		return mcp.NewToolResultText(""), nil
	})
	return s
}

// tell tells all subscriptions that a resource has changed.
func (w *watchers) tell(ctx context.Context, s *server.MCPServer, uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for session := range w.sessions {
		// A session that is 100 messages behind loses this one.
		_ = s.SendNotificationToClient(s.WithContext(ctx, session),
			mcp.MethodNotificationResourceUpdated, map[string]any{"uri": uri})
	}
}
