package streamable

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// errDraining is why streams end when a listener shuts down.
var errDraining = errors.New("the server is shutting down")

// modern serves a modern client's message.
func (p *post) modern() *reject {
	if p.h.opts.Era == mcp.Legacy {
		return badRequest(p.m.ID, mcp.UnsupportedRevision(p.revision(), transport.Served(mcp.Legacy)))
	}
	switch p.m.Kind {
	case jsonrpc.Response:
		return badRequest(jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid Request: a modern client sends no responses"))
	case jsonrpc.Notification:
		// The revision defines none over HTTP.
		p.out.empty(http.StatusAccepted)
		return nil
	}
	req, rej := p.modernRequest()
	if rej != nil {
		return rej
	}
	x := newExchange(p.out, p.accept, nil)
	if req.Method == mcp.MethodListen && p.h.subscriber != nil {
		p.subscribe(req, x)
		return nil
	}
	result, err := p.handleModern(req, x)
	if err == nil && req.Method == mcp.MethodListTools {
		result = p.h.learn(result)
	}
	answer(x, transport.NewModernReply(req, p.m.ID, result, err, p.h.opts.Era))
	return nil
}

// revision returns the revision that a message names.
func (p *post) revision() mcp.Revision {
	if text, ok := p.m.Meta.LookupString(mcp.MetaProtocolVersion); ok {
		return mcp.Revision(text)
	}
	return mcp.Revision(p.out.r.Header.Get(versionHeader))
}

// handleModern calls the handler. Listen calls also end, gracefully, when the
// listener shuts down.
func (p *post) handleModern(req *mcp.Request, x *exchange) (mcp.Result, error) {
	ctx := p.out.r.Context()
	caller := &transport.ModernCaller{Out: x, Request: req, ID: p.m.ID}
	if req.Method != mcp.MethodListen {
		result, err := p.h.lot.Handle(ctx, req, caller)
		p.kept = caller.Kept()
		return result, err
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

// answer ends an exchange with a handler's outcome.
func answer(x *exchange, reply transport.ModernReply) {
	// finish reports nothing that could be done anything about.
	_ = transport.WithFrame(reply.AppendTo, func(frame []byte) error {
		x.finish(modernStatus(reply.Err), frame)
		return nil
	})
}

// modernStatus returns the HTTP status of an error, nil for none (2026-07-28,
// streamable-http, Protocol Version Header; basic, Per-request protocol
// fields).
func modernStatus(err *jsonrpc.Error) int {
	if err == nil {
		return http.StatusOK
	}
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
	if err := p.checkVersion(); err != nil {
		return nil, badRequest(p.m.ID, err)
	}
	req, err := transport.ModernRequest(&p.m, p.h.opts.Era)
	if err != nil {
		rej := badRequest(p.m.ID, err)
		if err.Code == jsonrpc.CodeMethodNotFound {
			rej.status = http.StatusNotFound
		}
		return nil, rej
	}
	if err := p.checkHeaders(req); err != nil {
		return nil, badRequest(p.m.ID, err)
	}
	if req.Method == mcp.MethodListen && !p.accept.stream {
		rej := invalid(http.StatusNotAcceptable, "Not Acceptable: %s is answered by an event stream", req.Method)
		rej.id = p.m.ID
		return nil, rej
	}
	req.Meta.Grant = grantOf(p.out.r)
	if p.h.opts.Principal != nil {
		req.Meta.Principal = p.h.opts.Principal(p.out.r)
	}
	return req, nil
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
