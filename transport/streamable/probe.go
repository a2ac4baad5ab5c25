package streamable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
	"github.com/mcpsplice/mcpsplice/transport"
)

// connect finds out the server's era and readies it.
func (c *Conn) connect(ctx context.Context) error {
	if err := c.find(ctx); err != nil {
		return err
	}
	if e, ok := c.era.(*legacyEra); ok {
		c.start(func() { e.listen(c.ctx) })
	}
	return nil
}

func (c *Conn) find(ctx context.Context) error {
	revision := c.opts.KnownModern()
	switch {
	case revision != "":
		c.speakModern(revision, mcp.Result{})
		return nil
	case c.opts.Era == mcp.Legacy:
		return c.beLegacy(ctx)
	case c.opts.Era == mcp.Modern:
		return c.agree(ctx, c.probe(ctx, mcp.NewestModern))
	case c.opts.Prefer == mcp.Legacy:
		return c.legacyFirst(ctx)
	}
	return c.probeInTime(ctx)
}

// legacyFirst makes the handshake, and probes if the server refuses it or keeps
// no session: without one it can neither ask nor tell of changes, and may do
// better as a modern server.
func (c *Conn) legacyFirst(ctx context.Context) error {
	refused := c.beLegacy(ctx)
	if e, ok := c.era.(*legacyEra); refused == nil && ok && len(e.session) > 0 {
		return nil
	}
	if refused != nil && !isAnswer(refused) {
		return refused
	}
	v := c.probeAfter(ctx, refused)
	if v.era != mcp.Modern || v.err != nil && len(v.supported) == 0 {
		return refused
	}
	// A server may have begun a session and refused the handshake all the same.
	c.takeLeave(curtGoodbye)
	c.era = nil
	return c.agree(ctx, v)
}

// probeAfter probes a server whose handshake has ended with refused. One that can be
// used as it is need not answer.
func (c *Conn) probeAfter(ctx context.Context, refused error) verdict {
	bounded, cancel := besideSSE(ctx, refused)
	defer cancel()
	if refused == nil {
		bounded, cancel = context.WithTimeout(ctx, transport.ProbeSilence)
		defer cancel()
	}
	return c.probe(bounded, mcp.NewestModern)
}

// isAnswer reports whether a failed handshake was answered by the server itself.
func isAnswer(err error) bool {
	if jsonrpc.FromPeer(err) {
		return true
	}
	e, ok := errors.AsType[*mcp.CallError](err)
	return ok && e.Kind == mcp.BadReply && !isAuth(err)
}

// decide readies the connection for the era of an answer.
func (c *Conn) decide(ctx context.Context, v verdict) error {
	switch v.era {
	case mcp.NoEra:
		return v.err
	case mcp.Legacy:
		return orNeither(c.beLegacy(ctx), v.err)
	}
	return c.agree(ctx, v)
}

// agree has the connection speak a revision of a modern server.
func (c *Conn) agree(ctx context.Context, v verdict) error {
	if v.err != nil && len(v.supported) > 0 {
		revision, ok := mcp.PickModern(v.supported)
		if !ok {
			return session.NoCommonRevision(v.supported)
		}
		v = c.probe(ctx, revision)
	}
	if v.err != nil {
		return v.err
	}
	return c.beModern(v.result)
}

// orNeither adds to the failure of a legacy handshake why the server was not
// taken for a modern one, unless both are refused in the same words.
func orNeither(err, probe error) error {
	if err == nil || probe == nil || words(err, mcp.MethodInitialize) == words(probe, mcp.MethodDiscover) {
		return err
	}
	return fmt.Errorf("%w (before that, %v)", err, probe)
}

// words returns what an error says of a request, whatever that was.
func words(err error, method string) string { return strings.TrimPrefix(err.Error(), method+": ") }

// A verdict is what an answer to server/discover says about a server.
type verdict struct {
	era       mcp.Era
	supported []mcp.Revision
	result    mcp.Result
	err       error
}

// probe asks the server about itself as a modern client.
func (c *Conn) probe(ctx context.Context, revision mcp.Revision) verdict {
	req := &mcp.Request{
		Method: mcp.MethodDiscover,
		Meta:   mcp.Metadata{Client: c.opts.Client, Capabilities: c.opts.Capabilities},
	}
	call, err := c.calls.Start(req)
	if err != nil {
		return verdict{err: err}
	}
	defer call.End()
	e := newModernEra(c, revision)
	t, err := e.trip(call)
	if err != nil {
		return verdict{err: err}
	}
	v := verdict{}
	v.result, v.err = t.run(ctx, mcp.NoCaller{})
	status := int(t.status.Load())
	if v.judge(status); v.era == mcp.NoEra && v.err == nil {
		v.err = c.contradiction(status, v.result)
	}
	return v
}

// contradiction is the error of a reply that has a result, and a status which says
// that it has none.
func (c *Conn) contradiction(status int, result mcp.Result) error {
	return &mcp.CallError{
		Kind: mcp.BadReply, Outcome: mcp.Answered, Public: fmt.Sprintf("the server answered with HTTP status %d", status),
		Err: &StatusError{Status: status, ContentType: "application/json", Excerpt: c.origin.excerpt(result.Raw())},
	}
}

// judge sets the era. It is [transport.Judge], where the HTTP status is part of
// the answer (2026-07-28, streamable-http, Backward Compatibility).
func (v *verdict) judge(status int) {
	if status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
		return // whoever says that does not speak of this request
	}
	if e, ok := errors.AsType[*jsonrpc.Error](v.err); ok && jsonrpc.FromPeer(v.err) &&
		mcp.IsModernError(e) && e.Code != jsonrpc.CodeUnsupportedVersion {
		v.era = mcp.Modern // and our request is at fault
		return
	}
	if v.era, v.supported = transport.Judge(v.result, v.err); v.era != mcp.NoEra {
		return
	}
	e, ok := errors.AsType[*mcp.CallError](v.err)
	_, isRedirect := errors.AsType[*redirectError](v.err)
	if ok && e.Kind == mcp.BadReply && !isAuth(v.err) && !isRedirect {
		v.era = mcp.Legacy
	}
}

func (c *Conn) beModern(discover mcp.Result) error {
	supported := mcp.SupportedVersions(&discover)
	revision, ok := mcp.PickModern(supported)
	if !ok {
		return session.NoCommonRevision(supported)
	}
	c.speakModern(revision, discover)
	return nil
}

func (c *Conn) speakModern(revision mcp.Revision, discover mcp.Result) {
	c.era = newModernEra(c, revision)
	c.info = transport.ServerInfo{Era: mcp.Modern, Revision: revision, Discover: discover}
}

func (c *Conn) beLegacy(ctx context.Context) error {
	e := newLegacyEra(c)
	c.era = e // from the reply on there may be a session to be ended
	if err := e.client.Initialize(ctx); err != nil {
		return e.notBegun(err)
	}
	return c.speakLegacy(ctx, e)
}

func (c *Conn) speakLegacy(ctx context.Context, e *legacyEra) error {
	discover, err := e.client.Handle(ctx, &mcp.Request{Method: mcp.MethodDiscover}, mcp.NoCaller{})
	if err != nil {
		return err
	}
	c.info = transport.ServerInfo{Era: mcp.Legacy, Revision: e.client.Revision(), Discover: discover}
	return nil
}
