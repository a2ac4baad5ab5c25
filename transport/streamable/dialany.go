package streamable

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A Binding is a way to speak MCP over HTTP.
type Binding string

// The bindings.
const (
	AnyBinding     Binding = ""     // it is found out
	StreamableHTTP Binding = "http" // since revision 2025-03-26
	HTTPWithSSE    Binding = "sse"  // of revision 2024-11-05
)

// DialAny connects to the server at an http or https URL by the binding that opts
// names. If it names none, Streamable HTTP is tried, in the era of opts or both,
// and then HTTP with SSE: if initialize was refused with the status 400, 404 or
// 405 and no error that shows a modern server, or answered by an endpoint event
// (2026-07-28, streamable-http, HTTP+SSE Transport). What the URL looks like says
// nothing. If all fails the error tells of each attempt.
func DialAny(ctx context.Context, address string, opts *DialOptions) (transport.Edge, error) {
	o := opts.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, o.HandshakeTimeout)
	defer cancel()
	if o.Binding == HTTPWithSSE {
		return asEdge(DialSSE(ctx, address, &o))
	}
	edge, err := asEdge(Dial(ctx, address, &o))
	if refused, ok := errors.AsType[*refusedError](err); !ok || o.Binding != AnyBinding || !refused.hintsAtSSE() {
		return edge, err
	}
	edge, sseErr := asEdge(DialSSE(ctx, address, &o))
	if sseErr != nil {
		return nil, fmt.Errorf("%w; %w", err, sseErr)
	}
	o.Logger.Debug("the server speaks HTTP with SSE", "err", err)
	return edge, nil
}

// asEdge keeps a nil pointer from becoming an Edge that is not nil.
func asEdge[E transport.Edge](e E, err error) (transport.Edge, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}

// A refusedError is the failure of a handshake, with the HTTP status of the reply
// to initialize; 0 if there was none.
type refusedError struct {
	status int
	err    error
}

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// hintsAtSSE reports whether a server of HTTP with SSE would have replied so.
func (e *refusedError) hintsAtSSE() bool {
	if refusal, ok := errors.AsType[*jsonrpc.Error](e.err); ok && mcp.IsModernError(refusal) {
		return false
	}
	switch e.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return errors.Is(e.err, errEndpointEvent)
}

// errEndpointEvent says that a server opens a stream of HTTP with SSE at a POST.
var errEndpointEvent = errors.New("the reply is a stream of HTTP with SSE")
