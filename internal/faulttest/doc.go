// Package faulttest has what tests of faults need: a child process that does
// exactly what a script says, and a proxy for TCP that delays, cuts, resets and
// stalls connections at given bytes.
//
// A [Child] is the program that is running, test binary or not, started once more:
// its main function, or TestMain, begins with [RunChild]. The bytes that it writes,
// the pauses between them, the descriptors that it closes and the way that it ends
// are the steps of a [Script]. The step [Serve] makes it a small server, whose calls
// say what becomes of it; [ServeHTTP] the same over HTTP. Each call that is executed
// is written to a [Ledger] first, so that one that is executed twice is found out.
//
// A [Proxy] stands before any server. A [Plan] says what happens to which of its
// connections.
package faulttest
