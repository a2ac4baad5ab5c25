package transport_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

func listenLine(id, filter string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":` + filter + `,` + modernMetaJSON + `}}`
}

func ackLine(id, filter string) string {
	return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":` + filter +
		`,"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
}

func changeLine(what, id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/` + what + `/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
}

// A feed is a handler whose listen calls deliver what the test sends.
type feed struct{ calls chan *fed }

// A fed is one listen call.
type fed struct {
	caller mcp.Caller
	params string
	fail   chan error
	ended  chan error
}

func (f *feed) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Method != mcp.MethodListen {
		return mcp.RawResult([]byte(discovered)), nil
	}
	c := &fed{caller: caller, params: string(req.Params.Raw()), fail: make(chan error), ended: make(chan error, 1)}
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	if err := caller.Notify(ctx, filter.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	f.calls <- c
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case err = <-c.fail:
	}
	c.ended <- err
	return mcp.Result{}, err
}

func (c *fed) notify(t *testing.T, method, params string) {
	t.Helper()
	if err := c.caller.Notify(t.Context(), &mcp.Notification{Method: method, Params: jsonrpc.Trusted([]byte(params))}); err != nil {
		t.Error(err)
	}
}

func TestTwoListensOfOneClient_B121(t *testing.T) {
	f := &feed{calls: make(chan *fed, 10)}
	p, running := serve(t, f, transport.ServeOptions{})
	var calls []*fed
	for _, id := range []string{`1`, `"1"`} {
		p.say(listenLine(id, `{"toolsListChanged":true,"session":true}`))
		calls = append(calls, receive(t, "the listen call", f.calls))
		if got := p.line(); got != ackLine(id, `{"toolsListChanged":true}`) {
			t.Errorf("acknowledged by %s", got)
		}
		if strings.Contains(calls[len(calls)-1].params, "session") {
			t.Errorf("the handler got %s", calls[len(calls)-1].params)
		}
	}
	// Every message bears the client's id, of its type; what was not asked for
	// does not come.
	for i, id := range []string{`1`, `"1"`} {
		for _, n := range [][2]string{
			{mcp.NotificationPromptsListChanged, `{}`},
			{mcp.NotificationResourcesListChanged, `{}`},
			{mcp.NotificationResourceUpdated, `{"uri":"u:1"}`},
			{mcp.NotificationMessage, `{"level":"error"}`},
			{mcp.NotificationProgress, `{"progressToken":1}`},
			{mcp.NotificationElicitationComplete, `{}`},
			{mcp.NotificationToolsListChanged, `{"_meta":{"io.modelcontextprotocol/subscriptionId":99}}`},
		} {
			calls[i].notify(t, n[0], n[1])
		}
		if got := p.line(); got != changeLine("tools", id) {
			t.Errorf("got %s", got)
		}
	}
	if _, err := calls[0].caller.Ask(t.Context(), nil); !errors.Is(err, mcp.ErrCannotAsk) {
		t.Errorf("asked: %v", err)
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}`)
	receive(t, "the end of the second", calls[1].ended)
	calls[0].notify(t, mcp.NotificationToolsListChanged, `{}`)
	if got := p.line(); got != changeLine("tools", "1") { // and no response to the other
		t.Errorf("got %s", got)
	}
	// B026: a listen call and another request share the ids.
	p.say(strings.Replace(slowCall("1"), "slow", "x", 1))
	if got := p.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`) {
		t.Errorf("got %s", got)
	}
	// Graceful closure, and the cancellation that the specification wants.
	running.cancel()
	if got := p.line(); got != `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"resultType":"complete"}}` {
		t.Errorf("got %s", got)
	}
	if got := p.line(); got != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` {
		t.Errorf("got %s", got)
	}
	receive(t, "the end", running.done)
}

func TestListenRefused_B121(t *testing.T) {
	f := &feed{calls: make(chan *fed, 10)}
	p, _ := serve(t, f, transport.ServeOptions{})
	for _, filter := range []string{`5`, `[]`, `{"toolsListChanged":1}`, `{"resourceSubscriptions":"u:1"}`,
		`{"resourceSubscriptions":["` + strings.Repeat(`u:1","`, mcp.MaxResourceSubscriptions) + `u:1"]}`} {
		p.say(listenLine("1", filter))
		if got := p.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`) {
			t.Errorf("%.40s: %s", filter, got)
		}
	}
	p.say(listenLine("1", `{"toolsListChanged":true}`))
	c := receive(t, "the listen call", f.calls)
	p.line()
	c.fail <- &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: errors.New("secret")}
	if got := p.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,`) || strings.Contains(got, "secret") {
		t.Errorf("got %s", got)
	}
}

func TestListensAreBounded(t *testing.T) {
	f := &feed{calls: make(chan *fed, 2000)}
	p, _ := serve(t, f, transport.ServeOptions{})
	n := 0
	for ; n < 2000; n++ {
		p.say(listenLine(fmt.Sprint(n), `{}`))
		if line := p.line(); strings.Contains(line, `"error"`) {
			if !strings.Contains(line, `"limit":"MaxListens"`) {
				t.Errorf("refused with %s", line)
			}
			break
		}
	}
	if n != 1024 {
		t.Errorf("%d were taken", n)
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	for i := 0; ; i++ { // its place is free a moment later
		p.say(listenLine(fmt.Sprintf(`"again %d"`, i), `{}`))
		if !strings.Contains(p.line(), `"error"`) {
			break
		}
	}
}

// TestRequestsBehindInitializedFindTheSessionListening: what the first request
// changes is to reach the client, who may have written it at once with the
// handshake. A handler that does not acknowledge holds nobody up for long.
func TestRequestsBehindInitializedFindTheSessionListening(t *testing.T) {
	for name, slow := range map[string]time.Duration{"slow": 100 * time.Millisecond, "deaf": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, listening := time.Now(), atomic.Int32{}
				p, s := serve(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
					switch req.Method {
					case mcp.MethodListen:
						select {
						case <-time.After(slow):
							listening.Add(1)
						case <-ctx.Done():
							return mcp.Result{}, ctx.Err()
						}
						filter, _ := mcp.ReadFilter(&req.Params)
						if err := caller.Notify(ctx, filter.Acknowledge()); err != nil {
							return mcp.Result{}, err
						}
						<-ctx.Done()
						return mcp.Result{}, ctx.Err()
					case mcp.MethodCallTool:
						return mcp.RawResult(fmt.Appendf(nil, `{"listening":%d}`, listening.Load())), nil
					}
					return mcp.RawResult([]byte(discovered)), nil
				}), transport.ServeOptions{})
				p.say(initLine, initializedLine, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
				p.message()
				got, want := string(p.message().Body.Raw()), `{"listening":2}`
				if name == "deaf" {
					want = `{"listening":0}`
				}
				if got != want {
					t.Errorf("the call found %s, want %s", got, want)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("it waited %v", took)
				}
				_ = p.conn.Close()
				receive(t, "the end", s.done)
			})
		})
	}
}

// TestModernServersListens is the dialing side: two listen calls over one
// connection, whatever ids the clients gave.
func TestModernServersListens_B121(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{Era: mcp.Modern}, transport.LineOptions{})
	listen := func(client, filter string) (*listener, *call, jsonrpc.ID) {
		l := newListener()
		c := start(t, conn, &mcp.Request{
			Method: mcp.MethodListen, Meta: modernMeta(client),
			Params: jsonrpc.Trusted([]byte(`{"notifications":` + filter + `,` + modernMetaJSON + `}`)),
		}, l)
		m := p.expect(mcp.MethodListen)
		p.say(ackLine(m.ID.String(), filter))
		receive(t, "the acknowledgement", l.got)
		return l, c, m.ID
	}
	a, aCall, aID := listen("a", `{"toolsListChanged":true}`)
	b, bCall, bID := listen("b", `{"toolsListChanged":true,"promptsListChanged":true}`)
	p.say(changeLine("tools", bID.String()),
		changeLine("prompts", `"`+bID.String()+`"`), // of another type
		changeLine("tools", "99"), changeLine("tools", `"x"`), changeLine("tools", "1.5"),
		changeLine("tools", aID.String()))
	heard := func(want string) {
		t.Helper()
		if got := receive(t, want, b.got); !strings.HasPrefix(got, "notifications/"+want+"/list_changed ") {
			t.Errorf("b heard %s", got)
		}
	}
	heard("tools")
	heard("prompts")
	p.say(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`) // as some servers have it
	heard("prompts")
	receive(t, "tools", a.got)
	// Cancel one: once, under its own id.
	bCall.cancel(nil)
	if got := p.expect(mcp.NotificationCancelled); !strings.Contains(string(got.Body.Raw()), `"requestId":`+bID.String()) {
		t.Errorf("cancelled %s", got.Body.Raw())
	}
	// The server ends the other one gracefully, and a third one abruptly.
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, aID))
	if _, err := aCall.wait(t); err != nil {
		t.Error(err)
	}
	_, cCall, cID := listen("c", `{"toolsListChanged":true}`)
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + cID.String() + `}}`)
	if e := cCall.failure(t); e.Kind != mcp.ConnectionLost || e.Method != mcp.MethodListen {
		t.Errorf("failed with %v", e)
	}
	// The server dies.
	_, dCall, _ := listen("d", `{"toolsListChanged":true}`)
	if err := p.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if e := dCall.failure(t); e.Kind != mcp.ConnectionLost {
		t.Errorf("failed with %v", e)
	}
	if more := append(a.told(), b.told()...); len(more) != 0 {
		t.Errorf("more came: %q", more)
	}
}

func TestLegacyMattersStayOffAModernWire(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{Era: mcp.Modern}, transport.LineOptions{})
	for _, method := range []string{mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodInitialize} {
		_, err := conn.Handle(t.Context(), &mcp.Request{Method: method, Meta: legacyMeta("a")}, mcp.NoCaller{})
		if !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if _, err := conn.Handle(t.Context(), &mcp.Request{Method: mcp.NotificationRootsListChanged, Notification: true, Meta: legacyMeta("a")}, mcp.NoCaller{}); err != nil {
		t.Error(err)
	}
	// A listen call for the session alone is served without the server.
	l := newListener()
	start(t, conn, &mcp.Request{Method: mcp.MethodListen, Meta: legacyMeta("a"), Params: mcp.Filter{Session: true}.Params()}, l)
	if got := receive(t, "the acknowledgement", l.got); got != mcp.NotificationAcknowledged+` {"notifications":{}}` {
		t.Errorf("acknowledged by %s", got)
	}
	start(t, conn, &mcp.Request{Method: mcp.MethodListen, Meta: legacyMeta("a"), Params: mcp.Filter{Session: true, ToolsListChanged: true}.Params()}, newListener())
	if m := p.expect(mcp.MethodListen); strings.Contains(string(m.Body.Raw()), "session") {
		t.Errorf("sent %s", m.Body.Raw())
	}
}

// TestModernLogMessages: they name no request, and are never guessed between
// clients.
func TestModernLogMessages(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{Era: mcp.Modern}, transport.LineOptions{})
	at := func(client string, level mcp.Level) *mcp.Request {
		req := toolCall(modernMeta(client))
		req.Meta.LogLevel = level
		return req
	}
	log := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	var listeners []*listener
	call := func(client string, level mcp.Level) *call {
		l := newListener()
		listeners = append(listeners, l)
		c := start(t, conn, at(client, level), l)
		p.expect(mcp.MethodCallTool)
		return c
	}
	heard := func() (all []int) {
		// The answer to a ping says that what came before has been taken up.
		p.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		p.line()
		for i, l := range listeners {
			select {
			case <-l.got:
				all = append(all, i)
			default:
			}
		}
		return all
	}
	call("a", "error")
	call("a", "debug")
	p.say(log)
	if got := receive(t, "the message", listeners[1].got); !strings.Contains(got, `"level":"info"`) {
		t.Errorf("heard %s", got)
	}
	b := call("b", "debug")
	p.say(log)
	if got := heard(); !slices.Equal(got, nil) {
		t.Errorf("heard by %v", got)
	}
	b.cancel(nil)
	p.expect(mcp.NotificationCancelled) // of which such a server says no more
	receive(t, "the end of the call", b.done)
	p.say(log)
	receive(t, "the message after the other client's cancellation", listeners[1].got)
	if got := heard(); !slices.Equal(got, nil) {
		t.Errorf("after the other client's cancellation: also heard by %v", got)
	}
}

// TestListensThroughABridge_B121: two listen calls of one client, whose ids differ in
// their type, are two at the server as well.
func TestListensThroughABridge_B121(t *testing.T) {
	conn, server := connect(t, transport.DialOptions{Era: mcp.Modern}, transport.LineOptions{})
	client, _ := serve(t, conn, transport.ServeOptions{})
	client.say(listenLine(`1`, `{"toolsListChanged":true,"promptsListChanged":true}`))
	first := server.expect(mcp.MethodListen).ID.String()
	client.say(listenLine(`"1"`, `{"toolsListChanged":true}`))
	second := server.expect(mcp.MethodListen).ID.String()
	if first == second {
		t.Fatalf("both are %s at the server", first)
	}
	want := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if got := client.line(); got != line {
				t.Fatalf("the client got %s, want %s", got, line)
			}
		}
	}
	// What is granted is told as it is, each message under the client's own id.
	server.say(ackLine(first, `{"toolsListChanged":true}`), ackLine(second, `{"toolsListChanged":true}`))
	acknowledged := []string{client.line(), client.line()}
	slices.Sort(acknowledged)
	if !slices.Equal(acknowledged, []string{ackLine(`"1"`, `{"toolsListChanged":true}`), ackLine(`1`, `{"toolsListChanged":true}`)}) {
		t.Errorf("acknowledged by %q", acknowledged)
	}
	server.say(changeLine("tools", "99"), changeLine("tools", `"x"`), changeLine("resources", first), changeLine("tools", second))
	want(changeLine("tools", `"1"`))
	server.say(changeLine("tools", first))
	want(changeLine("tools", `1`))
	// One is cancelled, and the other one goes on.
	client.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}`)
	if got := server.expect(mcp.NotificationCancelled); !strings.Contains(string(got.Body.Raw()), `"requestId":`+second) {
		t.Errorf("cancelled %s", got.Body.Raw())
	}
	server.say(changeLine("tools", second), changeLine("tools", first))
	want(changeLine("tools", `1`))
	// A graceful end is a response, and that of the server's process an error.
	server.say(`{"jsonrpc":"2.0","id":` + first + `,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":` + first + `}}}`)
	want(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`)
	client.say(listenLine(`2`, `{"toolsListChanged":true}`))
	server.say(ackLine(server.expect(mcp.MethodListen).ID.String(), `{}`))
	want(ackLine(`2`, `{}`))
	_ = server.conn.Close()
	if got := client.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,`) {
		t.Errorf("the client got %s", got)
	}
}
