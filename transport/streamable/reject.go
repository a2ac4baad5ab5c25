package streamable

import (
	"net/http"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// A reject is why an HTTP request is not served: a status and an error.
type reject struct {
	status int
	err    *jsonrpc.Error
	id     jsonrpc.ID // of the request, if it was readable
	null   bool       // an absent id is written as null, as JSON-RPC has it
	allow  string     // the header Allow, with 405
	later  bool       // the same request may be served in a second
}

func badRequest(id jsonrpc.ID, err *jsonrpc.Error) *reject {
	return &reject{status: http.StatusBadRequest, err: err, id: id}
}

func invalid(status int, format string, args ...any) *reject {
	return &reject{status: status, err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...)}
}

func notAllowed(methods string) *reject {
	rej := invalid(http.StatusMethodNotAllowed, "Method Not Allowed: use %s", methods)
	rej.allow = methods
	return rej
}

func forbidden(format string, args ...any) *reject {
	return invalid(http.StatusForbidden, "Forbidden: "+format, args...)
}

// unavailable says that a limit is reached that may not be in a second.
func unavailable(format string, args ...any) *reject {
	return &reject{
		status: http.StatusServiceUnavailable, later: true,
		err: jsonrpc.Errorf(jsonrpc.CodeInternalError, "Service Unavailable: "+format, args...),
	}
}

// body returns the reject as a JSON-RPC error.
func (j *reject) body(plain bool) []byte {
	if j.id.IsZero() && (j.null || plain) {
		return jsonrpc.AppendNullError(nil, j.err)
	}
	return jsonrpc.AppendError(nil, j.id, j.err)
}
