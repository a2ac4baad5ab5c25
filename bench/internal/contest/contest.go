// Package contest knows the contestants: how each is built, started, and what
// it speaks.
package contest

import (
	"regexp"
	"slices"

	"github.com/mcpsplice/mcpsplice/bench/internal/raw"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A Transport is how a contestant is spoken to.
type Transport string

// The transports. Bridges are spoken to over HTTP and compared among
// themselves.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
)

// Names of contestants that others are compared with.
const (
	Floor       = "floor"
	FloorTyped  = "floor-typed"
	FloorBridge = "floor-bridge"
	FloorListen = "floor-listen"
)

// A Contestant is one server, or one bridge, over one transport.
type Contestant struct {
	// Name is unique among the servers of a transport, and among the bridges.
	Name      string
	Transport Transport
	Bridge    bool
	// Listen marks a server that is measured with subscriptions only. It has
	// resources and the tool that changes them.
	Listen bool
	// Program is what it is started from.
	Program Program
	// Args are its arguments; the address to listen at is empty for stdio.
	Args func(p Paths, addr string) []string
	// Revisions are those that it speaks.
	Revisions []wire.Revision
	// Echo marks one that knows no MCP.
	Echo bool
	// MemStats marks one that serves its heap counters.
	MemStats bool
	// Typed marks one whose tool is a function of Go types that the library
	// calls, and Unchecked one of them that does not check the arguments
	// against the tool's schema. They have tables of their own.
	Typed, Unchecked bool
}

// Speaks reports whether the contestant speaks r.
func (c *Contestant) Speaks(r wire.Revision) bool { return slices.Contains(c.Revisions, r) }

// TypedOnly reports whether the contestant is compared with typed tools only. The
// Go SDK's is not: its documentation shows no other tool.
func (c *Contestant) TypedOnly() bool { return c.Typed && c.Program != gosdk }

// Ours reports whether the contestant is made with this project.
func (c *Contestant) Ours() bool { return c.Program == spliceServer || c.Program == spliceBinary }

// Peer returns what a client must know of the contestant.
func (c *Contestant) Peer(r wire.Revision) raw.Peer { return raw.Peer{Revision: r, Echo: c.Echo} }

// IsLimit reports whether the contestant is what others are compared with.
// Such contestants are never left out.
func (c *Contestant) IsLimit() bool {
	return c.Name == Floor || c.Name == FloorTyped || c.Name == FloorBridge || c.Name == FloorListen
}

var (
	both   = []wire.Revision{wire.Legacy, wire.Modern}
	legacy = []wire.Revision{wire.Legacy}
	modern = []wire.Revision{wire.Modern}
)

func args(list ...string) func(Paths, string) []string {
	return func(_ Paths, addr string) []string {
		if addr == "" {
			return list
		}
		return append(slices.Clip(list), addr)
	}
}

// All returns every contestant, in the order of the tables.
func All() []Contestant {
	all := []Contestant{
		{Name: "echo", Transport: HTTP, Program: peers, Args: args("echo", "http"), Revisions: both, Echo: true, MemStats: true},
		{Name: Floor, Transport: HTTP, Program: peers, Args: args("floor", "http"), Revisions: both, MemStats: true},
		{Name: FloorTyped, Transport: HTTP, Program: peers, Args: args("floor-typed", "http"), Revisions: both, MemStats: true},
		{Name: "gosdk-stateful", Transport: HTTP, Program: gosdk, Args: args("stateful"), Revisions: legacy, MemStats: true, Typed: true},
		{Name: "gosdk-stateless", Transport: HTTP, Program: gosdk, Args: args("stateless"), Revisions: both, MemStats: true, Typed: true},
		{Name: "mcpgo-stateful", Transport: HTTP, Program: mcpgo, Args: args("plain", "stateful"), Revisions: legacy, MemStats: true},
		{Name: "mcpgo-stateless", Transport: HTTP, Program: mcpgo, Args: args("plain", "stateless"), Revisions: both, MemStats: true},
		{Name: "mcpgo-typed-stateful", Transport: HTTP, Program: mcpgo, Args: args("typed", "stateful"), Revisions: legacy, MemStats: true, Typed: true},
		{Name: "mcpgo-typed-stateless", Transport: HTTP, Program: mcpgo, Args: args("typed", "stateless"), Revisions: both, MemStats: true, Typed: true},
		{Name: "mcpgo-novalidation-stateful", Transport: HTTP, Program: mcpgo, Args: args("typed-novalidation", "stateful"), Revisions: legacy, MemStats: true, Typed: true, Unchecked: true},
		{Name: "mcpgo-novalidation-stateless", Transport: HTTP, Program: mcpgo, Args: args("typed-novalidation", "stateless"), Revisions: both, MemStats: true, Typed: true, Unchecked: true},

		{Name: "echo", Transport: Stdio, Program: peers, Args: args("echo", "stdio"), Revisions: both, Echo: true, MemStats: true},
		{Name: Floor, Transport: Stdio, Program: peers, Args: args("floor", "stdio"), Revisions: both, MemStats: true},
		{Name: FloorTyped, Transport: Stdio, Program: peers, Args: args("floor-typed", "stdio"), Revisions: both, MemStats: true},
		{Name: "gosdk", Transport: Stdio, Program: gosdk, Args: args("stdio"), Revisions: both, MemStats: true, Typed: true},
		{Name: "mcpgo", Transport: Stdio, Program: mcpgo, Args: args("plain", "stdio"), Revisions: both, MemStats: true},
		{Name: "mcpgo-typed", Transport: Stdio, Program: mcpgo, Args: args("typed", "stdio"), Revisions: both, MemStats: true, Typed: true},
		{Name: "mcpgo-novalidation", Transport: Stdio, Program: mcpgo, Args: args("typed-novalidation", "stdio"), Revisions: both, MemStats: true, Typed: true, Unchecked: true},

		{Name: "direct", Transport: HTTP, Bridge: true, Program: peers, Args: args("floor", "http"), Revisions: both},
		{
			Name: FloorBridge, Transport: HTTP, Bridge: true, Program: peers, Revisions: both,
			Args: func(p Paths, addr string) []string {
				return append([]string{"floor-bridge", "http", addr}, p.floorStdio()...)
			},
		},

		{Name: FloorListen, Transport: HTTP, Listen: true, Program: peers, Args: args("floor-listen", "http"), Revisions: modern, MemStats: true},
		{Name: "gosdk-listen", Transport: HTTP, Listen: true, Program: gosdk, Args: args("listen"), Revisions: modern, MemStats: true},
		{Name: "mcpgo-listen", Transport: HTTP, Listen: true, Program: mcpgo, Args: args("listen", "stateless"), Revisions: modern, MemStats: true},
	}
	return append(all, mcpsplice()...)
}

// Select returns the contestants whose name matches, and the limits.
func Select(all []Contestant, name *regexp.Regexp) []Contestant {
	return slices.DeleteFunc(slices.Clone(all), func(c Contestant) bool {
		return !c.IsLimit() && !name.MatchString(c.Name)
	})
}
