package streamable

import (
	"context"
	"errors"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A handshake is an initialize that is sent beside a probe which is not answered.
type handshake struct {
	// Set at construction.
	era      *legacyEra
	hangup   context.CancelCauseFunc
	unhook   func() bool   // from the dialing's context
	answered chan struct{} // closed when result and err are set

	result mcp.Result
	err    error
}

// probeInTime sends server/discover and, after ProbeSilence, initialize beside it; the
// first usable answer decides.
func (c *Conn) probeInTime(ctx context.Context) error {
	probing, stop := context.WithCancel(ctx)
	defer stop()
	verdicts := make(chan verdict, 1)
	c.start(func() { verdicts <- c.probe(probing, mcp.NewestModern) })
	silence := time.NewTimer(transport.ProbeSilence)
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
	h := c.beginBeside(ctx)
	var v verdict
	select {
	case v = <-verdicts:
		verdicts = nil
		switch {
		case v.era == mcp.Modern && !h.succeeded():
			c.abandon(ctx, h)
			return c.agree(ctx, v)
		case v.isFinal():
			h.hangup(v.err)
			<-h.answered
			c.era = h.era
			return v.err
		}
		<-h.answered
	case <-h.answered:
	}
	refused := c.finish(ctx, h)
	if refused == nil {
		return nil
	}
	if verdicts != nil {
		v = awaitVerdict(ctx, verdicts, refused)
	}
	if v.era == mcp.Modern {
		c.abandon(ctx, h)
		return c.agree(ctx, v)
	}
	c.era = h.era // there may be a session to be ended
	if v.era == mcp.NoEra && isAnswer(v.err) && !isAnswer(refused) && !isAuth(refused) {
		return v.err
	}
	return orNeither(refused, v.err)
}

// beginBeside sends initialize. Its reply is waited for as long as ctx, until that is
// unhooked.
func (c *Conn) beginBeside(ctx context.Context) *handshake {
	h := &handshake{era: newLegacyEra(c), answered: make(chan struct{})}
	waiting, hangup := context.WithCancelCause(context.WithoutCancel(ctx))
	h.hangup = hangup
	h.unhook = context.AfterFunc(ctx, func() { hangup(context.Cause(ctx)) })
	c.start(func() {
		defer close(h.answered)
		h.result, h.err = h.era.client.Begin(waiting)
	})
	return h
}

// succeeded reports whether initialize has been answered with a result.
func (h *handshake) succeeded() bool {
	select {
	case <-h.answered:
		return h.err == nil
	default:
		return false
	}
}

// finish ends a handshake whose initialize was answered.
func (c *Conn) finish(ctx context.Context, h *handshake) error {
	defer h.unhook()
	err := h.err
	if err == nil {
		err = h.era.client.Initialized(ctx, h.result)
	}
	if err != nil {
		return h.era.notBegun(err)
	}
	h.hangup(nil)
	c.era = h.era
	return c.speakLegacy(ctx, h.era)
}

// isFinal reports whether a probe that ended without a verdict leaves nothing to be
// hoped for from initialize.
func (v *verdict) isFinal() bool {
	failed, ok := errors.AsType[*mcp.CallError](v.err)
	return v.era == mcp.NoEra && (isAuth(v.err) || ok && failed.Kind == mcp.Unreachable)
}

func isAuth(err error) bool {
	_, ok := errors.AsType[*AuthError](err)
	return ok
}

// awaitVerdict waits for what a server that has refused initialize answers to
// server/discover: a modern one may only be slow. Nothing more is to be hoped for if it
// wants authorization, and HTTP with SSE is left half of the time if there is a hint
// at that.
func awaitVerdict(ctx context.Context, verdicts <-chan verdict, refused error) verdict {
	if isAuth(refused) {
		return verdict{}
	}
	bounded, cancel := besideSSE(ctx, refused)
	defer cancel()
	select {
	case v := <-verdicts:
		return v
	case <-bounded.Done():
		return verdict{err: errNoVerdict}
	}
}

var errNoVerdict = errors.New("server/discover was not answered")

// besideSSE returns the context of probing a server that has refused initialize.
func besideSSE(ctx context.Context, refused error) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	refusal, is := errors.AsType[*refusedError](refused)
	if !ok || !is || !refusal.hintsAtSSE() {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// abandon ends a handshake that has lost against a probe. The reply to initialize is
// waited for as long as the dialing would have done that, because nothing else names
// the session which it has begun.
func (c *Conn) abandon(ctx context.Context, h *handshake) {
	h.unhook()
	deadline, _ := ctx.Deadline()
	c.start(func() {
		late := time.NewTimer(time.Until(deadline))
		defer late.Stop()
		select {
		case <-h.answered:
		case <-late.C:
		case <-c.ctx.Done():
		}
		h.hangup(nil)
		<-h.answered
		leaving, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		h.era.end(leaving)
	})
}
