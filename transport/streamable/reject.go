package streamable

import (
	"net/http"
	"strconv"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// A reject is why an HTTP request is not served: a status and an error.
type reject struct {
	status int
	err    *jsonrpc.Error
	id     jsonrpc.ID // of the request, if it was readable
	null   bool       // an absent id is written as null
	allow  string     // the header Allow, with 405
	close  bool       // the rest of the body is not worth reading
}

func badRequest(id jsonrpc.ID, err *jsonrpc.Error) *reject {
	return &reject{status: http.StatusBadRequest, err: err, id: id}
}

// write answers with the reject.
func (j *reject) write(w http.ResponseWriter) {
	body := jsonrpc.AppendError(nil, j.id, j.err)
	if j.null && j.id.IsZero() {
		body = jsonrpc.AppendNullError(nil, j.err)
	}
	h := w.Header()
	if j.allow != "" {
		h.Set("Allow", j.allow)
	}
	if j.close {
		h.Set("Connection", "close")
	}
	writeJSON(w, j.status, body)
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	h["X-Content-Type-Options"] = nosniff
	w.WriteHeader(status)
	// A client that has gone needs no telling.
	_, _ = w.Write(body)
}

var (
	jsonType = []string{"application/json"}
	nosniff  = []string{"nosniff"}
)
