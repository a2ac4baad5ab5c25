// Package cells has what tests of bridges under faults need: servers of every kind,
// each a process that asks its client in mid-call and can be killed, a bridge
// before one of them, and clients of every kind before the bridge. A cell is a kind
// of client and a kind of server.
//
// [Run] makes rounds in one cell: calls with questions, while servers are killed,
// clients leave and states are tampered with. What happens in a round follows from a
// seed, save for the scheduling of processes.
package cells
