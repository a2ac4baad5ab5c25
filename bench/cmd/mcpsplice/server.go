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

// newListenServer returns a server with resources, and a tool that says of each
// that it has changed.
func newListenServer() *server.Server {
	s := newServer(nil)
	uris := wire.Resources(wire.ResourceCount)
	for _, uri := range uris {
		s.AddResource(mcp.Resource{URI: uri, Name: uri}, readNothing)
	}
	server.AddTool(s, mcp.Tool{Name: wire.ChangeName, Description: "Changes every resource."},
		func(context.Context, *server.Call, struct{}) (string, error) {
			for _, uri := range uris {
				s.Changed(uri)
			}
			return "", nil
		})
	return s
}

func readNothing(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{}, nil
}
