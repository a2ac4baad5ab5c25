package session

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Bounds of what is done for the roots of a modern client, who can be asked for
// them in its calls only.
const (
	// RootsWait is how long a call waits for a server that is told of the roots
	// to ask for them.
	RootsWait = 2 * time.Second
	// RootsLife is how old roots may be before they are asked for again, with
	// the client's next call.
	RootsLife = 5 * time.Minute
)

// rootsSettle is what a server that has got the roots is left to look at them in,
// which it does beside answering. Nothing that it sends says that it has.
const rootsSettle = 50 * time.Millisecond

// roots are those that a modern client has named. They are kept for what the
// server asks while the client has no call, as many servers do right after the
// handshake.
type roots struct {
	declared bool        // by the client; set at construction
	spoken   atomic.Bool // the server has answered something since the handshake
	telling  turn        // whose holder tells the server of them

	// Guarded by Client.mu.
	missed  bool          // asked for in vain since the server was last told of them
	known   mcp.Result    // the client's answer, zero for none
	learnt  time.Time     // when it came
	taken   chan struct{} // not nil while the server is being told: closed when it has asked and was answered
	called  bool          // there was a call
	client  clientID      // that made it
	several bool          // calls of more than one client: whose roots they are cannot be told
}

// clientID is what tells clients apart, as [mcp.Metadata.ClientKey] does.
type clientID struct {
	session   string
	principal mcp.Principal
	client    string
}

func (id *clientID) is(meta *mcp.Metadata) bool {
	if id.session != "" || meta.Session != "" {
		return id.session == meta.Session
	}
	return id.principal == meta.Principal && id.client == string(meta.Client)
}

// learnRoots asks the client of a call for its roots, before the call is sent, if
// the server wants them: it has asked when nobody could be asked, or got them long
// ago. The server is then told to ask again, and waited for: some refuse calls
// until they have got the roots.
func (c *Client) learnRoots(ctx context.Context, req *mcp.Request, caller mcp.Caller) {
	if !c.metAlone(&req.Meta) || req.Meta.Revision.Era() == mcp.Legacy {
		return
	}
	c.hearServer(ctx)
	switch wanted, telling := c.rootsWanted(); {
	case telling:
		c.awaitTelling(ctx)
		return
	case !wanted:
		return
	}
	answer, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodListRoots})
	if err != nil {
		c.opts.Logger.Debug("the client was not asked for its roots", "method", req.Method, "err", err)
		return
	}
	c.teachRoots(ctx, answer)
}

// metAlone takes up whose call comes, and reports whether all were of one client.
func (c *Client) metAlone(meta *mcp.Metadata) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.roots
	switch {
	case !r.called:
		r.called, r.client = true, clientID{meta.Session, meta.Principal, string(meta.Client)}
	case !r.client.is(meta):
		r.several, r.known = true, mcp.Result{}
	}
	return !r.several
}

// hearServer waits, before the first call, for what the server asks at once after
// the handshake: its answer to anything comes later than that.
func (c *Client) hearServer(ctx context.Context) {
	if c.roots.spoken.Load() {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, RootsWait)
	defer cancel()
	// Whatever it answers. One that does not is not waited for again.
	_, _ = c.request(bounded, mcp.MethodPing)
	if ctx.Err() == nil {
		c.roots.spoken.Store(true)
	}
}

// rootsWanted reports whether a call's client is to be asked for its roots, and
// whether the server is being told of them just now.
func (c *Client) rootsWanted() (wanted, telling bool) {
	c.mu.Lock()
	r := &c.roots
	wanted = r.missed || !r.known.IsZero() && time.Since(r.learnt) >= RootsLife
	telling = r.taken != nil
	c.mu.Unlock()
	return wanted && c.sessionListener() == nil, telling
}

// awaitTelling waits until the server has been told of the roots.
func (c *Client) awaitTelling(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, RootsWait)
	defer cancel()
	if c.roots.telling.take(ctx) == nil {
		c.roots.telling.pass()
	}
}

// teachRoots keeps a client's answer, and has the server ask for it if that is
// news to it.
func (c *Client) teachRoots(ctx context.Context, answer mcp.Result) {
	ctx, cancel := context.WithTimeout(ctx, RootsWait)
	defer cancel()
	if c.roots.telling.take(ctx) != nil {
		return
	}
	defer c.roots.telling.pass()
	taken := c.beginTelling(answer)
	if taken == nil {
		return
	}
	defer c.endTelling()
	if err := c.wire.Notify(ctx, mcp.NotificationRootsListChanged, &jsonrpc.Value{}); err != nil {
		c.opts.Logger.Debug("the server was not told of the roots", "err", err)
		return
	}
	select {
	case <-taken:
	case <-ctx.Done():
		c.opts.Logger.Debug("the server does not ask for the roots that it was told of", "limit", "RootsWait", "waited", RootsWait)
		return
	}
	// What it answers now, it answers after it has read the roots.
	if _, err := c.request(ctx, mcp.MethodPing); ctx.Err() != nil {
		c.opts.Logger.Debug("the server has the roots and does not answer", "err", err)
		return
	}
	settled := time.NewTimer(rootsSettle)
	defer settled.Stop()
	select {
	case <-settled.C:
	case <-ctx.Done():
	}
}

// beginTelling keeps an answer. It returns a channel that is closed when the
// server has asked for it, nil if the server need not be told of it.
func (c *Client) beginTelling(answer mcp.Result) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.roots
	news := !bytes.Equal(r.known.Raw(), answer.Raw())
	if !c.keepRoots(answer) || !news {
		return nil
	}
	r.taken = make(chan struct{})
	return r.taken
}

func (c *Client) endTelling() {
	c.mu.Lock()
	c.roots.taken = nil
	c.mu.Unlock()
}

// keepRoots keeps what a modern client has answered, and reports whether it is of
// use. c.mu is held.
func (c *Client) keepRoots(answer mcp.Result) bool {
	r := &c.roots
	list := answer.Get("roots")
	if r.several || len(list.Raw()) == 0 || list.Raw()[0] != '[' {
		return false
	}
	r.known, r.learnt, r.missed = mcp.RawResult(bytes.Clone(answer.Raw())), time.Now(), false
	return true
}

// answered takes up a client's answer to a question for its roots. Legacy clients
// tell when theirs change, and are asked each time.
func (c *Client) answered(q *question, answer mcp.Result) {
	if q.req.Method != mcp.MethodListRoots || q.era == mcp.Legacy {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepRoots(answer)
}

// answerTold answers a server that asks for the roots which it is being told of, and
// reports false if it cannot: nobody knows any more whose are meant when another client
// has come meanwhile.
func (c *Client) answerTold(ctx context.Context, id jsonrpc.ID) bool {
	c.mu.Lock()
	known, taken := c.roots.known, c.roots.taken
	c.mu.Unlock()
	if taken == nil {
		return false
	}
	answered := !known.IsZero()
	if answered {
		c.reply(ctx, replyWait, id, known, nil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.roots.taken == taken {
		select {
		case <-taken: // it asks twice
		default:
			close(taken)
		}
	}
	return answered
}

// knownRoots returns the roots that are kept, and notes that the server has asked
// in vain if there are none.
func (c *Client) knownRoots() (mcp.Result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.roots.known.IsZero() {
		return c.roots.known, true
	}
	c.roots.missed = true
	return mcp.Result{}, false
}

// offerRoots tells a server to ask for the roots again which asked when nobody
// could be asked, once there is a session that can.
func (c *Client) offerRoots(ctx context.Context) {
	c.mu.Lock()
	missed := c.roots.missed
	c.roots.missed = false
	c.mu.Unlock()
	if !missed || !c.roots.declared {
		return
	}
	if err := c.wire.Notify(ctx, mcp.NotificationRootsListChanged, &jsonrpc.Value{}); err != nil {
		c.opts.Logger.Debug("the server was not told of the roots", "err", err)
	}
}
