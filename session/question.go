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
	listens   int    // the client's, when it came
	task      string // that it is of, if we await that for a client that does not know it
}

// Asked takes a request of the server. On is as for [Client.Notified]. It does
// not wait: the answer is sent when it is there.
func (c *Client) Asked(ctx context.Context, m *jsonrpc.Message, on *inflight.Call) {
	ctx = context.WithoutCancel(ctx)
	method := mcp.MethodName(m.Method)
	if method == mcp.MethodPing {
		c.reply(ctx, m.ID, mcp.Result{}, nil)
		return
	}
	q := c.open(m.ID, &mcp.Request{Method: method, Params: m.Body})
	c.assign(ctx, q, on)
}

// assign has a question put to the client that it belongs to.
func (c *Client) assign(ctx context.Context, q *question, on *inflight.Call) {
	if id := mcp.RelatedTask(&q.req.Params); id != "" {
		if c.tasks.awaits(id, func() { c.assign(ctx, q, on) }) {
			return
		}
		// Servers may send it on any stream (2025-11-25, tasks).
		if call, known := c.callFor(id); known {
			if _, awaiting, _ := c.tasks.find(id); awaiting != nil {
				q.task, q.req.Params = id, mcp.WithRelatedTask(&q.req.Params, "")
			}
			c.ask(ctx, q, call)
			return
		}
	}
	if on == nil {
		on = c.whomToAsk(q.req)
	}
	c.ask(ctx, q, on)
}

// ask puts a question by way of a call, which may be nil for nobody.
func (c *Client) ask(ctx context.Context, q *question, on *inflight.Call) {
	asked := on != nil && on.Ask(len(q.req.Params.Raw()), func(askCtx context.Context, caller mcp.Caller) {
		defer c.forget(q)
		c.put(ctx, q, func() (mcp.Result, error) {
			askCtx, cancel := context.WithCancel(askCtx)
			defer cancel()
			defer context.AfterFunc(q.withdrawn, cancel)()
			result, err := caller.Ask(askCtx, q.req)
			if err == nil {
				c.answeredByTask(q.req, &result, on)
			}
			if err == nil && q.task != "" {
				result.Value = mcp.WithRelatedTask(&result.Value, q.task)
			}
			return result, err
		})
	})
	if !asked {
		c.forget(q)
		c.refuse(ctx, q)
	}
}

// put has a question answered by ask, unless the server withdraws it.
func (c *Client) put(ctx context.Context, q *question, ask func() (mcp.Result, error)) {
	if q.withdrawn.Err() != nil {
		return
	}
	result, err := ask()
	switch {
	case q.withdrawn.Err() != nil:
	case errors.Is(err, mcp.ErrCannotAsk) && !isWire(err):
		c.refuse(ctx, q)
	default:
		c.reply(ctx, q.id, result, err)
	}
}

// whomToAsk returns the call that a question outside any stream belongs to: one
// in flight, or the only session that listens. Nobody guesses between clients.
//
// Roots are asked for on the server's own account, most often while a call that
// has nothing to do with them is in flight and soon over: for them the session
// comes first.
//
// So does what a server wants of a task that its client works on: it may wait for
// longer than any call.
func (c *Client) whomToAsk(req *mcp.Request) *inflight.Call {
	if isTaskRequest(req.Method) {
		if owner, known := c.tasks.ofClient(mcp.TaskID(&req.Params)); known {
			return c.listenerOf(owner)
		}
	}
	if req.Method == mcp.MethodListRoots || isTaskRequest(req.Method) {
		if listener := c.sessionListener(); listener != nil {
			return listener
		}
	}
	owner, several := c.calls.Owner(canCarry)
	if owner != nil || several {
		return owner
	}
	return c.sessionListener()
}

// canCarry reports whether a client can be asked something under a request.
func canCarry(req *mcp.Request) bool {
	return req.Meta.Revision.Era() == mcp.Legacy || mcp.MayNeedInput(req.Method) || req.Method == mcp.MethodTaskResult
}

// open keeps a question, so that it can be withdrawn.
func (c *Client) open(id jsonrpc.ID, req *mcp.Request) *question {
	q := &question{id: id, req: req}
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

// refuse answers a question that nobody can be asked. Who has begun to listen
// since it came could not be told yet to be asked for the roots.
func (c *Client) refuse(ctx context.Context, q *question) {
	result, err := Refusal(q.req.Method, c.opts.Capabilities)
	c.reply(ctx, q.id, result, err)
	if q.req.Method != mcp.MethodListRoots {
		return
	}
	c.mu.Lock()
	c.noRoots = true
	late := c.listens != q.listens
	c.mu.Unlock()
	if late {
		c.offerRoots(ctx)
	}
}

// offerRoots tells a server to ask for the roots again which asked when nobody
// could be asked, as many do at once after the handshake.
func (c *Client) offerRoots(ctx context.Context) {
	c.mu.Lock()
	missed := c.noRoots
	c.noRoots = false
	c.mu.Unlock()
	if !missed || !declares(c.opts.Capabilities, mcp.MethodListRoots) {
		return
	}
	if err := c.wire.Notify(ctx, mcp.NotificationRootsListChanged, &jsonrpc.Value{}); err != nil {
		c.opts.Logger.Debug("the server was not told of the roots", "err", err)
	}
}

// replyWait bounds how long an answer waits for a server that does not read.
const replyWait = 100 * time.Millisecond

func (c *Client) reply(ctx context.Context, id jsonrpc.ID, result mcp.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, replyWait)
	defer cancel()
	if err := c.wire.Reply(ctx, id, result, err); err != nil {
		c.opts.Logger.Debug("an answer did not reach the server", "id", id.String(), "err", err)
	}
}
