package streamable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
)

// legacy serves a legacy client's message: initialize, or one of a session.
func (p *post) legacy() *reject {
	if p.h.opts.Era == mcp.Modern {
		requested, _ := p.m.Body.LookupString("protocolVersion")
		return badRequest(p.m.ID, mcp.UnsupportedRevision(mcp.Revision(requested), transport.Served(mcp.Modern)))
	}
	if mcp.MethodName(p.m.Method) == mcp.MethodInitialize && p.m.Kind == jsonrpc.Request {
		return p.initialize()
	}
	s, rej := p.h.session(p.out.r, p.m.ID)
	if rej != nil {
		return rej
	}
	p.session = s
	switch p.m.Kind {
	case jsonrpc.Response:
		if !s.Answered(&p.m) {
			p.h.opts.Logger.Debug("a response answers nothing", "id", p.m.ID.String())
		}
		p.out.empty(http.StatusAccepted)
	case jsonrpc.Notification:
		s.Notified(context.WithoutCancel(p.out.r.Context()), &p.m)
		p.out.empty(http.StatusAccepted)
	default:
		p.legacyRequest()
	}
	return nil
}

// legacyRequest serves a request of a session. A client that drops its connection
// has not cancelled (2025-11-25, transports, Sending Messages).
func (p *post) legacyRequest() {
	ctx := context.WithoutCancel(p.out.r.Context())
	if !p.accept.stream {
		x := newExchange(p.out, p.accept, sessionOutlet{p.h, p.session})
		result, err := p.h.handleLegacy(ctx, p.session, &p.m, x)
		answerLegacy(x, p.m.ID, result, err)
		return
	}
	r := newLegacyReply(ctx, p)
	go r.serve()
	r.deliver()
}

// initialize begins a session.
func (p *post) initialize() *reject {
	s, err := p.h.sessions.New(p.h.handler, session.ServerOptions{
		Fallback: p.h.opts.Fallback, Principal: p.h.principal(p.out.r), Grant: grantOf(p.out.r), Logger: p.h.opts.Logger,
		MaxTaskWait: p.h.opts.MaxTaskWait,
	})
	if err != nil {
		if errors.Is(err, mcp.ErrClosed) {
			err = errDraining
		}
		rej := unavailable("%v", err)
		rej.id = p.m.ID
		return rej
	}
	p.session = s
	p.h.addStream(s)
	s.SetOutlet(sessionOutlet{p.h, s})
	// Before there is an exchange, which may have to begin the reply.
	p.out.w.Header().Set(sessionHeader, s.ID)
	x := newExchange(p.out, p.accept, nil)
	result, err := s.Initialize(p.out.r.Context(), &p.m)
	if err != nil {
		x.withdraw(sessionHeader)
		s.End()
	}
	answerLegacy(x, p.m.ID, result, err)
	return nil
}

func (h *Handler) principal(r *http.Request) mcp.Principal {
	if h.opts.Principal == nil {
		return mcp.Principal{}
	}
	return h.opts.Principal(r)
}

// grantOf returns [mcp.Metadata.Grant] of a request. The token is a secret, and long.
func grantOf(r *http.Request) string {
	tokens := r.Header["Authorization"]
	if len(tokens) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(tokens, "\n")))
	return hex.EncodeToString(sum[:])
}

// session returns the session that a request names. It must be released.
func (h *Handler) session(r *http.Request, id jsonrpc.ID) (*session.Held, *reject) {
	values := r.Header[sessionHeader]
	if len(values) != 1 || values[0] == "" {
		return nil, badRequest(id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Bad Request: one Mcp-Session-Id header is required"))
	}
	s, ok := h.sessions.Use(values[0], h.principal(r))
	if !ok {
		rej := invalid(http.StatusNotFound, "Session not found")
		rej.id = id
		return nil, rej
	}
	// Clients of the first revision with sessions send no version.
	versions := r.Header[versionHeader]
	if len(versions) > 1 || len(versions) == 1 && mcp.Revision(versions[0]).Era() != mcp.Legacy {
		s.Release()
		return nil, badRequest(id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Bad Request: unsupported MCP-Protocol-Version %.80q", versions))
	}
	s.SetGrant(grantOf(r))
	return s, nil
}

// handleLegacy serves one request of a session.
func (h *Handler) handleLegacy(ctx context.Context, s *session.Held, m *jsonrpc.Message, out session.Outlet) (mcp.Result, error) {
	result, err := s.Handle(ctx, m, out)
	if errors.Is(err, session.ErrCancelled) {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInternalError, "Request cancelled")
	}
	if err == nil && mcp.MethodName(m.Method) == mcp.MethodListTools {
		result = h.learn(result)
	}
	return result, err
}

// answerLegacy ends an exchange; legacy errors have the status 200.
func answerLegacy(x *exchange, id jsonrpc.ID, result mcp.Result, err error) {
	// finish reports nothing that could be done anything about.
	_ = transport.WithFrame(func(dst []byte) []byte {
		return appendReply(dst, id, result, err)
	}, func(frame []byte) error {
		x.finish(http.StatusOK, frame)
		return nil
	})
}

func appendReply(dst []byte, id jsonrpc.ID, result mcp.Result, err error) []byte {
	if err != nil {
		return jsonrpc.AppendError(dst, id, jsonrpc.ToWire(err))
	}
	return jsonrpc.AppendResult(dst, id, &result.Value)
}

// delete ends a session, and with it its stream.
func (h *Handler) delete(out *output) *reject {
	if h.sessionless() || out.r.Header.Get(sessionHeader) == "" {
		return h.sessionsOnly(out.r)
	}
	s, rej := h.session(out.r, jsonrpc.ID{})
	if rej != nil {
		return rej
	}
	defer s.Release()
	s.End()
	out.empty(http.StatusNoContent)
	return nil
}
