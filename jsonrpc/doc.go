// Package jsonrpc reads and writes the JSON-RPC 2.0 messages that the Model
// Context Protocol is made of, without decoding what it need not look at.
//
// [Scan] passes over a message once. It checks that the whole is valid JSON in
// valid UTF-8, finds the members of the envelope, and indexes the members one
// level down (of params, result or error, and of params._meta), so that later
// look-ups do not read the message again. Nothing is decoded: a [Value] is the
// bytes that came. Writing goes the same way: [AppendEdited] copies a value and
// replaces only the members that must change.
//
// Ids keep their exact wire form ([ID]). Duplicate members are refused where
// two readers could disagree about what a message means. Members whose names
// differ from the envelope's in case only are refused for the same reason, and those
// that differ so from a member of params that says what a request is for.
//
// The package knows nothing of MCP but such members and the place of _meta, imports no other
// package of this module, and does no I/O except through the [io.Reader] given
// to [NewLineReader].
package jsonrpc
