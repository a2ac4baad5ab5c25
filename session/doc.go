// Package session is legacy MCP (2024-11-05 to 2025-11-25) as an adapter: what
// those revisions do by initialize, sessions and server-initiated requests is
// turned into the core's language here, and known nowhere else.
//
// A [Client] is our side of a session with a legacy server: a Handler that
// speaks to it. A [Server] is our side of a session with a legacy client: it
// answers the client's messages by calling a Handler. Both leave framing and
// delivery to a transport. A [Table] holds the sessions of an HTTP listener.
package session
