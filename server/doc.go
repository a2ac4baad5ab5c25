// Package server is for writing MCP servers: tools, resources, prompts and
// completion as Go functions, behind the one [mcp.Handler] contract. A [Server]
// answers clients of every revision; which one a client speaks is the business
// of the edge that serves it ([streamable.Listen], [stdio.Serve]).
//
//	s := server.New(mcp.Implementation{Name: "weather", Version: "1.0"}, nil)
//	server.AddTool(s, mcp.Tool{Name: "forecast", Description: "Tells the weather."},
//		func(ctx context.Context, call *server.Call, in struct{ City string `json:"city"` }) (string, error) {
//			return "sunny in " + in.City, nil
//		})
//
// # Arguments and results
//
// The schemas of a typed tool are inferred from its Go types, unless the tool
// has schemas of its own, which are listed byte for byte. Arguments are checked
// against the schema and decoded once, straight into the function's argument;
// what does not fit is told the model as the result of a failed tool. A tool's
// result is text (a string), blocks of content ([mcp.Contents]), everything at
// once (a *[mcp.CallToolResult]), or any other Go value, which becomes structured
// content and is checked against the output schema.
//
// # Questions
//
// A function asks the client with a call that waits for the answer:
// [Call.Elicit], [Call.Sample], [Call.Roots]. It works for legacy clients, which
// are sent a request, and for modern ones, whose call is parked until they come
// back with the answer. A function that would rather keep no state in this
// process returns [NeedInput] and is called again with the answers.
//
// # Errors
//
// An error of a tool is told the model as the result of a failed tool, because a
// model can do something about it. A *[jsonrpc.Error] is the error of the whole
// request, and so is every error of a resource, a prompt or a completion. What
// may not be for the client (any other error of these, a result that does not fit
// its schema, a panic) it is told as an internal error with an incident number,
// under which the log has the reason.
//
// [streamable.Listen]: https://pkg.go.dev/github.com/mcpsplice/mcpsplice/transport/streamable#Listen
// [stdio.Serve]: https://pkg.go.dev/github.com/mcpsplice/mcpsplice/transport/stdio#Serve
package server
