package streamable_test

import (
	"context"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"pgregory.net/rapid"
)

// A courier is a server that gives what it is told to give, and keeps what it is
// given. It serves one call at a time, besides what edges do on their own account.
type courier struct {
	got      chan string // params of what has come
	discover string      // what it says of itself, set at construction

	mu      sync.Mutex
	method  string // of the call that serve is for; guarded by mu, like what follows
	serve   mcp.HandlerFunc
	filters map[*mcp.Filter]chan *mcp.Notification
	changed chan struct{} // closed and made anew when filters change
}

const aServer = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},` +
	`"resources":{"listChanged":true,"subscribe":true},"logging":{},"completions":{},"vendor":{"x":1.0}},"vendor":{"a":1E2}}`

func newCourier() *courier {
	return &courier{got: make(chan string, 10), discover: aServer, filters: make(map[*mcp.Filter]chan *mcp.Notification), changed: make(chan struct{})}
}

// expect says how the next calls of a method are served.
func (c *courier) expect(method string, serve mcp.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.method, c.serve = method, serve
}

func (c *courier) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	c.mu.Lock()
	serve, expected := c.serve, req.Method == c.method
	c.mu.Unlock()
	switch {
	case expected:
		return serve(ctx, req, caller)
	case req.Method == mcp.MethodDiscover:
		return raw(c.discover)
	case req.Method == mcp.MethodListen:
		return c.listen(ctx, req, caller)
	case req.Method == mcp.MethodListTools:
		return raw(`{"tools":[]}`)
	}
	return mcp.Result{}, nil
}

// take keeps params, which belong to the request.
func (c *courier) take(req *mcp.Request) { c.got <- string(req.Params.Raw()) }

func (c *courier) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	if err := caller.Notify(ctx, filter.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	changes := make(chan *mcp.Notification, 10)
	c.change(func() { c.filters[&filter] = changes })
	defer c.change(func() { delete(c.filters, &filter) })
	for {
		select {
		case n := <-changes:
			if err := caller.Notify(ctx, n); err != nil {
				return mcp.Result{}, err
			}
		case <-ctx.Done():
			return mcp.Result{}, ctx.Err()
		}
	}
}

func (c *courier) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// tell gives a notification to all who listen for it, and waits until there is one.
func (c *courier) tell(t rapid.TB, n *mcp.Notification) {
	t.Helper()
	for told := false; !told; {
		c.mu.Lock()
		changed := c.changed
		for filter, changes := range c.filters {
			if filter.Wants(n) {
				select {
				case changes <- n:
				default: // it is told of others still
				}
				told = true
			}
		}
		c.mu.Unlock()
		if !told {
			receive(t, "somebody who listens", changed)
		}
	}
}

// A pen is a Caller that writes down what it is told, and answers what it is asked.
type pen struct {
	told, asked chan string // method and params
	ready       chan string // methods of notifications that say so

	mu     sync.Mutex
	answer answer // guarded by mu
}

type answer func(*mcp.Request) (mcp.Result, error)

func newPen() *pen {
	return &pen{told: make(chan string, 10), asked: make(chan string, 10), ready: make(chan string, 1)}
}

// answers has the next questions answered.
func (p *pen) answers(a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = a
}

func (p *pen) Notify(_ context.Context, n *mcp.Notification) error {
	switch _, first := n.Params.Lookup(areYouReady); {
	case n.Method == mcp.NotificationAcknowledged:
	case first:
		select {
		case p.ready <- n.Method:
		default:
		}
	default:
		p.told <- n.Method + " " + string(n.Params.Raw())
	}
	return nil
}

func (p *pen) Ask(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	p.mu.Lock()
	a := p.answer
	p.mu.Unlock()
	if a == nil {
		return mcp.Result{}, mcp.ErrCannotAsk
	}
	p.asked <- req.Method + " " + string(req.Params.Raw())
	return a(req)
}

// areYouReady is a member of notifications that a test repeats until one is heard.
const areYouReady = "are you ready?"

// errorText is an error as it would be passed on.
func errorText(err error) string {
	response := jsonrpc.Trusted(jsonrpc.AppendError(nil, jsonrpc.IntID(1), jsonrpc.ToWire(err)))
	raw, _ := response.Lookup("error")
	return string(raw)
}
