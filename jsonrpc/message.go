package jsonrpc

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Version is the value of the member jsonrpc.
const Version = "2.0"

// A Kind says which of the JSON-RPC messages a [Message] is.
type Kind uint8

// The kinds of messages.
const (
	Invalid      Kind = iota // none of the others
	Request                  // a method and an id
	Notification             // a method without an id
	Response                 // a result or an error
)

// A Message is one message as [Scan] found it. It aliases the bytes that were
// scanned: they must not be changed while it is in use.
type Message struct {
	Kind   Kind
	ID     ID     // absent in a notification, and in an error that has none
	Method []byte // unescaped; nil in a response
	Body   Value  // params of a request or notification, result or error of a response
	Meta   Value  // params._meta, absent if there is none
	Failed bool   // a response whose Body is an error
	// Memory is what the message lies in, if whoever has read it wants that back
	// when nobody needs the message any more. Scan leaves it nil.
	Memory []byte
}

// A MessageError says why bytes are not a JSON-RPC message that this package
// accepts. The Message given to [Scan] has the kind and the id as far as they
// could be read, so that the answer can carry the id.
type MessageError struct {
	Code   int // CodeParseError or CodeInvalidRequest
	Reason string
	Err    error // the *SyntaxError or *DuplicateError, if that is the cause
}

// Error says what is wrong.
func (e *MessageError) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *MessageError) Unwrap() error { return e.Err }

// ToWire returns the error as it is answered to a peer. The place of a syntax
// error is told; of the message no more than the beginning of a member's name.
func (e *MessageError) ToWire() *Error {
	name := "Invalid Request"
	if e.Code == CodeParseError {
		name = "Parse error"
	}
	return &Error{Code: e.Code, Message: name + ": " + e.Reason}
}

func invalid(format string, args ...any) *MessageError {
	return &MessageError{Code: CodeInvalidRequest, Reason: fmt.Sprintf(format, args...)}
}

// refusal returns err, a fault that a scan found, as a MessageError.
func refusal(err error) *MessageError {
	switch e := err.(type) {
	case *MessageError:
		return e
	case *SyntaxError:
		return &MessageError{Code: CodeParseError, Reason: e.Error(), Err: e}
	}
	return &MessageError{Code: CodeInvalidRequest, Reason: err.Error(), Err: err}
}

// An envelope is what the scan finds out about the members of a message.
type envelope struct {
	opening                byte   // first byte of the message
	version, id, method    []byte // as they came, nil if absent
	params, result, failed bool   // whether there are params, a result, an error
	variant                []byte // an envelope name in another case
}

// Scan passes once over data, which holds one message, and fills m. White space
// and a byte order mark around the message are let through. Scan allocates
// nothing for a well-formed message of ordinary shape (up to eight members in
// each indexed object, names without escapes), and m lies in data. A request or
// notification that is a small part of data gets memory of its own, so that it can be
// kept. The error is a [*MessageError]; m then holds the kind and the id, as far as they
// could be read, and nothing else.
//
// Refused besides invalid JSON and what is not JSON-RPC 2.0: duplicate members
// in the message, in params and in params._meta, and more than [MaxMembers]
// there; members whose names are those of the envelope in another case, or beside
// name, uri, arguments, _meta or taskId of params those in another case; request
// ids that are not strings or integers or longer than [MaxIDBytes]; nesting
// beyond [MaxDepth].
func Scan(data []byte, m *Message) error {
	*m = Message{}
	s, err := newScanner(data)
	if err != nil {
		return refusal(err)
	}
	s.skipBOM()
	var env envelope
	err = s.message(m, &env)
	m.Kind = env.kind()
	m.ID, _ = wireID(env.id)
	if err == nil {
		err = s.soft
	}
	if err == nil {
		err = env.check(m)
	}
	if err != nil {
		*m = Message{Kind: m.Kind, ID: m.ID}
		if !utf8.Valid(m.ID.raw) {
			m.ID = ID{} // it could not be sent back
		}
		return refusal(err)
	}
	m.detach(data)
	return nil
}

// message scans a message and what may surround it.
func (s *scanner) message(m *Message, env *envelope) error {
	var err error
	if env.opening = s.space(); env.opening == '{' {
		s.breaks = false // what stands before the message is not inside it
		err = s.envelope(m, env)
		m.Body.oneLine, m.Meta.oneLine = !s.breaks, !s.breaks
	} else {
		err = s.value(0)
	}
	if err != nil {
		return err
	}
	return s.end()
}

func (s *scanner) envelope(m *Message, env *envelope) error {
	var top Value
	return s.distinct(&top, "message", func(name []byte) error {
		switch string(name) {
		case "params":
			env.params = true
			return s.params(m)
		case "result":
			env.result = true
			return s.indexed(&m.Body, 1)
		case "error":
			env.failed = true
			return s.indexed(&m.Body, 1)
		}
		start := s.pos
		if err := s.value(1); err != nil {
			return err
		}
		raw := s.data[start:s.pos:s.pos]
		switch string(name) {
		case "jsonrpc":
			env.version = raw
		case "id":
			if raw[0] == '"' || s.delimited() { // else it may be the beginning of another one
				env.id = raw
			}
		case "method":
			env.method = raw
		default:
			if isVariant(name) {
				env.variant = name
			}
		}
		return nil
	})
}

// delimited reports whether what ends at pos, in an object, does not go on: a message
// may be cut off in a number.
func (s *scanner) delimited() bool {
	if s.pos >= len(s.data) {
		return false
	}
	switch s.data[s.pos] {
	case ' ', '\t', '\n', '\r', ',', '}':
		return true
	}
	return false
}

// params scans params, whose top level and _meta are kept free of duplicates.
func (s *scanner) params(m *Message) error {
	if s.space() != '{' {
		return s.indexed(&m.Body, 1)
	}
	var respelled [len(routing)]bool // which names there is another spelling of
	err := s.distinct(&m.Body, "params", func(name []byte) error {
		if string(name) == "_meta" && s.space() == '{' {
			return s.distinct(&m.Meta, "params._meta", func([]byte) error { return s.value(3) })
		}
		if i := respelling(name); i >= 0 {
			respelled[i] = true
		}
		return s.value(2)
	})
	if err != nil {
		return err
	}
	for i, is := range respelled {
		if !is || s.soft != nil {
			continue
		}
		if _, ok := m.Body.Lookup(routing[i]); ok {
			s.soft = invalid("a member of params differs from %q in case only", routing[i])
		}
	}
	return nil
}

// routing are the members of params that say what a request is for. Readers that ignore
// case would take one for another of the same letters if both were there.
var routing = [...]string{"name", "uri", "arguments", "taskId", "_meta"}

// respelling returns which of them has the given name in another case, -1 for none.
func respelling(name []byte) int {
	i := -1
	if len(name) > 0 {
		switch name[0] {
		case 'n', 'N':
			i = 0
		case 'u', 'U':
			i = 1
		case 'a', 'A':
			i = 2
		case 't', 'T':
			i = 3
		case '_':
			i = 4
		}
	}
	if i < 0 || !foldsTo(name, routing[i]) {
		return -1
	}
	return i
}

// isVariant reports whether name is a name of the envelope in another case.
func isVariant(name []byte) bool {
	for _, want := range [...]string{"jsonrpc", "id", "method", "params", "result", "error"} {
		if foldsTo(name, want) {
			return true
		}
	}
	return false
}

func (e *envelope) kind() Kind {
	switch {
	case e.method != nil && e.id != nil:
		return Request
	case e.method != nil:
		return Notification
	case e.result || e.failed:
		return Response
	}
	return Invalid
}

// check applies the rules of JSON-RPC 2.0 (sections 4 to 6) to what was found.
func (e *envelope) check(m *Message) error {
	switch {
	case e.opening == '[':
		return invalid("batches are not supported here")
	case e.opening != '{':
		return invalid("a message must be an object")
	case e.variant != nil:
		return invalid("member %.*q differs from the envelope's in case only", shownRunes, e.variant)
	}
	if string(e.version) != `"2.0"` {
		if version, _ := Unquote(e.version); version != Version {
			return invalid("jsonrpc must be %q", Version)
		}
	}
	switch m.Kind {
	case Request, Notification:
		return e.checkRequest(m)
	case Response:
		return e.checkResponse(m)
	}
	return invalid("a message needs a method, a result or an error")
}

func (e *envelope) checkRequest(m *Message) error {
	if e.result || e.failed {
		return invalid("a message has a method or a result or an error, not several")
	}
	if m.Kind == Request && m.ID.IsZero() {
		return e.badID()
	}
	if len(e.method) < len(`"x"`) || e.method[0] != '"' {
		return invalid("method must be a string that is not empty")
	}
	m.Method = e.method[1 : len(e.method)-1]
	if bytes.IndexByte(m.Method, '\\') >= 0 {
		m.Method = appendUnescaped(nil, m.Method)
	}
	switch {
	case m.Body.IsNull():
		m.Body = Value{}
	case e.params && !m.Body.IsObject() && m.Body.raw[0] != '[':
		return invalid("params must be an object or an array")
	}
	return nil
}

func (e *envelope) badID() error {
	if len(e.id) > MaxIDBytes {
		return invalid("id of %d bytes is longer than the limit MaxIDBytes of %d", len(e.id), MaxIDBytes)
	}
	return invalid("id must be a string or an integer")
}

func (e *envelope) checkResponse(m *Message) error {
	m.Failed = e.failed
	switch {
	case e.result && e.failed:
		return invalid("a response has a result or an error, not both")
	case e.params:
		return invalid("a response has no params")
	case e.failed && !m.Body.IsObject():
		return invalid("error must be an object")
	}
	if !m.ID.IsZero() {
		return nil
	}
	switch {
	case e.id == nil || string(e.id) == "null":
		if e.result {
			return invalid("a result needs an id")
		}
	case len(e.id) <= MaxIDBytes && (e.id[0] == '-' || isDigit(e.id[0])):
		m.ID = ID{e.id} // 1.0 may still be meant for request 1
	default:
		return e.badID()
	}
	return nil
}

// AppendRequest appends a request, with edits to its params, to dst, in one line.
// Absent params are left out.
func AppendRequest(dst []byte, id ID, method string, params *Value, edits ...Edit) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = id.appendTo(dst)
	dst = append(dst, `,"method":`...)
	return appendCall(dst, method, params, edits...)
}

// AppendNotification appends a notification to dst, in one line.
func AppendNotification(dst []byte, method string, params *Value) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	return appendCall(dst, method, params)
}

func appendCall(dst []byte, method string, params *Value, edits ...Edit) []byte {
	dst = AppendString(dst, method)
	if !params.IsZero() || len(edits) > 0 {
		dst = append(dst, `,"params":`...)
		dst = AppendEdited(dst, params, edits...)
	}
	return append(dst, '}')
}

// AppendResult appends a response with a result, and edits to it, to dst, in one
// line. An absent result is written as an empty object.
func AppendResult(dst []byte, id ID, result *Value, edits ...Edit) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = id.appendTo(dst)
	dst = append(dst, `,"result":`...)
	dst = AppendEdited(dst, result, edits...)
	return append(dst, '}')
}

// AppendError appends a response with an error to dst, in one line. An absent
// id is left out, as MCP has it.
func AppendError(dst []byte, id ID, e *Error) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if !id.IsZero() {
		dst = append(dst, `,"id":`...)
		dst = id.appendTo(dst)
	}
	dst = append(dst, `,"error":`...)
	return append(e.appendTo(dst), '}')
}

// AppendNullError is AppendError for an error without an id as JSON-RPC has it,
// with the id null (section 5).
func AppendNullError(dst []byte, e *Error) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":null,"error":`...)
	return append(e.appendTo(dst), '}')
}
