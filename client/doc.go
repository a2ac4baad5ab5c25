// Package client calls MCP servers of every revision, over connections that heal:
// a server that crashed, restarted, lost its session or was cut off is connected
// to again, what was subscribed to is subscribed to again, and what cannot have
// been executed is sent again.
//
//	c, err := client.Connect(ctx, client.URL("http://127.0.0.1:8421/mcp"), nil)
//	...
//	defer c.Close()
//	for tool, err := range c.Tools(ctx) { ... }
//	result, err := c.CallTool(ctx, "forecast", map[string]any{"city": "Bern"}, nil)
//
// # Calls
//
// Each call ends exactly once: with a result, with the server's error
// (*[jsonrpc.Error]), or with an *[mcp.CallError] that says how it failed and
// what is known of it: not sent, maybe executed, or answered. A call of a tool is
// never made twice, unless the first one provably was not executed or the tool
// says that it can be repeated ([Options.Repeat]).
//
// A call has 30 s from its beginning, or from its last progress, and ten minutes
// in all; the clock stands still while its server waits for an answer of ours.
//
// # Connections
//
// A connection that has ended is made again: unasked after a wait that grows, at
// once for a call. [Client.State] and [Options.State] tell how it is. What was
// subscribed to ([Client.Listen]) goes on with the next connection, and an event says
// that something may have been missed ([Resynced]). Lists are kept for as long as
// the server says that they stay fresh, and no longer than until they change.
//
// # Questions
//
// What a server may ask is answered by [Options.Elicit], [Options.Sample] and
// [Options.Roots]. The client declares exactly what it has a function for.
package client
