// Package demo is a small MCP server that has one of everything: tools that
// answer, take their time, log, fail and ask; resources that change; a prompt.
// It is what `mcpsplice serve` serves without a target, and a server like any
// that is written with package server.
package demo

import (
	"context"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// Name is what the server calls itself.
const Name = "mcpsplice-demo"

const instructions = "A server to try clients, bridges and gateways on. Its tools show one behaviour each; " +
	"the resource " + clockURI + " changes every few seconds; the tool toggle changes the lists."

// A Server is the demo server, an [mcp.Handler]. It is safe for concurrent use
// and has nothing to close: what changes by itself does so only while somebody
// listens.
type Server struct {
	server *server.Server
	clock  clock
	extras extras
}

// New returns a demo server that says it is of a version; empty means "dev".
func New(version string) *Server {
	if version == "" {
		version = "dev"
	}
	info := mcp.Implementation{Name: Name, Title: "mcpsplice demo", Version: version}
	s := &Server{server: server.New(info, &server.Options{Instructions: instructions})}
	s.clock.tick = func() { s.server.Changed(clockURI) }
	addTools(s.server)
	addQuestions(s.server)
	addResources(s.server)
	addPrompts(s.server)
	server.AddTool(s.server, toggleTool, s.toggle)
	return s
}

// Handle implements [mcp.Handler].
func (s *Server) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Method == mcp.MethodListen {
		s.clock.watch()
		defer s.clock.unwatch()
	}
	return s.server.Handle(ctx, req, caller)
}
