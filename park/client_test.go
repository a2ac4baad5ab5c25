package park_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
)

// A client makes one request at a lot, as a modern listening edge would.
type client struct {
	slow time.Duration // how long each notification takes
	kept bool

	mu   sync.Mutex
	told []string // notifications, guarded by mu
	busy int      // notifications being taken, guarded by mu
}

func (c *client) Notify(_ context.Context, n *mcp.Notification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slow > 0 {
		c.busy++
		c.mu.Unlock()
		<-time.After(c.slow)
		c.mu.Lock()
		c.busy--
	}
	c.told = append(c.told, n.Method+" "+string(n.Params.Raw()))
	return nil
}

func (c *client) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}

func (c *client) Keep() { c.kept = true }

func (c *client) heard() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.told, "\n")
}

// An outcome is what a request came to.
type outcome struct {
	result mcp.Result
	err    error
	*client
}

func (o *outcome) String() string {
	if o.err != nil {
		return fmt.Sprintf("error %d: %v", jsonrpc.ToWire(o.err).Code, o.err)
	}
	return string(o.result.Raw())
}

// state returns the requestState of an outcome that is input_required.
func (o *outcome) state(t *testing.T) string {
	t.Helper()
	state, ok := o.result.LookupString("requestState")
	if !ok || o.result.Type() != mcp.InputRequired {
		t.Fatalf("no input is required: %v", o)
	}
	return state
}

// questions returns the inputRequests of an outcome.
func (o *outcome) questions() string {
	v := o.result.Get("inputRequests")
	return string(v.Raw())
}

// do makes a request.
func do(ctx context.Context, lot *park.Lot, req *mcp.Request) *outcome {
	return doSlowly(ctx, lot, req, 0)
}

// doSlowly makes a request whose notifications take their time.
func doSlowly(ctx context.Context, lot *park.Lot, req *mcp.Request, slow time.Duration) *outcome {
	o := &outcome{client: &client{slow: slow}}
	o.result, o.err = lot.Handle(ctx, req, o.client)
	return o
}

// start makes a request in the background.
func start(ctx context.Context, lot *park.Lot, req *mcp.Request) <-chan *outcome {
	done := make(chan *outcome, 1)
	go func() { done <- do(ctx, lot, req) }()
	return done
}

// retry returns req with a state and answers, as the client makes it again.
func retry(req *mcp.Request, state, responses string) *mcp.Request {
	again := *req
	again.Params = jsonrpc.Edited(&req.Params,
		jsonrpc.Edit{Name: "requestState", Value: jsonrpc.AppendString(nil, state)},
		jsonrpc.Edit{Name: "inputResponses", Value: []byte(responses)})
	return &again
}

// elicit asks by a form with the given message.
func elicit(ctx context.Context, caller mcp.Caller, message string) (string, error) {
	answer, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte(`{"message":"` + message + `"}`))})
	return string(answer.Raw()), err
}

// progress tells progress under a token.
func progress(ctx context.Context, caller mcp.Caller, token string, n int) {
	_ = caller.Notify(ctx, &mcp.Notification{
		Method: mcp.NotificationProgress, Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"progressToken":%s,"progress":%d}`, token, n)),
	})
}

func logged(ctx context.Context, caller mcp.Caller, data string) {
	loggedAs(ctx, caller, mcp.NotificationMessage, data)
}

func loggedAs(ctx context.Context, caller mcp.Caller, method, data string) {
	_ = caller.Notify(ctx, &mcp.Notification{Method: method, Params: jsonrpc.Trusted([]byte(`{"level":"info","data":"` + data + `"}`))})
}

func result(text string) (mcp.Result, error) {
	return mcp.RawResult([]byte(`{"text":` + text + `}`)), nil
}
