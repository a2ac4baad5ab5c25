package cells

import "github.com/mcpsplice/mcpsplice/mcp"

// A Wire is what a client and the bridge, or the bridge and a server, are connected
// by.
type Wire string

// The wires.
const (
	Stdio Wire = "stdio"
	HTTP  Wire = "HTTP"
	SSE   Wire = "HTTP with SSE"
)

// A Side is a kind of client or server.
type Side struct {
	Wire Wire
	Era  mcp.Era
}

// Sides are all kinds there are.
var Sides = []Side{
	{Stdio, mcp.Legacy}, {Stdio, mcp.Modern}, {HTTP, mcp.Legacy}, {HTTP, mcp.Modern}, {SSE, mcp.Legacy},
}

// String describes a kind.
func (s Side) String() string { return s.Era.String() + " " + string(s.Wire) }
