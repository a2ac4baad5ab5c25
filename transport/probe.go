package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// connect finds out the server's era, if it is not given, and readies it.
func (c *Conn) connect(ctx context.Context) error {
	switch c.opts.Era {
	case mcp.Legacy:
		return c.initialize(ctx)
	case mcp.Modern:
		result, err := c.discover(ctx)
		if err != nil {
			return err
		}
		return c.beModern(result)
	}
	return c.probe(ctx)
}

// A verdict is what an answer to server/discover says about a server's era.
type verdict struct {
	era       mcp.Era
	result    mcp.Result
	supported []mcp.Revision
}

// Judge returns the era that an answer to server/discover shows. An error that
// is no answer at all shows nothing (2026-07-28, stdio, Backward Compatibility).
func Judge(result mcp.Result, err error) (era mcp.Era, supported []mcp.Revision) {
	if err != nil {
		e, ok := errors.AsType[*jsonrpc.Error](err)
		switch {
		case !ok || !jsonrpc.FromPeer(err):
			return mcp.NoEra, nil
		case !mcp.IsModernError(e):
			return mcp.Legacy, nil
		}
		supported = mcp.SupportedIn(e)
	} else {
		if capabilities := result.Get("capabilities"); !capabilities.IsObject() || result.Type() != mcp.Complete {
			return mcp.Legacy, nil
		}
		supported = mcp.SupportedVersions(&result)
	}
	if _, ok := mcp.PickModern(supported); ok {
		return mcp.Modern, supported
	}
	if _, ok := mcp.PickLegacy(supported); ok || len(supported) == 0 {
		return mcp.Legacy, supported
	}
	return mcp.Modern, supported // modern, and no revision in common
}

// probe sends server/discover and, after ProbeSilence, initialize as well on the
// same link; the first usable answer decides.
func (c *Conn) probe(ctx context.Context) error {
	verdicts := make(chan verdict, 1)
	failures := make(chan error, 1)
	probing, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		result, err := c.discover(probing)
		era, supported := Judge(result, err)
		if era == mcp.NoEra {
			failures <- err
			return
		}
		verdicts <- verdict{era, result, supported}
	}()
	select {
	case v := <-verdicts:
		return c.settle(ctx, v)
	case err := <-failures:
		if c.Err() != nil {
			return fmt.Errorf("%w: %w", ErrProbeEnded, err)
		}
		return err
	case <-time.After(ProbeSilence):
		return c.race(ctx, verdicts)
	}
}

// race sends initialize while server/discover is still unanswered.
func (c *Conn) race(ctx context.Context, verdicts <-chan verdict) error {
	legacy := make(chan error, 1)
	handshake, stop := context.WithCancel(ctx)
	defer stop()
	client := c.newClient()
	go func() { legacy <- client.Initialize(handshake) }()
	select {
	case v := <-verdicts:
		if v.era == mcp.Modern {
			stop()
			<-legacy
			return c.settle(ctx, v)
		}
	case err := <-legacy:
		return c.beLegacy(client, err)
	}
	return c.beLegacy(client, <-legacy)
}

func (c *Conn) settle(ctx context.Context, v verdict) error {
	if v.era == mcp.Legacy {
		return c.initialize(ctx)
	}
	if v.result.IsZero() {
		revision, ok := mcp.PickModern(v.supported)
		if !ok {
			return fmt.Errorf("%w: the server supports %v", session.ErrRevision, v.supported)
		}
		result, err := c.discoverAs(ctx, revision)
		if err != nil {
			return err
		}
		v.result = result
	}
	return c.beModern(v.result)
}

// discover asks the server about itself in the newest modern revision.
func (c *Conn) discover(ctx context.Context) (mcp.Result, error) {
	return c.discoverAs(ctx, mcp.NewestModern)
}

func (c *Conn) discoverAs(ctx context.Context, revision mcp.Revision) (mcp.Result, error) {
	req := &mcp.Request{
		Method: mcp.MethodDiscover,
		Meta:   mcp.Metadata{Client: c.opts.Client, Capabilities: c.opts.Capabilities},
	}
	call, err := c.calls.StartOwn(req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	params := mcp.ForModern(req, revision, jsonrpc.ID{})
	return c.Call(ctx, call, req.Method, &params, mcp.NoCaller{})
}

func (c *Conn) beModern(discover mcp.Result) error {
	revision, ok := mcp.PickModern(mcp.SupportedVersions(&discover))
	if !ok {
		return fmt.Errorf("%w: the server supports %v", session.ErrRevision, mcp.SupportedVersions(&discover))
	}
	c.info = ServerInfo{Era: mcp.Modern, Revision: revision, Discover: discover}
	c.early.settle(c, &modern{conn: c, revision: revision, calls: &c.calls})
	return nil
}

func (c *Conn) newClient() *session.Client {
	return session.NewClient(c, &c.calls, session.ClientOptions{
		Info: c.opts.Client, Capabilities: c.opts.Capabilities, Logger: c.opts.Logger,
	})
}

func (c *Conn) initialize(ctx context.Context) error {
	client := c.newClient()
	return c.beLegacy(client, client.Initialize(ctx))
}

func (c *Conn) beLegacy(client *session.Client, err error) error {
	if err != nil {
		return err
	}
	discover, err := client.Handle(context.Background(), &mcp.Request{Method: mcp.MethodDiscover}, mcp.NoCaller{})
	c.info = ServerInfo{Era: mcp.Legacy, Revision: client.Revision(), Discover: discover}
	c.batches.Store(client.Revision().HasBatches())
	c.early.settle(c, client)
	return err
}

var _ session.Wire = (*Conn)(nil)

// A modern speaks to a modern server over a byte stream.
type modern struct {
	conn     *Conn
	revision mcp.Revision
	calls    *inflight.Calls
}

// Handle implements [mcp.Handler].
func (s *modern) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if mcp.IsLegacyOnly(req.Method) {
		if req.Notification {
			return mcp.Result{}, nil
		}
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	if req.Notification {
		params := mcp.ForModern(req, s.revision, jsonrpc.ID{})
		return mcp.Result{}, s.conn.Notify(ctx, req.Method, &params)
	}
	call, err := s.calls.Start(req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	var token jsonrpc.ID
	if !req.Meta.ProgressToken.IsZero() {
		token = jsonrpc.IntID(call.ID)
	}
	params := mcp.ForModern(req, s.revision, token)
	if req.Method == mcp.MethodListen {
		params = mcp.WithoutSession(&params)
	}
	return s.conn.Call(ctx, call, req.Method, &params, caller)
}

// Notified implements era.
func (s *modern) Notified(m *jsonrpc.Message, _ *inflight.Call) {
	n := &mcp.Notification{Method: mcp.MethodName(m.Method), Params: m.Body}
	if id := mcp.SubscriptionID(&n.Params); !id.IsZero() {
		if call := s.calls.ByToken(id); call != nil && call.Request.Method == mcp.MethodListen {
			call.Notify(n)
		}
		return
	}
	switch n.Method {
	case mcp.NotificationProgress:
		call := s.calls.ByToken(mcp.ProgressToken(&n.Params))
		if call == nil || call.Request.Meta.ProgressToken.IsZero() {
			return
		}
		n.Params = mcp.WithProgressToken(&n.Params, call.Request.Meta.ProgressToken)
		call.Notify(n)
	case mcp.NotificationCancelled:
		s.tornDown(n)
	default:
		s.related(n)
	}
}

// related gives a notification that names no request to the call that it must
// belong to, or to nobody if that is not certain.
func (s *modern) related(n *mcp.Notification) {
	text, _ := n.Params.LookupString("level")
	owner, _ := s.calls.Owner(func(req *mcp.Request) bool {
		return n.Method != mcp.NotificationMessage || req.Meta.LogLevel.Includes(mcp.Level(text))
	})
	if owner != nil {
		owner.Notify(n)
	}
}

// tornDown ends a listen call that the server has ended.
func (s *modern) tornDown(n *mcp.Notification) {
	raw, _ := n.Params.Lookup("requestId")
	id, ok := jsonrpc.RawID(raw)
	if !ok {
		return
	}
	if call := s.calls.ByToken(id); call != nil && call.Request.Method == mcp.MethodListen {
		call.Finish(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.Answered, Public: "the server ended the subscription"})
	}
}

// Asked implements era: a modern server must not ask.
func (s *modern) Asked(ctx context.Context, m *jsonrpc.Message, _ *inflight.Call) {
	s.conn.log.Warn("a modern server sent a request", "method", string(m.Method))
	var err error = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	if mcp.MethodName(m.Method) == mcp.MethodPing {
		err = nil
	}
	if err := s.conn.Reply(ctx, m.ID, mcp.Result{}, err); err != nil {
		s.conn.log.Debug("an answer did not reach the server", "err", err)
	}
}
