package session

import (
	"context"
	"errors"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A question is a request of the server that has not been answered.
type question struct {
	id        jsonrpc.ID
	req       *mcp.Request
	withdrawn context.Context // of this one question
	withdraw  context.CancelFunc
	listens   int     // the client's, when it came
	era       mcp.Era // of the client that is asked
	guessed   bool    // it came on a channel that all calls share
	// How long its answer may wait for a server that does not read.
	wait time.Duration
}

// Asked takes a request of the server. On is as for [Client.Notified]. It does
// not wait: the answer is sent when it is there.
func (c *Client) Asked(ctx context.Context, m *jsonrpc.Message, on *inflight.Call) {
	ctx = context.WithoutCancel(ctx)
	method := mcp.MethodName(m.Method)
	if method == mcp.MethodPing {
		c.reply(ctx, replyWait, m.ID, mcp.Result{}, nil)
		return
	}
	if on == nil && method == mcp.MethodListRoots && c.answerTold(ctx, m.ID) {
		return
	}
	guessed, several := on == nil, false
	if guessed {
		on, several = c.whomToAsk(method)
	}
	q := c.open(m.ID, &mcp.Request{Method: method, Params: m.Body})
	q.guessed = guessed
	switch {
	case several && declares(c.opts.Capabilities, method):
		c.forget(q)
		c.refuseToGuess(ctx, q)
	case on == nil || !c.ask(ctx, q, on):
		c.forget(q)
		c.refuse(ctx, q)
	}
}

// ask has the client of a call asked, and reports whether that is possible.
func (c *Client) ask(ctx context.Context, q *question, on *inflight.Call) bool {
	q.era = on.Request.Meta.Revision.Era()
	return on.Ask(len(q.req.Params.Raw()), func(askCtx context.Context, caller mcp.Caller) {
		result, err := q.put(askCtx, caller)
		if err != nil && c.askAnother(ctx, q, on) {
			return
		}
		defer c.forget(q)
		q.wait = answerWait
		c.conclude(ctx, q, result, err)
	})
}

// put asks a caller, unless the server withdraws the question.
func (q *question) put(ctx context.Context, caller mcp.Caller) (mcp.Result, error) {
	if err := q.withdrawn.Err(); err != nil {
		return mcp.Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.withdrawn, cancel)()
	return caller.Ask(ctx, q.req)
}

// askAnother has a question asked in another call of the client if the one that it
// was put to has its response, and reports whether it has. A server that has
// answered a call has no more to ask in it: it was the wrong one.
func (c *Client) askAnother(ctx context.Context, q *question, on *inflight.Call) bool {
	if !q.guessed || q.withdrawn.Err() != nil || !on.Answered() {
		return false
	}
	other, _ := c.whomToAsk(q.req.Method)
	return other != nil && other.Request.Method != mcp.MethodListen && c.ask(ctx, q, other)
}

// conclude answers a question, unless the server has withdrawn it. The end of a
// call that carries a question for the roots is not the client's answer.
func (c *Client) conclude(ctx context.Context, q *question, result mcp.Result, err error) {
	switch {
	case q.withdrawn.Err() != nil:
	case err == nil:
		c.answered(q, result)
		c.reply(ctx, q.wait, q.id, result, nil)
	case !isWire(err) && (errors.Is(err, mcp.ErrCannotAsk) || q.req.Method == mcp.MethodListRoots):
		c.refuse(ctx, q)
	default:
		c.reply(ctx, q.wait, q.id, mcp.Result{}, err)
	}
}

// whomToAsk returns the call that a question outside any stream belongs to: one
// in flight, or the only session that listens. Several says that it may belong to
// either of several clients, between whom nobody guesses.
//
// Roots are asked for on the server's own account, most often while a call that
// has nothing to do with them is in flight and soon over: for them the session
// comes first.
func (c *Client) whomToAsk(method string) (call *inflight.Call, several bool) {
	listener, sessions := c.sessionListeners()
	if method == mcp.MethodListRoots && listener != nil {
		return listener, false
	}
	owner, several := c.calls.Owner(func(req *mcp.Request) bool {
		return req.Meta.Revision.Era() == mcp.Legacy || mcp.MayNeedInput(req.Method)
	})
	if owner != nil || several {
		return owner, several
	}
	return listener, sessions
}

// open keeps a question, so that it can be withdrawn.
func (c *Client) open(id jsonrpc.ID, req *mcp.Request) *question {
	q := &question{id: id, req: req, wait: replyWait}
	q.withdrawn, q.withdraw = context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	q.listens = c.listens
	c.questions[id.Key()] = q
	return q
}

func (c *Client) forget(q *question) {
	q.withdraw()
	c.mu.Lock()
	defer c.mu.Unlock()
	if key := q.id.Key(); c.questions[key] == q {
		delete(c.questions, key)
	}
}

// withdraw ends the question that a cancellation names.
func (c *Client) withdraw(n *mcp.Notification) {
	raw, _ := n.Params.Lookup("requestId")
	id, ok := jsonrpc.RawID(raw)
	if !ok {
		return
	}
	c.mu.Lock()
	q := c.questions[id.Key()]
	c.mu.Unlock()
	if q != nil {
		q.withdraw()
	}
}

// capabilityFor names the client capability that a question needs.
var capabilityFor = map[string]string{
	mcp.MethodElicit:        "elicitation",
	mcp.MethodCreateMessage: "sampling",
	mcp.MethodListRoots:     "roots",
}

// declares reports whether a client with these capabilities can be asked a
// question. Of questions that are not the protocol's it decides itself.
func declares(capabilities []byte, method string) bool {
	name, known := capabilityFor[method]
	if !known {
		return true
	}
	v := jsonrpc.Trusted(capabilities)
	_, ok := v.Lookup(name)
	return ok
}

// checkMode returns why a client with these capabilities must not be sent an
// elicitation of a mode. Who declares no mode has that of forms (2025-11-25,
// client/elicitation, Capabilities and Error Handling).
func checkMode(capabilities []byte, req *mcp.Request) error {
	if req.Method != mcp.MethodElicit {
		return nil
	}
	mode, ok := req.Params.LookupString("mode")
	if !ok {
		mode = "form"
	}
	v := jsonrpc.Trusted(capabilities)
	elicitation := v.Get("elicitation")
	_, declared := elicitation.Lookup(mode)
	_, onlyURL := elicitation.Lookup("url")
	if declared || mode == "form" && !onlyURL {
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: the client has not declared the elicitation mode %.20q", mode)
}

// isWire reports whether an error says itself how it is to be answered.
func isWire(err error) bool {
	_, ok := errors.AsType[*jsonrpc.Error](err)
	return ok
}

// Refusal returns the answer to a server's question that nobody can be asked: an
// elicitation is answered as by a user who closes the dialog, and what the
// client did not declare is an unknown method.
func Refusal(method string, capabilities []byte) (mcp.Result, error) {
	switch _, known := capabilityFor[method]; {
	case !known || !declares(capabilities, method):
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	case method == mcp.MethodElicit:
		return mcp.RawResult([]byte(`{"action":"cancel"}`)), nil
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error: nobody can be asked just now")
}

// refuse answers a question that nobody can be asked: one for the roots with those
// that are known. Who has begun to listen since it came could not be told yet to be
// asked for them.
func (c *Client) refuse(ctx context.Context, q *question) {
	result, err := Refusal(q.req.Method, c.opts.Capabilities)
	if q.req.Method != mcp.MethodListRoots {
		c.reply(ctx, q.wait, q.id, result, err)
		return
	}
	known, ok := c.knownRoots()
	if ok {
		c.reply(ctx, q.wait, q.id, known, nil)
		return
	}
	c.reply(ctx, q.wait, q.id, result, err)
	c.mu.Lock()
	late := c.listens != q.listens
	c.mu.Unlock()
	if late {
		c.offerRoots(ctx)
	}
}

// refuseToGuess answers a question that may belong to either of several clients.
func (c *Client) refuseToGuess(ctx context.Context, q *question) {
	n := c.unattributed.Add(1)
	if n&(n-1) == 0 { // so that a server that asks on and on does not fill a log
		c.opts.Logger.Warn("a question of the server was refused: several clients are served, and it does not say to whom it belongs",
			"method", q.req.Method, "refused", n)
	}
	if q.req.Method == mcp.MethodListRoots {
		c.mu.Lock()
		c.roots.missed = true
		c.mu.Unlock()
	}
	c.reply(ctx, q.wait, q.id, mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInternalError,
		"Internal error: several clients are served, and the question does not say to whom it belongs"))
}

// Bounds of how long an answer waits for a server that does not read: with the
// reader of its messages waiting, and with the call that carried the question. An
// answer that is lost is a server that waits for ever, and on a busy machine a
// goroutine may not run for a while although there is nothing to wait for.
const (
	replyWait  = time.Second
	answerWait = 5 * time.Second
)

func (c *Client) reply(ctx context.Context, wait time.Duration, id jsonrpc.ID, result mcp.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := c.wire.Reply(ctx, id, result, err); err != nil {
		c.opts.Logger.Debug("an answer did not reach the server", "id", id.String(), "err", err)
	}
}
