package raw

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/mcpsplice/mcpsplice/jsonrpc"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A typedCall is what one slot of a client needs that has a text to send, as a string
// of its caller's, and gives its caller one: each request is written anew, and each
// reply is checked, once, to be JSON-RPC in JSON and UTF-8 before its text is decoded.
// This project's own functions do both, as the quickest that are known.
type typedCall struct {
	text string
	// The message before and after the text, and what is before the length in an HTTP
	// request; nil on a pipe.
	head, tail, header []byte

	buf    []byte
	reply  jsonrpc.Message
	called bool // the text of a reply was compared
}

// newTypedCall returns what makes calls over HTTP, or on a pipe if e is nil.
func newTypedCall(r wire.Revision, text string, e *wire.Endpoint) *typedCall {
	const empty = `""`
	m := wire.CallTool(r, "")
	at := bytes.LastIndex(m.Bytes, []byte(empty))
	c := &typedCall{text: text, head: m.Bytes[:at], tail: m.Bytes[at+len(empty):]}
	if e == nil {
		c.tail = append(bytes.Clone(c.tail), '\n')
		return c
	}
	const length = "Content-Length: "
	whole := m.HTTP(*e, "tools/call", wire.ToolName).Bytes
	c.header = whole[:bytes.Index(whole, []byte(length))+len(length)]
	return c
}

// request returns the next request, valid until the one after it.
func (c *typedCall) request(id int64) []byte {
	const headerEnd, mostDigits = "\r\n\r\n", 10
	room := 0
	if c.header != nil {
		room = len(c.header) + mostDigits + len(headerEnd)
	}
	// The length is known when the text is quoted: the header goes before that.
	b := append(append(c.buf[:0], make([]byte, room)...), c.head...)
	wire.PutID(b[room+len(wire.IDPrefix):], id)
	b = append(jsonrpc.AppendString(b, c.text), c.tail...)
	c.buf = b
	if c.header == nil {
		return b
	}
	var digits [mostDigits]byte
	n := strconv.AppendInt(digits[:0], int64(len(b)-room), 10)
	start := room - len(headerEnd) - len(n) - len(c.header)
	at := start + copy(b[start:], c.header)
	at += copy(b[at:], n)
	copy(b[at:], headerEnd)
	return b[start:]
}

// check decodes a reply. It returns no id if the message is a notification.
func (c *typedCall) check(message []byte) (id int64, err error) {
	m := &c.reply
	if err := jsonrpc.Scan(message, m); err != nil {
		return 0, err
	}
	switch {
	case m.Kind == jsonrpc.Notification:
		return 0, nil
	case m.Kind != jsonrpc.Response || m.Failed:
		return 0, fmt.Errorf("not a result: %s", wire.Excerpt(message))
	}
	if id, err = strconv.ParseInt(string(m.ID.Raw()), 10, 64); err != nil {
		return 0, err
	}
	content, _ := m.Body.Lookup("content")
	text, err := textOf(content)
	if err == nil && (len(text) != len(c.text) || !c.called && text != c.text) {
		err = errors.New("not the text that was sent")
	}
	if c.called = true; err != nil {
		return 0, fmt.Errorf("%w: %s", err, wire.Excerpt(message))
	}
	return id, nil
}

var errNoText = errors.New("no text")

// textOf returns the text of the first block of a content. What is written like most
// servers write it is passed over once.
func textOf(content []byte) (string, error) {
	rest, ok := bytes.CutPrefix(content, []byte(`[{"type":"text","text":`))
	if ok {
		if text, _, ok := jsonrpc.UnquotePrefix(rest); ok {
			return text, nil
		}
	}
	for block := range jsonrpc.IndexedItems(content) {
		if text, ok := block.LookupString("text"); ok {
			return text, nil
		}
	}
	return "", errNoText
}

// checkTyped looks at the status of a reply, and has the call decode its message.
func (r reply) checkTyped(c *typedCall, id int64) error {
	if r.status != http.StatusOK {
		return r.unexpected()
	}
	if !r.events {
		return c.answered(r.body, id)
	}
	for rest := r.body; len(rest) > 0; {
		var data []byte
		if data, rest = nextData(rest); len(data) == 0 {
			continue
		}
		if err := c.answered(data, id); err != errNotification {
			return err
		}
	}
	return errNotification
}

var errNotification = errors.New("a notification")

// answered is check for a reply that must be that to id.
func (c *typedCall) answered(message []byte, id int64) error {
	switch got, err := c.check(message); {
	case err != nil:
		return err
	case got == 0:
		return errNotification
	case got != id:
		return fmt.Errorf("want id %d, got %d", id, got)
	}
	return nil
}
