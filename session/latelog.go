package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Many servers send the log messages of a call outside it. Where that is a stream of
// its own, the response often overtakes the last of them by some 0.1 ms, and who has
// no session to listen to would never see them. So a call that wants log messages
// waits a little with its result.
const (
	// lateStep is how long such a call waits at a time. A process that has to wait for
	// its turn loses one step by that, and not all of them.
	lateStep = time.Millisecond
	// lateSteps is how many steps it waits at most. A step in which nothing comes any
	// more, after something has come, is the last: what a tool says at its end comes
	// together, whether the response is before it, behind it, or in between.
	lateSteps = 5
	// maxVain is how many calls of a session wait, before its server has shown that it
	// sends log messages outside calls at all.
	maxVain = 16
)

// lateLogs take the log messages that were overtaken by the responses of their calls.
type lateLogs struct {
	seen    atomic.Bool  // the server sends log messages outside calls
	vain    atomic.Int32 // calls that have waited before it did
	waiting atomic.Int32 // calls that wait

	mu    sync.Mutex
	calls []*lateLog // oldest first, guarded by mu
}

// A lateLog takes what comes late for one request.
type lateLog struct {
	// Set at construction.
	client *Client
	req    *mcp.Request
	inbox  *inflight.Call

	given atomic.Int32 // messages that came late

	// Guarded by lateLogs.mu.
	waits  bool
	inTime time.Time // when the last message came that did not come late
}

// withLate makes a request in the way of its kind. If it wants log messages, its
// result comes after those that it has overtaken.
func (c *Client) withLate(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if c.late.waiting.Load() > 0 {
		c.late.giveWay(req)
	}
	late := c.expectLate(req)
	if late == nil {
		return c.forward(ctx, req, caller)
	}
	defer late.end()
	result, err := c.forward(ctx, req, caller)
	if err == nil || jsonrpc.FromPeer(err) {
		late.await(ctx, caller)
	}
	return result, err
}

// expectLate has log messages for a request taken from now on, since they can come
// at any time after the response. It returns nil if none are wanted or can be late. A
// legacy client gets them as its session's.
func (c *Client) expectLate(req *mcp.Request) *lateLog {
	wanted := req.Meta.LogLevel != "" && req.Meta.Revision.Era() != mcp.Legacy
	if !wanted || c.opts.Overtaken == nil || c.capabilities.Logging == nil || !c.late.worthwhile() {
		return nil
	}
	meta := req.Meta
	meta.ProgressToken = jsonrpc.ID{}
	// It is no call that could be asked something, or answered.
	inbox, err := c.calls.StartOwn(&mcp.Request{Method: mcp.MethodListen, Meta: meta})
	if err != nil {
		return nil // nor will the call be made
	}
	l := &lateLog{client: c, req: req, inbox: inbox}
	c.late.mu.Lock()
	defer c.late.mu.Unlock()
	c.late.calls = append(c.late.calls, l)
	return l
}

func (s *lateLogs) worthwhile() bool { return s.seen.Load() || s.vain.Load() < maxVain }

// await delivers to caller what comes late, until that is most likely all, ctx ends,
// or the connection.
func (l *lateLog) await(ctx context.Context, caller mcp.Caller) {
	came := l.begin()
	defer l.rest()
	for step, given := 0, int32(0); step < lateSteps && l.mayCome(); step++ {
		if _, err := l.inbox.Wait(ctx, caller, lateStep); ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		now := l.given.Load()
		if came && now == given {
			break
		}
		came, given = came || now > given, now
		if late := &l.client.late; step+1 == lateSteps && !late.seen.Load() {
			late.vain.Add(1)
		}
	}
	l.inbox.Finish(nil)
	_, _ = l.inbox.Wait(ctx, caller, 0) // for what is there already
}

// begin notes that the call waits, and reports whether a message has come just before.
func (l *lateLog) begin() (came bool) {
	s := &l.client.late
	s.mu.Lock()
	defer s.mu.Unlock()
	l.waits = true
	s.waiting.Add(1)
	return time.Since(l.inTime) < lateStep
}

func (l *lateLog) rest() {
	s := &l.client.late
	s.mu.Lock()
	defer s.mu.Unlock()
	l.waits = false
	s.waiting.Add(-1)
}

// cameInTime notes that a request has been given a message before its response.
func (s *lateLogs) cameInTime(req *mcp.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.calls {
		if l.req == req {
			l.inTime = time.Now()
		}
	}
}

// giveWay ends the waits of other clients' calls than req: what comes from now on may be
// for that.
func (s *lateLogs) giveWay(req *mcp.Request) {
	client := req.Meta.ClientKey()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.calls {
		if l.waits && l.inbox.Client() != client {
			l.inbox.Finish(nil)
		}
	}
}

// mayCome reports whether log messages outside calls can be late now, and would be
// this request's.
func (l *lateLog) mayCome() bool {
	c := l.client
	if !c.opts.Overtaken() {
		return false
	}
	wants := func(req *mcp.Request) bool { return wantsLog(req, l.inbox.Request.Meta.LogLevel) }
	owner, several := c.calls.Owner(wants)
	return owner == nil && !several && c.lateFor(wants) == l
}

// lateFor returns what takes a log message outside calls that no call in flight wants:
// that of the newest request, provided that the message can be for no other client.
func (c *Client) lateFor(wants func(*mcp.Request) bool) *lateLog {
	c.late.mu.Lock()
	defer c.late.mu.Unlock()
	var newest *lateLog
	client := ""
	for i, l := range c.late.calls {
		if i == 0 {
			client = l.inbox.Client()
		} else if l.inbox.Client() != client {
			return nil
		}
		if wants(l.inbox.Request) {
			newest = l
		}
	}
	if newest == nil {
		return nil
	}
	other, several := c.calls.Owner(func(*mcp.Request) bool { return true })
	if several || other != nil && other.Client() != client || c.mayBeOthers(newest.inbox) {
		return nil
	}
	return newest
}

// mayBeOthers reports whether a log message outside calls that would be a call's may be
// another client's: of a call that was left, or one whose response may have overtaken it.
// While that was in flight beside this one the message would have been nobody's, and is as
// long as a call would wait for it. Most come sooner: what has begun since loses no more.
func (c *Client) mayBeOthers(call *inflight.Call) bool {
	return c.calls.LeftByOthers(call.Client()) || c.calls.AnsweredOther(call, lateSteps*lateStep, lateStep)
}

// tellLate gives a log message to the request that it was too late for, and reports
// whether there is one.
func (c *Client) tellLate(n *mcp.Notification, wants func(*mcp.Request) bool) bool {
	l := c.lateFor(wants)
	if l == nil || !l.inbox.Notify(n) {
		return false
	}
	l.given.Add(1)
	return true
}

// end has nothing taken any more.
func (l *lateLog) end() {
	s := &l.client.late
	s.mu.Lock()
	i := slices.Index(s.calls, l)
	s.calls = slices.Delete(s.calls, i, i+1)
	s.mu.Unlock()
	l.inbox.End()
}
