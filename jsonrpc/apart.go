package jsonrpc

import "bytes"

// Whoever keeps a message counts what it holds. That must not be a small part of the
// memory that it lies in: a peer may put something large beside it.

// maxAround is how many bytes around a message, or around its body, are kept with it.
const maxAround = 4 << 10

// isSmallIn reports whether size bytes would keep much more memory than they count for.
func isSmallIn(size int, whole []byte) bool {
	return len(whole)-size > maxAround && size < len(whole)/2
}

// detach gives what m holds memory of its own, if it is a small part of data. Responses
// are not kept.
func (m *Message) detach(data []byte) {
	if m.Kind == Response || !isSmallIn(len(m.Body.raw)+len(m.Method), data) {
		return
	}
	m.ID.raw = bytes.Clone(m.ID.raw)
	m.Method = bytes.Clone(m.Method)
	m.Body.raw = bytes.Clone(m.Body.raw) // the places in an index are counted from its beginning
	m.Meta.raw = bytes.Clone(m.Meta.raw)
}
