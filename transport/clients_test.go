package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// busy plays a child that answers everything but tools' calls, which it hands out.
func busy() (func(*child, *jsonrpc.Message), chan *jsonrpc.Message) {
	started := make(chan *jsonrpc.Message, 10)
	return func(c *child, m *jsonrpc.Message) {
		switch {
		case string(m.Method) == mcp.MethodCallTool:
			started <- m
		case m.Kind == jsonrpc.Request:
			c.reply(m, `{}`)
		}
	}, started
}

// settled returns when all that was written before has been read: the answer to a
// ping says so.
func (c *child) settled() {
	c.t.Helper()
	c.write(`{"jsonrpc":"2.0","id":"settled","method":"ping"}`)
	if got := receive(c.t, "the answer to a ping", c.answered); got != `{"jsonrpc":"2.0","id":"settled","result":{}}` {
		c.t.Errorf("answered %s", got)
	}
}

// TestLogLevelsOfManyClients: the child is told of the most verbose level, once,
// and each client hears what its own lets through.
func TestLogLevelsOfManyClients(t *testing.T) {
	serveChild, started := busy()
	levels := make(chan string, 10)
	pool, c := share(t, func(c *child, m *jsonrpc.Message) {
		if string(m.Method) == mcp.MethodSetLevel {
			level, _ := m.Body.LookupString("level")
			levels <- level
		}
		serveChild(c, m)
	})
	var clients []*peer
	for _, level := range []string{"error", "debug"} {
		p, _ := serve(t, pool, transport.ServeOptions{})
		clients = append(clients, p)
		p.handshakeWithout()
		p.say(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"` + level + `"}}`)
		p.line()
	}
	call := func(i int) *jsonrpc.Message {
		t.Helper()
		clients[i].say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
		return receive(t, "the call", started)
	}
	logs := func() {
		for _, level := range []string{"debug", "info", "error"} {
			c.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":1}}`)
		}
		c.settled()
	}
	hears := func(i int, levels ...string) {
		t.Helper()
		for _, level := range levels {
			if got := clients[i].line(); !strings.Contains(got, `"level":"`+level+`"`) {
				t.Errorf("client %d got %s and not %s", i, got, level)
			}
		}
		if m := clients[i].message(); m.Kind != jsonrpc.Response {
			t.Errorf("client %d got %s", i, m.Body.Raw())
		}
	}
	for range 2 {
		quiet := call(0)
		logs()
		c.reply(quiet, `{}`)
		hears(0, "error")
		verbose := call(1)
		logs()
		c.reply(verbose, `{}`)
		hears(1, "debug", "info", "error")
	}
	// Calls of two clients: whose the messages are is not known.
	quiet, verbose := call(0), call(1)
	logs()
	c.reply(quiet, `{}`)
	c.reply(verbose, `{}`)
	hears(0)
	hears(1)
	close(levels)
	var told []string
	for level := range levels {
		told = append(told, level)
	}
	if got := strings.Join(told, " "); !strings.HasSuffix(got, "debug") || strings.Count(got, "debug") != 1 || strings.Contains(got, "debug ") {
		t.Errorf("the child was told %s", got)
	}
}

// TestProgressOfManyClients_B139: all use the same token and the same id.
func TestProgressOfManyClients_B139_B143(t *testing.T) {
	serveChild, started := busy()
	pool, c := share(t, serveChild)
	var clients []*peer
	var calls []*jsonrpc.Message
	for i := range 3 {
		p, _ := serve(t, pool, transport.ServeOptions{})
		clients = append(clients, p)
		p.handshakeWithout()
		p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"i":%d},"_meta":{"progressToken":"same"}}}`, i))
		calls = append(calls, receive(t, "the call", started))
	}
	for round := range 3 {
		for i := range calls {
			token := mcp.ReadProgressToken(&calls[i].Meta)
			c.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d%d}}`, token, i+1, round))
		}
	}
	for i := len(calls) - 1; i >= 0; i-- {
		c.reply(calls[i], fmt.Sprintf(`{"i":%d}`, i))
	}
	for i, p := range clients {
		for round := range 3 {
			if got, want := p.line(), fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"same","progress":%d%d}}`, i+1, round); got != want {
				t.Errorf("client %d got %s", i, got)
			}
		}
		if got, want := p.line(), fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"result":{"i":%d}}`, i); got != want {
			t.Errorf("client %d got %s", i, got)
		}
	}
}

// TestModernClientsOfASharedChild_B151: a parked call is in flight, so that a
// question beside another client's call is nobody's.
func TestModernClientsOfASharedChild_B151(t *testing.T) {
	serveChild, started := busy()
	pool, c := share(t, serveChild)
	a, _ := serve(t, pool, transport.ServeOptions{})
	b, _ := serve(t, pool, transport.ServeOptions{})
	question := `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}`
	a.say(askCall(`1`, `{}`))
	first := receive(t, "the call", started)
	c.write(question)
	asked := a.message()
	if got := asked.Body.Get("inputRequests"); got.IsZero() {
		t.Fatalf("got %s", asked.Body.Raw())
	}
	b.say(askCall(`1`, `{}`))
	second := receive(t, "the call", started)
	c.write(strings.Replace(question, `"id":1`, `"id":2`, 1))
	if got := receive(t, "the refusal", c.answered); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,`) {
		t.Errorf("answered %s", got)
	}
	a.say(retryCall(t, `2`, `{}`, asked))
	if got := receive(t, "the answer", c.answered); got != `{"jsonrpc":"2.0","id":1,"result":{"n":2}}` {
		t.Errorf("answered %s", got)
	}
	c.reply(second, `{"to":"b"}`)
	c.reply(first, `{"to":"a"}`)
	for p, want := range map[*peer]string{a: `{"to":"a","resultType":"complete"}`, b: `{"to":"b","resultType":"complete"}`} {
		if m := p.message(); string(m.Body.Raw()) != want {
			t.Errorf("got %s, not %s", m.Body.Raw(), want)
		}
	}
}
