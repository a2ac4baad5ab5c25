// Package transport is what the byte-stream bindings of MCP share: messages over
// a [Link], a dialing edge ([Conn]) that finds out which era its server is of,
// a listening edge ([Serve]), and a [Pool] of connections to legacy servers.
//
// The bindings themselves are in the packages below this one; transport knows
// nothing of processes or HTTP.
package transport
