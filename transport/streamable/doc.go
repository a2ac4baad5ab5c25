// Package streamable binds MCP to HTTP: [Handler] and [Server] listen, [Dial]
// connects to a server, [CallOnce] makes a single call without a connection.
//
// One endpoint serves both eras. Modern requests (2026-07-28) stand for
// themselves, each in a POST of its own. Legacy ones (2025-03-26 to 2025-11-25)
// belong to sessions, which begin with initialize and have a GET stream for what
// belongs to no request.
//
// [SSEHandler] is the transport that revision 2024-11-05 had instead, listening
// only.
package streamable
