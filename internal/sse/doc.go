// Package sse reads and writes event streams, the text/event-stream format of
// the WHATWG HTML standard that the HTTP transports of MCP stream messages in.
//
// [Reader] takes events out of a byte stream, [AppendEvent] and [AppendComment]
// put them into one. Neither knows JSON-RPC, does HTTP or starts goroutines.
//
// A Reader follows the standard to the letter where a peer can tell: LF, CR and
// CRLF end a line wherever the reads happen to split them, an event is handed out
// on the very byte that ends it, and what the end of the stream cuts off is no
// event. It departs from the standard in three points. It has limits
// ([DefaultMaxEvent], [MaxRetry]). It reports a cut-off event as an error and
// keeps its data for a caller who can prove that it is whole ([Reader.Partial]).
// It hands bytes on as they came and leaves it to the decoder of the data to
// judge whether they are UTF-8.
package sse
