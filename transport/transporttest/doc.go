// Package transporttest is the suite that every binding of MCP passes: [Run]
// makes calls over dialing edges whose servers serve [NewHandler], and looks at
// what a caller is promised: one end for each call, by its deadline,
// notifications in their order before it, and a Close that returns whatever the
// peer does.
//
// The suite knows nothing of how the two are connected, so that links in memory,
// child processes and HTTP run the same tests.
package transporttest
