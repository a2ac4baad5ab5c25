// Package eventlog keeps the events of resumable streams, so that a client that
// lost its connection can have what it missed.
//
// A [Log] holds streams, each of one session. Whoever produces a message appends
// it; whoever has the client on the line reads what came after the last event
// that the client knows, and waits for more. The two need not know of each other
// and need not be in one process: all that passes between them is in the log, and
// an event's id says which stream it is of and where in it ([Stream.ID],
// [ParseID]).
//
// [NewMemory] returns a Log that is bounded and of this process only.
package eventlog
