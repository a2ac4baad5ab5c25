package raw

// A copiedCall is what one slot of a client needs that moves the text of each call
// from its caller into the request, and from the reply to its caller, and does nothing
// else with it: see [Peer]. A nil one moves nothing.
type copiedCall struct {
	size int // of the text
	buf  []byte
	text string // of the last reply
}

func newCopiedCall(text string) *copiedCall { return &copiedCall{size: len(text)} }

// request returns a copy of a request, valid until the next one.
func (c *copiedCall) request(message []byte) []byte {
	if c == nil {
		return message
	}
	c.buf = append(c.buf[:0], message...)
	return c.buf
}

// keep makes a string of as many bytes of a reply as its text has.
func (c *copiedCall) keep(message []byte) {
	if c != nil {
		c.text = string(message[:min(c.size, len(message))])
	}
}
