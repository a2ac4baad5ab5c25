// Package park lets a modern client be asked in the middle of a call.
//
// A modern client is sent no requests (2026-07-28, patterns/mrtr): what a server
// wants to know ends the call with a result that is input_required, and the
// client makes the call again with the answers. Legacy servers and handlers that
// call [mcp.Caller.Ask] know nothing of this: they ask and wait. A [Lot] stands
// between the two. Its Ask ends the client's exchange and leaves the call
// running; the retry finds it by its requestState and is attached to it.
//
// A [Sealer] makes such states, for the Lot and for handlers that keep their own.
package park
