// Package stdio binds MCP to the standard streams of a process: [Dial] starts a
// server as a child and speaks to it, [Serve] serves the client that started
// this process.
//
// Messages are framed by newlines. A child runs in a process group of its own,
// with a minimal environment; its stderr is always drained; after Close, and
// also after a kill -9 of this process, nothing of the group is left.
package stdio
