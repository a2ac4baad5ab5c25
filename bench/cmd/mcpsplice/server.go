package main

import (
	"context"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

type arguments struct {
	Text string `json:"text"`
}

// newServer returns a server made with package server, as its documentation
// shows: one tool that is a function of Go types, its schema inferred.
func newServer(opts *server.Options) *server.Server {
	s := server.New(mcp.Implementation{Name: "bench", Version: "1.0.0"}, opts)
	server.AddTool(s, mcp.Tool{Name: wire.ToolName, Description: "Gives the text back."},
		func(_ context.Context, _ *server.Call, a arguments) (string, error) { return a.Text, nil })
	return s
}
