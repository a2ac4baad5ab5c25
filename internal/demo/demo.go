// Package demo is a small MCP server that has one of everything: tools that
// answer, take their time, log, fail and ask; resources that change; a prompt.
// It is what `mcpsplice serve` serves without a target, and it is written on the
// Handler contract alone.
package demo

import (
	"context"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// Name is what the server calls itself.
const Name = "mcpsplice-demo"

const instructions = "A server to try clients, bridges and gateways on. Its tools show one behaviour each; " +
	"the resource " + clockURI + " changes every few seconds; the tool toggle changes the lists."

// A Server is the demo server, an [mcp.Handler]. It is safe for concurrent use
// and has nothing to close: what changes by itself does so only while somebody
// listens.
type Server struct {
	// Version is what the server says of itself; empty means "dev". It is not
	// to be changed once the server is in use.
	Version string

	mu      sync.Mutex
	toggles toggles       // guarded by mu
	changed chan struct{} // closed and replaced by each toggle; guarded by mu
}

// New returns a demo server.
func New() *Server {
	return &Server{changed: make(chan struct{})}
}

// Handle implements [mcp.Handler].
func (s *Server) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Notification {
		return mcp.Result{}, nil
	}
	switch req.Method {
	case mcp.MethodDiscover:
		return s.discover()
	case mcp.MethodListen:
		return s.listen(ctx, req, caller)
	case mcp.MethodListTools:
		return list(req, "tools", s.tools())
	case mcp.MethodCallTool:
		return s.callTool(ctx, req, caller)
	case mcp.MethodListResources:
		return list(req, "resources", s.resources())
	case mcp.MethodListResourceTemplates:
		return list(req, "resourceTemplates", templates)
	case mcp.MethodReadResource:
		return s.readResource(req)
	case mcp.MethodListPrompts:
		return list(req, "prompts", s.prompts())
	case mcp.MethodGetPrompt:
		return s.getPrompt(req)
	case mcp.MethodComplete:
		return s.complete(req)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %.100s", req.Method)
}

// object is a JSON object. It is written with its members in the order of their
// names, so that the same answer is the same bytes.
type object = map[string]any

func encode(v any) (jsonrpc.Value, error) {
	raw, err := json.Marshal(v, json.Deterministic(true))
	return jsonrpc.Trusted(raw), err
}

func result(v any) (mcp.Result, error) {
	value, err := encode(v)
	return mcp.Result{Value: value}, err
}

func (s *Server) discover() (mcp.Result, error) {
	version := s.Version
	if version == "" {
		version = "dev"
	}
	return result(object{
		"supportedVersions": append(mcp.ModernRevisions(), mcp.LegacyRevisions()...),
		"capabilities": object{
			"tools":       object{"listChanged": true},
			"resources":   object{"listChanged": true, "subscribe": true},
			"prompts":     object{"listChanged": true},
			"logging":     object{},
			"completions": object{},
		},
		"instructions": instructions,
		"_meta": object{
			mcp.MetaServerInfo: mcp.Implementation{Name: Name, Title: "mcpsplice demo", Version: version},
		},
	})
}

// list answers a list request with all its items on one page.
func list[T any](req *mcp.Request, name string, items []T) (mcp.Result, error) {
	if _, paged := req.Params.Lookup("cursor"); paged {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: unknown cursor")
	}
	return result(object{name: items})
}
