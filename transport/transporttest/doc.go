// Package transporttest is the suite that every binding passes: what a client
// may rely on, whatever carries its messages.
//
// A binding's test calls [Run] with a function that serves a handler over it.
// The suite's [Handler] does what its callers tell it, and tells them through
// calls what has happened to others, so that it can as well be served by another
// process.
package transporttest
