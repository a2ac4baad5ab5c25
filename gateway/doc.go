// Package gateway puts many servers behind one [mcp.Handler]. A [Gateway] shows the
// tools, prompts and resources of its backends as one list each, and brings every
// call to the backend whose it is. A backend is any handler: a transport.Pool, a
// dialing edge, a server.Server, another gateway.
//
//	g := gateway.New(nil)
//	g.Add("files", filesPool, nil)
//	g.Add("wiki", wikiPool, nil)
//	listener, err := streamable.Listen(addr, g, nil)
//
// # Names
//
// The tool search of the backend wiki is shown as wiki__search ([ExposedName]). A
// name that would be too long, hold characters that clients refuse, or be readable in
// two ways is shortened, with a hash at its end. What a name is depends on nothing but
// the backend's name and the tool's: not on the order in which backends came, nor on
// time. Calls find their backend in a table of the names that were shown; no name is
// ever taken apart. With a single backend there is no prefix. URIs of resources pass
// as they are.
//
// # Partial failure
//
// A backend that is dead or slow takes no other one's features away and delays no list
// for longer than a budget ([Options.ListBudget]); what is known of it from before is
// shown in the meantime. What comes later is announced as a change of the list.
// [Gateway.Status] tells which backends are in trouble, and why. No principal can take
// all calls of a backend, or all listen calls, from the others ([MaxShare]).
//
// # What passes
//
// Params, results, errors, notifications, questions and the state of requests that need
// input pass as they came, but for the names. Tasks do not: a gateway does not know
// whose they are, and lets nobody make any. What a server asks or tells while it is
// asked for a list reaches nobody, since the answer may be for many.
package gateway
