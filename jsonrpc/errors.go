package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// Error codes of JSON-RPC 2.0 (section 5.1).
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// Error codes of MCP. CodeResourceNotFound and CodeURLElicitationRequired are
// those of revisions up to 2025-11-25.
const (
	CodeHeaderMismatch         = -32020
	CodeMissingCapability      = -32021
	CodeUnsupportedVersion     = -32022
	CodeResourceNotFound       = -32002
	CodeURLElicitationRequired = -32042
)

// An Error is the error of a response.
type Error struct {
	Code    int
	Message string
	Data    Value // absent if there is none

	peer  bool
	whole Value // the peer's error, whose other members are passed on; absent if it has no code
}

// Error returns the message and the code.
func (e *Error) Error() string {
	if e.Message == "" {
		return "error " + strconv.Itoa(e.Code)
	}
	return fmt.Sprintf("%s (%d)", e.Message, e.Code)
}

// Is reports whether target is an [*Error] of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Errorf returns an error of the given code.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// FromPeer reports whether err is, or wraps, an error that a peer sent in a
// response, rather than one made in this process.
func FromPeer(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.peer
}

// ReadError returns the error of a response as the peer sent it. A code that is
// absent or no integer becomes CodeInternalError, with the peer's whole error as
// data. Members that are not of an Error are kept for [AppendError].
func ReadError(v *Value) *Error {
	e := &Error{peer: true, Data: v.Get("data")}
	e.Message, _ = v.LookupString("message")
	raw, _ := v.Lookup("code")
	if code, err := strconv.Atoi(string(raw)); err == nil {
		e.Code, e.whole = code, *v
		return e
	}
	e.Code, e.Data = CodeInternalError, *v
	return e
}

func (e *Error) appendTo(dst []byte) []byte {
	code := e.Code
	if code == 0 && e.whole.IsZero() { // peers have 0 as a code, and we have none
		code = CodeInternalError
	}
	if !e.whole.IsZero() {
		edits := []Edit{
			{Name: "code", Value: strconv.AppendInt(nil, int64(code), 10)},
			{Name: "data", Value: e.Data.Raw()},
		}
		if text, ok := e.whole.LookupString("message"); !ok || text != e.Message {
			edits = append(edits, Edit{Name: "message", Value: AppendString(nil, e.Message)})
		}
		return AppendEdited(dst, &e.whole, edits...)
	}
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if !e.Data.IsZero() {
		dst = append(dst, `,"data":`...)
		dst = e.Data.AppendTo(dst)
	}
	return append(dst, '}')
}

// ToWire returns err as the error of a response: an [*Error] as it is, an error
// with a method ToWire() *Error by that method, anything else as
// CodeInternalError. What a foreign error says is not told to the peer, except
// that the call was cancelled or timed out.
func ToWire(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if w, ok := errors.AsType[interface {
		error
		ToWire() *Error
	}](err); ok {
		return w.ToWire()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: CodeInternalError, Message: "Internal error: timed out"}
	case errors.Is(err, context.Canceled):
		return &Error{Code: CodeInternalError, Message: "Internal error: cancelled"}
	}
	return &Error{Code: CodeInternalError, Message: "Internal error"}
}
