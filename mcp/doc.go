// Package mcp is the Model Context Protocol as Go: the contract between edges
// ([Handler] and [Caller]), requests with their metadata, results, errors,
// revisions, and the names of the protocol.
//
// The language of the core is modern MCP (2026-07-28): every request carries
// its own metadata, the start of a connection is the request server/discover,
// and a subscription is a long request subscriptions/listen. What older
// revisions can say and the modern one cannot is in one file, legacy.go.
//
// Params and results stay raw JSON until someone needs to look inside. The
// package does no I/O.
package mcp
