package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

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
		if revision := c.opts.KnownModern(); revision != "" {
			c.speakModern(revision, mcp.Result{})
			return nil
		}
		result, err := c.discover(ctx)
		if err != nil {
			return err
		}
		return c.beModern(result)
	}
	if c.opts.Prefer == mcp.Legacy {
		return c.legacyFirst(ctx)
	}
	err := c.probe(ctx)
	if err != nil && c.Err() != nil {
		// At server/discover or at the initialize that came after it.
		return fmt.Errorf("%w: %w", ErrProbeEnded, err)
	}
	return err
}

// legacyFirst makes the handshake, and probes only if the server refuses it.
func (c *Conn) legacyFirst(ctx context.Context) error {
	refused := c.initialize(ctx)
	if refused == nil || !jsonrpc.FromPeer(refused) {
		return refused
	}
	result, err := c.discover(ctx)
	era, supported := Judge(result, err)
	if era != mcp.Modern {
		return refused
	}
	return c.decide(ctx, verdict{era, result, supported, err})
}

// A verdict is what an answer to server/discover says about a server's era.
type verdict struct {
	era       mcp.Era
	result    mcp.Result
	supported []mcp.Revision
	err       error // the answer, if it was an error
}

// Judge returns the era that an answer to server/discover shows, and the
// revisions that it names. An error that is no answer at all shows nothing
// (2026-07-28, stdio, Backward Compatibility).
func Judge(result mcp.Result, err error) (era mcp.Era, supported []mcp.Revision) {
	if err != nil {
		e, ok := errors.AsType[*jsonrpc.Error](err)
		switch {
		case !ok || !jsonrpc.FromPeer(err):
			return mcp.NoEra, nil
		case !mcp.IsModernError(e):
			return mcp.Legacy, nil
		case e.Code != jsonrpc.CodeUnsupportedVersion:
			return mcp.Modern, nil // whatever it supports
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
	probing, stop := context.WithCancel(ctx)
	defer stop()
	c.start(func() {
		result, err := c.discover(probing)
		era, supported := Judge(result, err)
		verdicts <- verdict{era, result, supported, err}
	})
	silence := time.NewTimer(ProbeSilence)
	defer silence.Stop()
	select {
	case v := <-verdicts:
		return c.decide(ctx, v)
	case <-silence.C:
		return c.race(ctx, verdicts)
	}
}

// race sends initialize while server/discover is still unanswered.
func (c *Conn) race(ctx context.Context, verdicts <-chan verdict) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	client := c.newClient()
	handshake := make(chan error, 1)
	c.start(func() {
		result, err := client.Begin(waiting)
		if err == nil {
			err = client.Initialized(ctx, result)
		}
		handshake <- err
	})
	select {
	case v := <-verdicts:
		if v.era != mcp.Modern {
			break
		}
		// Unless initialize has been answered as well, before.
		stop()
		if err := <-handshake; err != nil {
			return c.decide(ctx, v)
		}
		return c.beLegacy(client, nil)
	case err := <-handshake:
		if v := awaitVerdict(ctx, verdicts, err); v.era == mcp.Modern {
			return c.decide(ctx, v)
		}
		return c.beLegacy(client, err)
	}
	return c.beLegacy(client, <-handshake)
}

// awaitVerdict waits for the answer to server/discover of a server that has refused
// initialize: a modern one may only be slow. It has as long again, or as ctx if the
// refusal is that of a modern server.
func awaitVerdict(ctx context.Context, verdicts <-chan verdict, refused error) verdict {
	if !jsonrpc.FromPeer(refused) {
		return verdict{}
	}
	if e, ok := errors.AsType[*jsonrpc.Error](refused); !ok || !mcp.IsModernError(e) {
		bounded, cancel := context.WithTimeout(ctx, ProbeSilence)
		defer cancel()
		ctx = bounded
	}
	select {
	case v := <-verdicts:
		return v
	case <-ctx.Done():
		return verdict{}
	}
}

// decide readies the connection for the era of an answer.
func (c *Conn) decide(ctx context.Context, v verdict) error {
	switch {
	case v.era == mcp.NoEra:
		return v.err
	case v.era == mcp.Legacy:
		return c.initialize(ctx)
	case v.err == nil:
		return c.beModern(v.result)
	case len(v.supported) == 0:
		return v.err // modern, and not content with what it was sent
	}
	revision, ok := mcp.PickModern(v.supported)
	if !ok {
		return session.NoCommonRevision(v.supported)
	}
	result, err := c.discoverAs(ctx, revision)
	if err != nil {
		return err
	}
	return c.beModern(result)
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
	return c.Call(ctx, call, &params, mcp.NoCaller{})
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
	c.settle(&modern{conn: c, revision: revision, stamp: mcp.NewStamp(revision), calls: &c.calls},
		ServerInfo{Era: mcp.Modern, Revision: revision, Discover: discover})
}

func (c *Conn) newClient() *session.Client {
	client := session.NewClient(c, &c.calls, session.ClientOptions{
		Info: c.opts.Client, Capabilities: c.opts.Capabilities, Logger: c.opts.Logger,
		MaxTaskWait: c.opts.MaxCall,
	})
	c.client.Store(client)
	return client
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
	c.batches.Store(client.Revision().HasBatches())
	c.settle(client, ServerInfo{Era: mcp.Legacy, Revision: client.Revision(), Discover: discover})
	return err
}

var _ session.Wire = (*Conn)(nil)
