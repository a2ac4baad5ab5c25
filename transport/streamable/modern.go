package streamable

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// Headers of the transport.
const (
	versionHeader = "Mcp-Protocol-Version"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	sessionHeader = "Mcp-Session-Id"
	lastEventID   = "Last-Event-Id"
)

// errDraining is why streams end when a listener shuts down.
var errDraining = errors.New("the server is shutting down")

// modern serves a modern client's message.
func (p *post) modern() *reject {
	if p.h.opts.Era == mcp.Legacy {
		return badRequest(p.m.ID, mcp.UnsupportedRevision(mcp.Revision(p.r.Header.Get(versionHeader)), transport.Served(mcp.Legacy)))
	}
	switch p.m.Kind {
	case jsonrpc.Response:
		return badRequest(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid Request: a modern client sends no responses"))
	case jsonrpc.Notification:
		p.w.WriteHeader(http.StatusAccepted)
		return nil
	}
	req, rej := p.modernRequest()
	if rej != nil {
		return rej
	}
	x := newExchange(p.w, p.accept, p.h.opts.Tap)
	result, err := p.handleModern(req, x)
	if p.r.Context().Err() != nil {
		x.finish(http.StatusOK, nil) // the client has gone; nothing more is sent
		return nil
	}
	if err == nil && req.Method == mcp.MethodListTools {
		result = p.h.learn(result)
	}
	answer(x, transport.NewModernReply(req, p.m.ID, result, err, p.h.opts.Era))
	return nil
}

// handleModern calls the handler. Listen calls also end, gracefully, when the
// listener shuts down.
func (p *post) handleModern(req *mcp.Request, x *exchange) (mcp.Result, error) {
	ctx := p.r.Context()
	caller := &transport.ModernCaller{Out: x, Request: req, ID: p.m.ID}
	if req.Method != mcp.MethodListen {
		return p.h.handler.Handle(ctx, req, caller)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(p.h.ctx, func() { cancel(errDraining) })
	defer stop()
	result, err := p.h.handler.Handle(ctx, req, caller)
	if errors.Is(context.Cause(ctx), errDraining) {
		return mcp.Result{}, nil
	}
	return result, err
}

// answer ends an exchange with a reply.
func answer(x *exchange, reply transport.ModernReply) {
	status := http.StatusOK
	if reply.Err != nil {
		status = modernStatus(reply.Err)
	}
	// finish reports nothing that could be done anything about.
	_ = transport.WithFrame(reply.AppendTo, func(frame []byte) error {
		x.finish(status, frame)
		return nil
	})
}

// modernStatus returns the HTTP status of an error (2026-07-28,
// streamable-http, Protocol Version Header; basic, Per-request protocol
// fields).
func modernStatus(err *jsonrpc.Error) int {
	switch err.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeHeaderMismatch, jsonrpc.CodeMissingCapability, jsonrpc.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// modernRequest checks headers against the body and returns the request.
func (p *post) modernRequest() (*mcp.Request, *reject) {
	if rej := p.checkVersion(); rej != nil {
		return nil, rej
	}
	req, err := transport.ModernRequest(&p.m, p.h.opts.Era)
	if err != nil {
		status := http.StatusBadRequest
		if err.Code == jsonrpc.CodeMethodNotFound {
			status = http.StatusNotFound
		}
		return nil, &reject{status: status, err: err, id: p.m.ID}
	}
	if err := p.checkHeaders(req); err != nil {
		return nil, badRequest(p.m.ID, err)
	}
	if p.h.opts.Principal != nil {
		req.Meta.Principal = p.h.opts.Principal(p.r)
	}
	return req, nil
}

func mismatch(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeHeaderMismatch, "Header mismatch: "+format, args...)
}

// checkVersion compares the version header with the body's, whatever revision
// they name.
func (p *post) checkVersion() *reject {
	values := p.r.Header[versionHeader]
	body, inBody := p.m.Meta.LookupString(mcp.MetaProtocolVersion)
	switch {
	case len(values) == 0:
		return badRequest(p.m.ID, mismatch("MCP-Protocol-Version is missing"))
	case len(values) > 1:
		return badRequest(p.m.ID, mismatch("MCP-Protocol-Version is there %d times", len(values)))
	case inBody && body != values[0]:
		return badRequest(p.m.ID, mismatch("MCP-Protocol-Version header value %q does not match body value %q", values[0], body))
	}
	return nil
}

// checkHeaders compares the other mirrored headers with the body (2026-07-28,
// streamable-http, Server Validation).
func (p *post) checkHeaders(req *mcp.Request) *jsonrpc.Error {
	values := p.r.Header[methodHeader]
	if len(values) != 1 || values[0] != req.Method {
		return headerFault("Mcp-Method", values, req.Method)
	}
	if param, ok := mcp.NameParam(req.Method); ok {
		want, isString := req.Params.LookupString(param)
		if !isString {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %s must be a string", param)
		}
		values := p.r.Header[nameHeader]
		if len(values) != 1 {
			return headerFault("Mcp-Name", values, want)
		}
		if got, ok := mcp.DecodeHeader(values[0]); !ok || got != want {
			return headerFault("Mcp-Name", values, want)
		}
		if req.Method == mcp.MethodCallTool {
			return p.checkParams(req, want)
		}
	}
	return nil
}

func headerFault(name string, values []string, want string) *jsonrpc.Error {
	switch len(values) {
	case 0:
		return mismatch("%s is missing", name)
	case 1:
		return mismatch("%s header value %.200q does not match body value %.200q", name, values[0], want)
	}
	return mismatch("%s is there %d times", name, len(values))
}

// checkParams compares the headers that mirror parameters of a tool, as far as
// its annotations are known, and keeps those that are not known.
func (p *post) checkParams(req *mcp.Request, tool string) *jsonrpc.Error {
	known, _ := p.h.headers.Lookup(tool)
	arguments := req.Params.Get("arguments")
	for i := range known {
		want, there, err := known[i].Value(arguments)
		if err != nil {
			return mismatch("%v", err)
		}
		name := mcp.HeaderPrefix + known[i].Name
		values := p.r.Header.Values(name)
		if !there && len(values) == 0 {
			continue
		}
		if len(values) != 1 || !there {
			return headerFault(name, values, want)
		}
		got, ok := mcp.DecodeHeader(values[0])
		if !ok || !known[i].Matches(got, want) {
			return headerFault(name, values, want)
		}
	}
	req.Meta.Headers = p.unknownHeaders(known)
	return nil
}

func (p *post) unknownHeaders(known []mcp.ParamHeader) map[string]string {
	var unknown map[string]string
	for name, values := range p.r.Header {
		if !strings.HasPrefix(name, mcp.HeaderPrefix) || isKnown(known, name) {
			continue
		}
		if unknown == nil {
			unknown = make(map[string]string)
		}
		unknown[name] = values[0]
	}
	return unknown
}

func isKnown(known []mcp.ParamHeader, name string) bool {
	for _, h := range known {
		if strings.EqualFold(mcp.HeaderPrefix+h.Name, name) {
			return true
		}
	}
	return false
}

// learn takes up the header annotations of a list of tools and leaves out tools
// whose annotations no HTTP client can follow.
func (h *Handler) learn(list mcp.Result) mcp.Result {
	list, bad := h.headers.Learn(list)
	for name, err := range bad {
		h.opts.Logger.Warn("a tool is left out of the list", "name", name, "err", err)
	}
	return list
}
