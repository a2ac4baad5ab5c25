package transport_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A child is a legacy server that many clients share.
type child struct {
	t        *testing.T
	answered chan string // responses of clients to its requests

	mu      sync.Mutex // held while writing
	peer    *peer      // of the last start
	ids     map[string]bool
	methods map[string]int
}

// share returns a pool with one connection to a child that serve answers for, in
// goroutines of their own.
func share(t *testing.T, serve func(c *child, m *jsonrpc.Message)) (*transport.Pool, *child) {
	t.Helper()
	c := &child{t: t, answered: make(chan string, 10_000), methods: make(map[string]int)}
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		link, p := newLink(t, transport.LineOptions{})
		c.mu.Lock()
		c.peer, c.ids = p, make(map[string]bool)
		c.mu.Unlock()
		go c.run(p, serve)
		return transport.Dial(ctx, link, transport.DialOptions{Era: mcp.Legacy, Capabilities: meta.Capabilities})
	}, transport.PoolOptions{Isolation: transport.Shared})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool, c
}

func (c *child) write(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The link may have ended.
	_, _ = c.peer.conn.Write([]byte(line + "\n"))
}

// kill ends the child.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.peer.conn.Close()
}

func (c *child) run(p *peer, serve func(*child, *jsonrpc.Message)) {
	for {
		line, err := p.lines.ReadLine()
		if err != nil {
			return
		}
		m := new(jsonrpc.Message)
		if err := jsonrpc.Scan(line, m); err != nil {
			c.t.Error(err)
			return
		}
		c.mu.Lock()
		c.methods[string(m.Method)]++
		if m.Kind == jsonrpc.Response {
			c.answered <- string(line)
		}
		if m.Kind == jsonrpc.Request {
			if n, ok := m.ID.Int(); c.ids[m.ID.Key()] || !ok || n < 0 || n >= 1<<31 {
				c.t.Errorf("B019: id %s is taken, or not small", m.ID)
			}
			c.ids[m.ID.Key()] = true
		}
		c.mu.Unlock()
		if string(m.Method) == mcp.MethodInitialize {
			c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, initialized(mcp.Revision20250618)))
			continue
		}
		go serve(c, m)
	}
}

func (c *child) count(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.methods[method]
}

func (c *child) reply(m *jsonrpc.Message, result string) {
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

// TestIDsOfManyClients_B143: ten clients of one child use the same ids, as
// numbers and as equal strings; each gets its own answers.
func TestIDsOfManyClients_B143_S130(t *testing.T) {
	pool, c := share(t, func(c *child, m *jsonrpc.Message) {
		if m.Kind != jsonrpc.Request {
			return
		}
		<-time.After(rand.N(3 * time.Millisecond))
		if rand.IntN(10) == 0 {
			// A request of its own, under an id that clients use.
			c.write(`{"jsonrpc":"2.0","id":` + fmt.Sprint(rand.IntN(100)) + `,"method":"roots/list"}`)
		}
		arguments := m.Body.Get("arguments")
		c.reply(m, `{"echo":`+string(arguments.Raw())+`}`)
	})
	var wg sync.WaitGroup
	for i := range 10 {
		p, _ := serve(t, pool, transport.ServeOptions{MaxQueued: 1000})
		wg.Go(func() {
			p.say(strings.Replace(initLine, `{"elicitation":{}}`, `{}`, 1))
			p.line()
			p.say(initializedLine)
			want := make(map[string]bool)
			go func() {
				for n := range 100 {
					for _, id := range []string{fmt.Sprint(n), fmt.Sprintf("%q", fmt.Sprint(n))} {
						p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"x","arguments":{"client":%d,"id":%s}}}`, id, i, id))
					}
				}
			}()
			for range 200 {
				m := p.message()
				if got := string(m.Body.Raw()); got != fmt.Sprintf(`{"echo":{"client":%d,"id":%s}}`, i, m.ID) {
					t.Errorf("client %d got %s under %s", i, got, m.ID)
				}
				want[m.ID.Key()] = true
			}
			if len(want) != 200 {
				t.Errorf("client %d got %d answers", i, len(want))
			}
		})
	}
	wg.Wait()
	if n := c.count(mcp.MethodInitialize); n != 1 {
		t.Errorf("%d handshakes", n)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	for len(c.answered) > 0 {
		if line := <-c.answered; !strings.Contains(line, `"error":{"code":-32601,`) {
			t.Errorf("a question was answered by %s", line)
		}
	}
}

// TestClientThatLeaves_B143: its call is cancelled at the child, its answer
// reaches nobody, and the others go on.
func TestClientThatLeaves_B143_B122(t *testing.T) {
	started := make(chan *jsonrpc.Message, 10)
	cancelled := make(chan string, 10)
	pool, c := share(t, func(_ *child, m *jsonrpc.Message) {
		switch string(m.Method) {
		case mcp.MethodCallTool:
			started <- m
		case mcp.NotificationCancelled:
			id, _ := m.Body.Lookup("requestId")
			cancelled <- string(id)
		}
	})
	leaving, running := serve(t, pool, transport.ServeOptions{Drain: 50 * time.Millisecond})
	staying, _ := serve(t, pool, transport.ServeOptions{})
	for _, p := range []*peer{leaving, staying} {
		p.say(strings.Replace(initLine, `{"elicitation":{}}`, `{}`, 1))
		p.line()
		p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
	}
	first, second := receive(t, "a call", started), receive(t, "a call", started)
	_ = leaving.conn.Close()
	receive(t, "the end", running.done)
	id := receive(t, "the cancellation", cancelled)
	lost, kept := first, second
	if id != first.ID.String() {
		lost, kept = second, first
	}
	c.reply(lost, `{"lost":1}`)
	c.reply(kept, `{"kept":1}`)
	if m := staying.message(); string(m.Body.Raw()) != `{"kept":1}` || m.ID.String() != "1" {
		t.Errorf("got %s", m.Body.Raw())
	}
}

// TestResourcesOfManyClients_B152: the child sees one subscribe and one
// unsubscribe, each client its own updates.
func TestResourcesOfManyClients_B152(t *testing.T) {
	pool, c := share(t, func(c *child, m *jsonrpc.Message) {
		if m.Kind == jsonrpc.Request {
			c.reply(m, `{}`)
		}
	})
	var clients []*peer
	for range 3 {
		p, _ := serve(t, pool, transport.ServeOptions{})
		clients = append(clients, p)
		p.handshakeWithout()
	}
	ask := func(p *peer, method, uri string) {
		t.Helper()
		p.say(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{"uri":"` + uri + `"}}`)
		if got := p.line(); got != `{"jsonrpc":"2.0","id":7,"result":{}}` {
			t.Errorf("%s: %s", method, got)
		}
	}
	update := func(uri string) {
		c.write(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
	}
	ask(clients[0], mcp.MethodSubscribe, "u:1")
	ask(clients[1], mcp.MethodSubscribe, "u:1")
	ask(clients[2], mcp.MethodSubscribe, "u:2")
	if n := c.count(mcp.MethodSubscribe); n != 2 {
		t.Errorf("%d subscriptions", n)
	}
	update("u:1")
	update("u:2")
	for i, want := range []string{"u:1", "u:1", "u:2"} {
		if got := clients[i].line(); !strings.Contains(got, `{"uri":"`+want+`"}`) {
			t.Errorf("client %d got %s", i, got)
		}
	}
	ask(clients[0], mcp.MethodUnsubscribe, "u:1")
	update("u:1")
	if got := clients[1].line(); !strings.Contains(got, `{"uri":"u:1"}`) {
		t.Errorf("got %s", got)
	}
	if n := c.count(mcp.MethodUnsubscribe); n != 0 {
		t.Errorf("%d unsubscriptions", n)
	}
	_ = clients[1].conn.Close()
	for over := time.Now().Add(patience); c.count(mcp.MethodUnsubscribe) == 0; {
		if time.Now().After(over) {
			t.Fatal("the child was not told")
		}
		<-time.After(time.Millisecond)
	}
	ask(clients[0], "ping", "") // nothing more had come
}

// handshakeWithout is that of a client that cannot be asked anything.
func (p *peer) handshakeWithout() {
	p.t.Helper()
	p.say(strings.Replace(initLine, `{"elicitation":{}}`, `{}`, 1))
	p.line()
	p.say(initializedLine)
}

// TestQuestionsAndLogsOfASharedChild_B151: never guessed between clients.
func TestQuestionsAndLogsOfASharedChild_B151(t *testing.T) {
	started := make(chan *jsonrpc.Message, 10)
	pool, c := share(t, func(c *child, m *jsonrpc.Message) {
		switch {
		case string(m.Method) == mcp.MethodCallTool:
			started <- m
		case m.Kind == jsonrpc.Request:
			c.reply(m, `{}`)
		}
	})
	var clients []*peer
	for range 2 {
		p, _ := serve(t, pool, transport.ServeOptions{})
		clients = append(clients, p)
		p.say(initLine) // elicitation is declared
		p.line()
		p.say(initializedLine)
	}
	call := func(p *peer, id string) *jsonrpc.Message {
		t.Helper()
		p.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x"}}`)
		return receive(t, "the call", started)
	}
	question := `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}`
	log := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"secret"}}`
	a := call(clients[0], `1`)
	c.write(log)
	if got := clients[0].line(); !strings.Contains(got, "secret") {
		t.Errorf("got %s", got)
	}
	c.write(question)
	asked := clients[0].expect(mcp.MethodElicit)
	clients[0].answer(asked, `{"action":"accept"}`)
	if got := receive(t, "the answer", c.answered); got != `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}` {
		t.Errorf("answered %s", got)
	}
	b := call(clients[1], `1`)
	// Two clients have calls in flight: the question is refused, the log dropped.
	c.write(log)
	c.write(question)
	c.reply(a, `{"to":"a"}`)
	c.reply(b, `{"to":"b"}`)
	for i, want := range []string{"a", "b"} {
		if m := clients[i].message(); string(m.Body.Raw()) != `{"to":"`+want+`"}` {
			t.Errorf("client %d got %s %s", i, m.Method, m.Body.Raw())
		}
	}
	if got := receive(t, "the refusal", c.answered); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,`) {
		t.Errorf("answered %s", got)
	}
}

// TestRestartOfTheChild_B154: calls in flight fail, later ones reach a new child,
// and subscriptions are made again.
func TestRestartOfTheChild_B154_B052(t *testing.T) {
	started := make(chan *jsonrpc.Message, 10)
	subscribed := make(chan struct{}, 10)
	pool, c := share(t, func(c *child, m *jsonrpc.Message) {
		switch string(m.Method) {
		case mcp.MethodCallTool:
			started <- m
		case mcp.MethodSubscribe:
			c.reply(m, `{}`)
			subscribed <- struct{}{}
		default:
			if m.Kind == jsonrpc.Request {
				c.reply(m, `{"tools":[]}`)
			}
		}
	})
	p, _ := serve(t, pool, transport.ServeOptions{})
	p.handshakeWithout()
	p.say(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"u:1"}}`)
	p.line()
	receive(t, "the subscription", subscribed)
	for i := range 2 {
		p.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
		receive(t, "the call", started)
		c.kill()
		if got := p.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,`) || !strings.Contains(got, `"outcome":"maybe executed"`) {
			t.Errorf("%d: %s", i, got)
		}
		p.say(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		if got := p.line(); got != `{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}` {
			t.Errorf("%d: %s", i, got)
		}
		receive(t, "the subscription made again", subscribed)
	}
}

// TestIDsComeBackAsTheyWere_B020, in flight together.
func TestIDsComeBackAsTheyWere_B020(t *testing.T) {
	ids := []string{`"1"`, `1`, `"001"`, `"1e3"`, `""`, `"init-α"`, `0`, `-1`, `"\u00e9"`, `9007199254740993`}
	arrived, release := make(chan struct{}, len(ids)), make(chan struct{})
	pool, _ := share(t, func(c *child, m *jsonrpc.Message) {
		if m.Kind != jsonrpc.Request {
			return
		}
		arrived <- struct{}{}
		<-release
		arguments := m.Body.Get("arguments")
		c.reply(m, string(arguments.Raw()))
	})
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		p, _ := serve(t, pool, transport.ServeOptions{})
		meta := "," + modernMetaJSON
		if era == mcp.Legacy {
			p.handshakeWithout()
			meta = ""
		}
		for _, id := range ids {
			p.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x","arguments":{"id":` + id + `}` + meta + `}}`)
		}
		for range ids {
			receive(t, "a call", arrived)
		}
		for range ids {
			release <- struct{}{}
		}
		for range ids {
			m := p.message()
			if id := m.Body.Get("id"); string(id.Raw()) != string(m.ID.Raw()) {
				t.Errorf("%s: the answer to %s came under %s", era, id.Raw(), m.ID)
			}
		}
	}
}
