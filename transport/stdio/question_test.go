//go:build unix

package stdio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// ask sends questions and returns the answers.
func (c *child) ask(methods ...string) string {
	answers := make(map[string]json.RawMessage)
	for i, method := range methods {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"s%d","method":%q,"params":{}}`, i, method))
	}
	for len(answers) < len(methods) {
		m := c.read()
		if m == nil {
			c.fail("no answer")
		}
		if m.Kind != jsonrpc.Response {
			c.kept = append(c.kept, m)
			continue
		}
		var i int
		if _, err := fmt.Sscanf(m.ID.String(), `"s%d"`, &i); err != nil {
			c.fail("an answer to %s", m.ID)
		}
		answers[methods[i]] = json.RawMessage(m.Body.Raw())
	}
	told, err := json.Marshal(answers)
	if err != nil {
		c.fail("%v", err)
	}
	return string(told)
}

// asksEarly asks before it answers the first message of the handshake, and tells
// the answers when it is called.
var asksEarly = newMode("asks early", func(c *child) int {
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	m := c.next()
	c.say(log)
	got := c.ask("ping", "roots/list", "vendor/x")
	c.say(changed)
	if string(m.Method) == mcp.MethodDiscover {
		c.say(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"code":-32601,"message":"no"}}`)
		m = c.expect(mcp.MethodInitialize)
		got = c.ask("ping", "roots/list", "vendor/x")
	}
	c.answer(m, initialized)
	c.expect(mcp.NotificationInitialized)
	for m := c.next(); m != nil; m = c.next() {
		c.answer(m, got)
	}
	return 0
})

const notFound = `{"code":-32601,"message":"Method not found"}`

func TestB041QuestionsBeforeTheHandshakeIsOver(t *testing.T) {
	for _, era := range []mcp.Era{mcp.NoEra, mcp.Legacy} {
		t.Run("B041 "+era.String(), func(t *testing.T) {
			o := legacy()
			o.Era = era
			c := dial(t, asksEarly.command(), o)
			const want = `{"ping":{},"roots/list":` + notFound + `,"vendor/x":` + notFound + `}`
			if got := succeed(t, c, "x", "{}"); got != want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// asks asks all that can be asked in each call and tells the answers.
var asks = newMode("asks", func(c *child) int {
	c.handshake()
	outside := c.ask("ping", "roots/list")
	for m := c.next(); m != nil; m = c.next() {
		inside := c.ask("ping", "roots/list", "sampling/createMessage", "elicitation/create", "vendor/x")
		c.answer(m, `{"outside":`+outside+`,"inside":`+inside+`}`)
	}
	return 0
})

func TestB044UnsupportedQuestionsAreAnsweredAtOnce(t *testing.T) {
	c := dial(t, asks.command(), legacy())
	began := time.Now()
	got := succeed(t, c, "x", "{}")
	if took := time.Since(began); took > promptly {
		t.Errorf("B044: the answers took %v", took)
	}
	const want = `{"outside":{"ping":{},"roots/list":` + notFound + `},` +
		`"inside":{"elicitation/create":` + notFound + `,"ping":{},"roots/list":` + notFound +
		`,"sampling/createMessage":` + notFound + `,"vendor/x":` + notFound + `}}`
	if got != want {
		t.Errorf("B044 D1.4: got %s", got)
	}
}

// A callerFunc is a caller whose notifications go to a function.
type callerFunc func(ctx context.Context, n *mcp.Notification) error

func (f callerFunc) Notify(ctx context.Context, n *mcp.Notification) error { return f(ctx, n) }
func (callerFunc) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}

// changing tells in each call as many times as its argument says that its tools
// have changed, and waits to be asked for them.
var changing = newMode("changing", func(c *child) int {
	c.handshake()
	var n int
	if _, err := fmt.Sscan(c.args[0], &n); err != nil {
		c.fail("%v", err)
	}
	for m := c.next(); m != nil; m = c.next() {
		if string(m.Method) == mcp.MethodListTools {
			c.answer(m, `{"tools":[]}`)
			continue
		}
		c.write(strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n", n))
		c.answer(c.expect(mcp.MethodListTools), `{"tools":[]}`)
		c.answer(m, ok)
	}
	return 0
})

func TestB043NotificationHandlersMayCall(t *testing.T) {
	for _, n := range []int{1, 1000} {
		t.Run(fmt.Sprintf("B043 %d changes", n), func(t *testing.T) {
			c := dial(t, changing.command(fmt.Sprint(n)), legacy())
			var lists atomic.Int64
			acknowledged := make(chan struct{})
			filter := mcp.Filter{ToolsListChanged: true}
			start(t, c, &mcp.Request{Method: mcp.MethodListen, Params: filter.Params()}, callerFunc(
				func(ctx context.Context, n *mcp.Notification) error {
					if n.Method == mcp.NotificationAcknowledged {
						close(acknowledged)
						return nil
					}
					lists.Add(1)
					_, err := c.Handle(ctx, &mcp.Request{Method: mcp.MethodListTools}, mcp.NoCaller{})
					return err
				}))
			receive(t, "the acknowledgement", acknowledged)
			succeed(t, c, "x", "{}")
			if got := lists.Load(); got < 1 || got > int64(n+1)/2+1 {
				t.Errorf("%d changes led to %d lists", n, got)
			}
		})
	}
}

// progressing sends progress of the first call before it answers the second.
var progressing = newMode("progressing", func(c *child) int {
	c.handshake()
	first := c.expect(mcp.MethodCallTool)
	token, _ := first.Meta.Lookup("progressToken")
	for i := range 10_000 {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i))
	}
	c.answer(c.expect(mcp.MethodCallTool), ok)
	c.answer(first, ok)
	return c.untilEOF()
})

func TestS170SlowCallerDelaysNobodyElse(t *testing.T) {
	c := dial(t, progressing.command(), legacy())
	req := toolCall("slow", "{}")
	req.Meta.ProgressToken = jsonrpc.StringID("mine")
	release, blocked := make(chan struct{}), make(chan struct{}, 10_000)
	slow := start(t, c, req, callerFunc(func(_ context.Context, n *mcp.Notification) error {
		if token := mcp.ProgressToken(&n.Params); token.String() != `"mine"` {
			t.Errorf("S1.35: progress of %s", token)
		}
		blocked <- struct{}{}
		<-release
		return nil
	}))
	receive(t, "progress", blocked)
	succeed(t, c, "fast", "{}")
	close(release)
	if _, err := slow.wait(t); err != nil {
		t.Error(err)
	}
	if c.Dropped() == 0 {
		t.Error("S1.45: nothing was dropped")
	}
}

// asksTwice asks while one call is in flight, and again beside a second one.
var asksTwice = newMode("asks twice", func(c *child) int {
	c.handshake()
	first := c.expect(mcp.MethodCallTool)
	alone := c.ask("elicitation/create")
	second := c.expect(mcp.MethodCallTool)
	beside := c.ask("elicitation/create", "sampling/createMessage")
	got := `{"alone":` + alone + `,"beside":` + beside + `}`
	c.answer(first, got)
	c.answer(second, got)
	return c.untilEOF()
})

// An answering client answers every question by its name.
type answering struct {
	name  string
	asked chan struct{}
}

func (a *answering) Notify(context.Context, *mcp.Notification) error { return nil }

func (a *answering) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	a.asked <- struct{}{}
	return mcp.RawResult([]byte(`{"from":"` + a.name + `"}`)), nil
}

// TestQuestionsWithTwoClientsInMidCall_B151 go to the one that it must be, or to
// nobody.
func TestQuestionsWithTwoClientsInMidCall_B151(t *testing.T) {
	o := legacy()
	o.Capabilities = []byte(`{"elicitation":{},"sampling":{}}`)
	c := dial(t, asksTwice.command(), o)
	call := func(client string) (*answering, *pending) {
		req := toolCall("x", "{}")
		req.Meta = mcp.Metadata{Revision: mcp.Revision20251125, Session: client}
		a := &answering{client, make(chan struct{}, 10)}
		return a, start(t, c, req, a)
	}
	a, first := call("a")
	receive(t, "the question", a.asked)
	b, second := call("b")
	const refused = `{"code":-32603,"message":"Internal error: several clients are served, and the question does not say to whom it belongs"}`
	const want = `{"alone":{"elicitation/create":{"from":"a"}},"beside":{"elicitation/create":` + refused + `,"sampling/createMessage":` + refused + `}}`
	for _, p := range []*pending{first, second} {
		if got, err := p.wait(t); err != nil || got != want {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if len(a.asked)+len(b.asked) != 0 || c.Unattributed() != 2 {
		t.Errorf("asked %d and %d times more, %d counted", len(a.asked), len(b.asked), c.Unattributed())
	}
}
