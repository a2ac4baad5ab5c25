// Command stdio-server is an MCP server that a host starts, with one typed tool:
// its schemas are those of the Go types, and its arguments have been checked.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

type trip struct {
	Kilometres float64 `json:"kilometres" jsonschema:"how far it is"`
	Speed      float64 `json:"speed" jsonschema:"in kilometres an hour"`
}

type duration struct {
	Hours float64 `json:"hours"`
}

func travel(_ context.Context, _ *server.Call, in trip) (duration, error) {
	if in.Speed <= 0 {
		return duration{}, fmt.Errorf("at %v km/h nobody arrives", in.Speed)
	}
	return duration{in.Kilometres / in.Speed}, nil
}

func main() {
	s := server.New(mcp.Implementation{Name: "travel", Version: "1.0"}, nil)
	server.AddTool(s, mcp.Tool{Name: "travel", Description: "Tells how long a trip takes."}, travel)
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
