package server

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime/debug"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Handle implements [mcp.Handler].
func (s *Server) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (result mcp.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = mcp.Result{}, s.panicked(req, r)
		}
	}()
	if req.Notification && isOwn(req.Method) {
		return mcp.Result{}, nil // a request without an id is none, and nothing is done for it
	}
	if !s.has(req.Method) {
		return mcp.Result{}, noMethod(req)
	}
	result, err = s.answer(ctx, req, caller)
	if err != nil {
		return mcp.Result{}, s.failed(ctx, req, err)
	}
	return result, nil
}

func (s *Server) answer(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return s.discover(req)
	case mcp.MethodListen:
		return s.listen(ctx, req, caller)
	case mcp.MethodListTools:
		return list(s, &s.tools, req)
	case mcp.MethodListResources:
		return list(s, &s.resources, req)
	case mcp.MethodListResourceTemplates:
		return list(s, &s.templates, req)
	case mcp.MethodListPrompts:
		return list(s, &s.prompts, req)
	}
	c := &Call{ctx: ctx, server: s, req: req, caller: caller}
	defer c.over.Store(true)
	switch req.Method {
	case mcp.MethodCallTool:
		return s.callTool(ctx, c)
	case mcp.MethodReadResource:
		return s.readResource(ctx, c)
	case mcp.MethodGetPrompt:
		return s.getPrompt(ctx, c)
	case mcp.MethodComplete:
		return s.complete(ctx, c)
	}
	return s.custom(ctx, c)
}

// custom answers a request, or takes a notification, that is not the protocol's
// own.
func (s *Server) custom(ctx context.Context, c *Call) (mcp.Result, error) {
	f := s.method(c.req.Method)
	switch {
	case f == nil && c.req.Notification:
		return mcp.Result{}, nil
	case f == nil:
		return mcp.Result{}, noMethod(c.req)
	}
	result, err := f(ctx, c)
	if err != nil {
		return mcp.Result{}, err
	}
	return c.finishRaw(result), nil
}

// isOwn reports whether a method of a client is the protocol's own.
func isOwn(method string) bool {
	switch method {
	case mcp.MethodDiscover, mcp.MethodListen, mcp.MethodListTools, mcp.MethodCallTool,
		mcp.MethodListResources, mcp.MethodListResourceTemplates, mcp.MethodReadResource,
		mcp.MethodListPrompts, mcp.MethodGetPrompt, mcp.MethodComplete,
		mcp.MethodInitialize, mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe,
		mcp.NotificationInitialized, mcp.NotificationCancelled:
		return true
	}
	return false
}

// has reports whether the server declares the capability that a method needs.
func (s *Server) has(method string) bool {
	switch method {
	case mcp.MethodListTools, mcp.MethodCallTool:
		return s.opts.Capabilities.Tools != nil || s.tools.used()
	case mcp.MethodListPrompts, mcp.MethodGetPrompt:
		return s.opts.Capabilities.Prompts != nil || s.prompts.used()
	case mcp.MethodListResources, mcp.MethodListResourceTemplates, mcp.MethodReadResource:
		return s.opts.Capabilities.Resources != nil || s.resources.used() || s.templates.used()
	case mcp.MethodComplete:
		return s.opts.Capabilities.Completions != nil || s.completes()
	}
	return true
}

func noMethod(req *mcp.Request) error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %.100s", req.Method)
}

// An incident is a failure of which the client is told no more than a number,
// under which the log says the rest.
type incident struct {
	number string
	err    error
}

func (i *incident) Error() string { return i.err.Error() }

func (i *incident) Unwrap() error { return i.err }

// ToWire returns the error as a peer is told it.
func (i *incident) ToWire() *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error (incident %s)", i.number)
}

// newIncident returns a new incident. Its number needs to be found in a log, not
// to be secret.
func newIncident(err error) *incident { return &incident{rand.Text()[:8], err} }

// failed returns the error of a request as it is answered. What the client is not
// told is logged.
func (s *Server) failed(ctx context.Context, req *mcp.Request, err error) error {
	_, wire := errors.AsType[interface {
		error
		ToWire() *jsonrpc.Error
	}](err)
	if _, told := errors.AsType[*jsonrpc.Error](err); told || wire || ctx.Err() != nil {
		return err
	}
	i := newIncident(err)
	s.opts.Logger.Warn("a request failed", "method", req.Method, "id", req.ID.String(), "incident", i.number, "err", err)
	return i
}

// errPanicked is the error of a request whose function has panicked.
var errPanicked = errors.New("the handler panicked")

// panicked turns a panic of a feature's function into the error of its one
// request.
func (s *Server) panicked(req *mcp.Request, reason any) error {
	i := newIncident(errPanicked)
	s.opts.Logger.Error("a handler panicked", "method", req.Method, "id", req.ID.String(), "incident", i.number,
		"err", reason, "stack", string(debug.Stack()))
	return i
}
