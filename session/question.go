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
	// How long its answer may wait for a server that does not read.
	wait time.Duration
	task string // that it is of, if we await that for a client that does not know it

	// Of one that did not come on the stream of its call. They belong to whoever
	// has it put.
	guessed bool
	client  string  // key of the one that is asked
	carried []int64 // ids of the calls that it was put on
}

// size returns how many bytes the question counts: servers may make up methods of any
// length.
func (q *question) size() int { return len(q.req.Method) + len(q.req.Params.Raw()) }

// Asked takes a request of the server. On is as for [Client.Notified]. It does
// not wait: the answer is sent when it is there.
func (c *Client) Asked(ctx context.Context, m *jsonrpc.Message, on *inflight.Call) {
	c.TakeUp(m)(ctx, on)
}

// TakeUp takes a request of the server, which can withdraw it from now on, and returns
// what does the rest of [Client.Asked]. It writes nothing itself.
func (c *Client) TakeUp(m *jsonrpc.Message) (put func(ctx context.Context, on *inflight.Call)) {
	id, method := m.ID, mcp.MethodName(m.Method)
	if method == mcp.MethodPing {
		return func(ctx context.Context, _ *inflight.Call) {
			c.reply(context.WithoutCancel(ctx), replyWait, id, mcp.Result{}, nil)
		}
	}
	q := c.open(id, &mcp.Request{Method: method, Params: m.Body})
	return func(ctx context.Context, on *inflight.Call) {
		ctx = context.WithoutCancel(ctx)
		if on == nil && q.withdrawn.Err() == nil && method == mcp.MethodListRoots && c.answerTold(ctx, id) {
			c.forget(q)
			return
		}
		c.assign(ctx, q, on)
	}
}

// assign has a question put to the client that it belongs to, or refuses it. On is
// the call on whose stream it came, nil if it came on none.
func (c *Client) assign(ctx context.Context, q *question, on *inflight.Call) {
	id := mcp.RelatedTask(&q.req.Params)
	if id == "" || !c.tasks.awaits(about{id: id}, q.size(), func() { c.assignNow(ctx, q, on, id) }) {
		c.assignNow(ctx, q, on, id)
	}
}

// assignNow is assign for a question that needs wait no longer, of the task id, "" if it
// is of none.
func (c *Client) assignNow(ctx context.Context, q *question, on *inflight.Call, id string) {
	if q.withdrawn.Err() != nil { // while it waited
		c.forget(q)
		return
	}
	var asked, several bool
	if call, known := c.callFor(id); known {
		if c.tasks.isOurs(id) {
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

// ask has the client of a call asked, and reports whether that is possible.
func (c *Client) ask(ctx context.Context, q *question, on *inflight.Call) bool {
	q.era = on.Request.Meta.Revision.Era()
	q.carried = append(q.carried, on.ID)
	return on.Ask(q.size(), func(askCtx context.Context, caller mcp.Caller) {
		result, err := q.put(askCtx, caller)
		if err == nil {
			c.saidOfTask(q.req, &result, on)
		}
		if err == nil && q.task != "" {
			result.Value = mcp.WithRelatedTask(&result.Value, q.task)
		}
		if isWire(err) && !saysNo(err) && c.elsewhere(q, on) != nil {
			awaitEnd(askCtx, leavingWait)
		}
		switch {
		case err == nil:
			c.conclude(ctx, q, result, nil)
		case askCtx.Err() == nil:
			c.unanswered(ctx, q, on, err)
		default:
			// A server that learnt of the question first would go on with a tool
			// that it is about to be told to give up.
			on.Then(func() { c.unanswered(ctx, q, on, err) })
		}
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

// conclude answers a question, unless the server has withdrawn it. The end of a call
// that carries a question for the roots is not the client's answer.
func (c *Client) conclude(ctx context.Context, q *question, result mcp.Result, err error) {
	defer c.forget(q)
	q.wait = answerWait
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
