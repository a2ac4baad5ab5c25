package cells

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// A Call is one call of the tool work, whose client is asked: by a request if it is
// legacy, and by the result of its own request if it is modern. It is not safe for
// concurrent use.
type Call struct {
	Order  *Order
	Result mcp.Result // of a call that has ended
	Err    error      // of one that has failed

	client *Client
	ctx    context.Context
	req    *mcp.Request
	begun  bool

	// Of a modern client.
	state string // with which it was asked

	// Of a legacy client.
	asked   chan struct{}
	answers chan struct{}
	ended   chan struct{}
}

// NewCall returns a call that nothing has been sent of yet. Ctx is the client's: its
// end cancels the call.
func (c *Client) NewCall(ctx context.Context, o *Order) *Call {
	params, err := json.Marshal(mcp.CallToolParams{Name: "work", Arguments: mustEncode(o)})
	if err != nil {
		panic(err) // invariant: it has been encoded before
	}
	return &Call{
		Order: o, client: c, ctx: ctx,
		req:   &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted(params), Meta: c.meta()},
		asked: make(chan struct{}), answers: make(chan struct{}), ended: make(chan struct{}),
	}
}

func mustEncode(o *Order) mcp.JSON {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // invariant: an order holds texts and numbers only
	}
	return text
}

// Go begins the call, or goes on with it by answering what the client was asked. It
// returns when the client is asked, the next time, or the call has ended.
func (c *Call) Go() (asked bool) {
	if c.client.side.Era == mcp.Modern {
		return c.goModern()
	}
	return c.goLegacy()
}

func (c *Call) goModern() bool {
	req := c.req
	if c.begun {
		req = c.retry(c.state)
	}
	c.begun = true
	c.Result, c.Err = c.client.edge.Handle(c.ctx, req, mcp.NoCaller{})
	if c.Err != nil || c.Result.Type() != mcp.InputRequired {
		return false
	}
	c.state, _ = c.Result.LookupString("requestState")
	return true
}

// retry returns the request that answers all that was asked, under a state.
func (c *Call) retry(state string) *mcp.Request {
	questions := c.Result.Get("inputRequests")
	answers := []byte{'{'}
	for key := range questions.Members() {
		if len(answers) > 1 {
			answers = append(answers, ',')
		}
		answers = append(jsonrpc.AppendString(answers, key), ':')
		answers = append(answers, accepted...)
	}
	again := *c.req
	again.Params = jsonrpc.Edited(&c.req.Params,
		jsonrpc.Edit{Name: "inputResponses", Value: append(answers, '}')},
		jsonrpc.Edit{Name: "requestState", Value: jsonrpc.AppendString(nil, state)})
	return &again
}

const accepted = `{"action":"accept","content":{"name":"Ada"}}`

// State returns with which state a modern client was asked last.
func (c *Call) State() string { return c.state }

// As makes the retry under a state as another client, or the same, and returns what
// came of it. The call itself does not notice.
func (c *Call) As(client *Client, state string) (mcp.Result, error) {
	req := c.retry(state)
	req.Meta = client.meta()
	return client.edge.Handle(c.ctx, req, mcp.NoCaller{})
}

// Retry returns what makes the retry with which [Call.Go] would go on, again.
func (c *Call) Retry() func() (mcp.Result, error) {
	req := c.retry(c.state)
	return func() (mcp.Result, error) { return c.client.edge.Handle(c.ctx, req, mcp.NoCaller{}) }
}

func (c *Call) goLegacy() bool {
	if c.begun {
		select {
		case c.answers <- struct{}{}:
		case <-c.ended:
			return false
		}
	} else {
		c.begun = true
		go func() {
			defer close(c.ended)
			c.Result, c.Err = c.client.edge.Handle(c.ctx, c.req, (*asker)(c))
		}()
	}
	select {
	case <-c.asked:
		return true
	case <-c.ended:
		return false
	}
}

// Wait waits for the end of a call of a legacy client that is not gone on with.
func (c *Call) Wait() {
	if c.client.side.Era == mcp.Legacy && c.begun {
		<-c.ended
	}
}

// Ended is closed when the call of a legacy client has ended; a modern client is told
// by its retry only.
func (c *Call) Ended() <-chan struct{} { return c.ended }

// An asker is the Caller of a legacy client's call.
type asker Call

// Notify implements [mcp.Caller].
func (*asker) Notify(context.Context, *mcp.Notification) error { return nil }

var errWithdrawn = errors.New("the question was withdrawn")

// Ask implements [mcp.Caller].
func (a *asker) Ask(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
	for _, step := range []func() bool{
		func() bool {
			select {
			case a.asked <- struct{}{}:
				return true
			case <-ctx.Done():
				return false
			}
		},
		func() bool {
			select {
			case <-a.answers:
				return true
			case <-ctx.Done():
				return false
			}
		},
	} {
		if !step() {
			return mcp.Result{}, errWithdrawn
		}
	}
	return mcp.RawResult([]byte(accepted)), nil
}
