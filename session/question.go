package session

import (
	"context"
	"errors"
	"slices"
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
	// How long its answer may wait for a server that does not read.
	wait time.Duration
	task string // that it is of, if we await that for a client that does not know it

	// Of one that did not come on the stream of its call. They belong to whoever
	// has it put.
	guessed bool
	client  string  // key of the one that is asked
	carried []int64 // ids of the calls that it was put on
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
	q := c.open(m.ID, &mcp.Request{Method: method, Params: m.Body})
	c.assign(ctx, q, on)
}

// assign has a question put to the client that it belongs to, or refuses it. On is
// the call on whose stream it came, nil if it came on none.
func (c *Client) assign(ctx context.Context, q *question, on *inflight.Call) {
	id := mcp.RelatedTask(&q.req.Params)
	if id != "" && c.tasks.awaits(id, func() { c.assign(ctx, q, on) }) {
		return
	}
	var asked, several bool
	if call, known := c.callFor(id); known {
		if c.tasks.isAwaited(id) {
			q.task, q.req.Params = id, mcp.WithRelatedTask(&q.req.Params, "")
		}
		asked = call != nil && c.ask(ctx, q, call) // on whatever stream it came (2025-11-25, tasks)
	} else {
		asked, several = c.askFirst(ctx, q, on)
	}
	if asked {
		return
	}
	c.forget(q)
	if several && declares(c.opts.Capabilities, q.req.Method) {
		c.refuseToGuess(ctx, q)
		return
	}
	c.refuse(ctx, q)
}

// askFirst puts a question on the call on, nil for the one that it belongs to, and
// reports whether that is possible. Several is as whomToAsk has it.
func (c *Client) askFirst(ctx context.Context, q *question, on *inflight.Call) (asked, several bool) {
	if on != nil {
		return c.ask(ctx, q, on), false
	}
	for {
		on, several = c.whomToAsk(q.req)
		if on == nil {
			return false, several
		}
		q.guessed, q.client = true, on.Client()
		if c.ask(ctx, q, on) {
			return true, false
		}
		if !on.Over() {
			return false, false
		}
		// It ended in between, and the question is another call's.
	}
}

// ask has the client of a call asked, and reports whether that is possible.
func (c *Client) ask(ctx context.Context, q *question, on *inflight.Call) bool {
	q.era = on.Request.Meta.Revision.Era()
	q.carried = append(q.carried, on.ID)
	return on.Ask(len(q.req.Params.Raw()), func(askCtx context.Context, caller mcp.Caller) {
		result, err := q.put(askCtx, caller)
		if err != nil && !isWire(err) && q.withdrawn.Err() == nil && c.askElsewhere(ctx, q) {
			return
		}
		if err == nil {
			c.answeredByTask(q.req, &result, on)
		}
		if err == nil && q.task != "" {
			result.Value = mcp.WithRelatedTask(&result.Value, q.task)
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

// askElsewhere puts a question on another call of the same client, if the one that
// carried it by our guess has ended, or cannot: it is that other one's, most likely,
// and its server waits. It reports false if there is none.
func (c *Client) askElsewhere(ctx context.Context, q *question) bool {
	if !q.guessed || q.req.Method == mcp.MethodListRoots {
		return false
	}
	for {
		next := c.calls.Of(q.client, func(call *inflight.Call) bool {
			return canCarry(call.Request) && !slices.Contains(q.carried, call.ID)
		})
		if next == nil || c.ask(ctx, q, next) {
			return next != nil
		}
	}
}

// whomToAsk returns the call that a question outside any stream belongs to: one
// in flight, or the only session that listens. Several says that it may belong to
// either of several clients, between whom nobody guesses.
//
// Roots are asked for on the server's own account, most often while a call that
// has nothing to do with them is in flight and soon over: for them the session
// comes first.
//
// So does what a server wants of a task that its client works on: it may wait for
// longer than any call.
func (c *Client) whomToAsk(req *mcp.Request) (call *inflight.Call, several bool) {
	if isTaskRequest(req.Method) {
		if owner, known := c.tasks.ofClient(mcp.TaskID(&req.Params)); known {
			return c.listenerOf(owner), false
		}
	}
	listener, sessions := c.sessionListeners()
	if listener != nil && (req.Method == mcp.MethodListRoots || isTaskRequest(req.Method)) {
		return listener, false
	}
	owner, several := c.calls.Owner(canCarry)
	if owner == nil && !several {
		owner, several = listener, sessions
	}
	if owner != nil && c.calls.LeftByOthers(owner.Client()) {
		return nil, true
	}
	return owner, several
}

// canCarry reports whether a client can be asked something under a request.
func canCarry(req *mcp.Request) bool {
	return req.Meta.Revision.Era() == mcp.Legacy || mcp.MayNeedInput(req.Method) || req.Method == mcp.MethodTaskResult
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
