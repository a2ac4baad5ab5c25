package streamable

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A modernEra speaks to a modern server: each request is a POST of its own.
type modernEra struct {
	conn     *Conn
	revision mcp.Revision
}

// Handle implements [mcp.Handler]. A call that the server refuses because of its
// headers, which proves that it was not executed, is made once more after
// looking at the list of tools.
func (e *modernEra) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Notification {
		return mcp.Result{}, nil // modern MCP over HTTP has none from a client
	}
	if mcp.IsLegacyOnly(req.Method) {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	if req.Method == mcp.MethodCallTool {
		e.knowTool(ctx, req)
	}
	result, err := e.call(ctx, req, caller)
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code == jsonrpc.CodeHeaderMismatch &&
		req.Method == mcp.MethodCallTool && jsonrpc.FromPeer(err) {
		if lerr := e.listTools(ctx, req); lerr != nil {
			return mcp.Result{}, err
		}
		return e.call(ctx, req, caller)
	}
	return result, err
}

// knowTool makes the header annotations of a tool known.
func (e *modernEra) knowTool(ctx context.Context, req *mcp.Request) {
	name, _ := req.Params.LookupString("name")
	if _, known := e.conn.headers.Lookup(name); known {
		return
	}
	if err := e.listTools(ctx, req); err != nil {
		e.conn.log.Debug("listing tools for their headers", "err", err)
	}
}

// maxPages bounds listing for header annotations.
const maxPages = 100

// listTools lists all tools for their header annotations.
func (e *modernEra) listTools(ctx context.Context, like *mcp.Request) error {
	var params jsonrpc.Value
	for range maxPages {
		list := &mcp.Request{Method: mcp.MethodListTools, Params: params, Meta: like.Meta}
		list.Meta.Revision, list.Meta.ProgressToken, list.Meta.Headers = "", jsonrpc.ID{}, nil
		result, err := e.call(ctx, list, mcp.NoCaller{})
		if err != nil {
			return err
		}
		e.conn.learn(result)
		cursor, ok := result.Lookup("nextCursor")
		if !ok || string(cursor) == "null" {
			return nil
		}
		params = jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "cursor", Value: cursor})
	}
	return nil
}

func (e *modernEra) call(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	call, err := e.conn.calls.Start(req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	params := mcp.ForModern(req, e.revision, req.Meta.ProgressToken)
	if req.Method == mcp.MethodListen {
		params = mcp.WithoutSession(&params)
	}
	header, err := e.headers(req, &params)
	if err != nil {
		return mcp.Result{}, err
	}
	size := len(params.Raw()) + 96
	body := jsonrpc.AppendRequest(make([]byte, 0, size), jsonrpc.IntID(call.ID), req.Method, &params)
	return e.conn.roundTrip(ctx, call, req.Method, body, header, caller)
}

// headers returns the headers that mirror a request (2026-07-28,
// streamable-http, Request Metadata).
func (e *modernEra) headers(req *mcp.Request, params *jsonrpc.Value) (http.Header, error) {
	header := make(http.Header, 8)
	e.prepare(header)
	header[methodHeader] = []string{req.Method}
	if param, ok := mcp.NameParam(req.Method); ok {
		name, _ := params.LookupString(param)
		header[nameHeader] = []string{mcp.EncodeHeader(name)}
	}
	if req.Method != mcp.MethodCallTool {
		return header, nil
	}
	for name, value := range req.Meta.Headers {
		header.Set(name, value)
	}
	name, _ := params.LookupString("name")
	known, _ := e.conn.headers.Lookup(name)
	mirrored, err := mcp.Mirror(known, params)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	for name, value := range mirrored {
		header.Set(name, value)
	}
	return header, nil
}

func (e *modernEra) prepare(header http.Header) {
	header["Content-Type"] = jsonType
	header["Accept"] = []string{usualAccept}
	header[versionHeader] = []string{string(e.revision)}
}

// notified gives a notification to the call on whose stream it came.
func (e *modernEra) notified(m *jsonrpc.Message, call *inflight.Call) {
	call.Notify(&mcp.Notification{Method: mcp.MethodName(m.Method), Params: m.Body})
}

// asked refuses: a modern server must not ask.
func (e *modernEra) asked(_ context.Context, m *jsonrpc.Message, _ *inflight.Call) {
	e.conn.log.Warn("a modern server sent a request", "method", string(m.Method))
}

// cancel does nothing: the stream has been closed.
func (e *modernEra) cancel(context.Context, *inflight.Call) {}

func (e *modernEra) lost() bool { return false }

func (e *modernEra) resumable() bool { return false }

func (e *modernEra) end(context.Context) {}

// A bareEra sends single requests to a server of which nothing is known.
type bareEra struct {
	conn *Conn
}

// Handle implements [mcp.Handler].
func (e *bareEra) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	call, err := e.conn.calls.Start(req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	header := make(http.Header, 4)
	e.prepare(header)
	body := jsonrpc.AppendRequest(nil, jsonrpc.IntID(call.ID), req.Method, &req.Params)
	return e.conn.roundTrip(ctx, call, req.Method, body, header, caller)
}

func (e *bareEra) prepare(header http.Header) {
	header["Content-Type"] = jsonType
	header["Accept"] = []string{usualAccept}
}

func (e *bareEra) notified(m *jsonrpc.Message, call *inflight.Call) {
	call.Notify(&mcp.Notification{Method: mcp.MethodName(m.Method), Params: m.Body})
}

func (e *bareEra) asked(_ context.Context, m *jsonrpc.Message, _ *inflight.Call) {
	e.conn.log.Warn("the server asked something outside a session", "method", string(m.Method))
}

func (e *bareEra) cancel(context.Context, *inflight.Call) {}

func (e *bareEra) lost() bool { return false }

func (e *bareEra) resumable() bool { return false }

func (e *bareEra) end(context.Context) {}
