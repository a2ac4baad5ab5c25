package transport_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/transport"
)

// An asker asks in each call of the tool ask, and then gives back the answer and
// the arguments that the call was made with.
type asker struct {
	ended chan error    // causes of the contexts of calls that failed
	then  chan struct{} // closed when calls may end after the answer; nil for at once
}

func (a *asker) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if name, _ := req.Params.LookupString("name"); name != "ask" {
		return mcp.RawResult([]byte(`{"asked":false}`)), nil
	}
	answer, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte(`{"message":"?"}`))})
	if err == nil && a.then != nil {
		select {
		case <-a.then:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		a.ended <- context.Cause(ctx)
		return mcp.Result{}, err
	}
	arguments := req.Params.Get("arguments")
	return mcp.RawResult(fmt.Appendf(nil, `{"answer":%s,"arguments":%s}`, answer.Raw(), arguments.Raw())), nil
}

const askingMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

func askCall(id, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"ask","arguments":` + arguments + `,` + askingMeta + `}}`
}

// retryCall is askCall with an answer, under the state that m holds.
func retryCall(t *testing.T, id, arguments string, m *jsonrpc.Message) string {
	t.Helper()
	state, ok := m.Body.Lookup("requestState")
	if !ok {
		t.Fatalf("no input is required: %s", m.Body.Raw())
	}
	return strings.Replace(askCall(id, arguments), `"name":`, `"inputResponses":{"q1":{"n":`+id+`}},"requestState":`+string(state)+`,"name":`, 1)
}

// TestModernClientIsAskedOnAByteStream: parked calls need no worker, and leave
// the limit and the order of calls.
func TestModernClientIsAskedOnAByteStream_B151(t *testing.T) {
	for _, opts := range []transport.ServeOptions{{}, {MaxInFlight: 1}, {Ordered: true}} {
		t.Run(fmt.Sprint(opts.MaxInFlight, opts.Ordered), func(t *testing.T) {
			p, _ := serve(t, new(asker), opts)
			// So many that the reader serves requests itself.
			for range 40 {
				p.say(strings.Replace(askCall("0", "{}"), `"ask"`, `"x"`, 1))
				if got := p.line(); got != `{"jsonrpc":"2.0","id":0,"result":{"asked":false,"resultType":"complete"}}` {
					t.Fatalf("got %s", got)
				}
			}
			var asked []*jsonrpc.Message
			for i := range 5 {
				p.say(askCall("1", fmt.Sprint(i)))
				m := p.message()
				if got := m.Body.Get("inputRequests"); string(got.Raw()) != `{"q1":{"method":"elicitation/create","params":{"message":"?"}}}` {
					t.Fatalf("got %s", m.Body.Raw())
				}
				asked = append(asked, m)
			}
			for i := len(asked) - 1; i >= 0; i-- {
				p.say(retryCall(t, `2`, fmt.Sprint(i), asked[i]))
				if got, want := p.line(), fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"result":{"answer":{"n":2},"arguments":%d,"resultType":"complete"}}`, i); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}
			p.say(retryCall(t, `3`, `0`, asked[0]))
			if got := p.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":3,"error":{"code":-32602,`) {
				t.Errorf("a used state gives %s", got)
			}
		})
	}
}

func TestParkedCallsAreCappedOnAByteStream(t *testing.T) {
	a := &asker{ended: make(chan error, 10)}
	p, _ := serve(t, a, transport.ServeOptions{Park: park.Options{MaxParked: 1}})
	p.say(askCall(`1`, `1`))
	p.line()
	p.say(askCall(`2`, `2`))
	if got := p.line(); !strings.Contains(got, `"limit":"MaxParked"`) {
		t.Errorf("got %s", got)
	}
}

// TestCancellationOfAskedCalls: of an answered request it does nothing, of the
// retry it cancels the call.
func TestCancellationOfAskedCalls_B136(t *testing.T) {
	a := &asker{ended: make(chan error, 10), then: make(chan struct{})}
	p, _ := serve(t, a, transport.ServeOptions{})
	cancel := func(id string) {
		p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	}
	p.say(askCall(`1`, `1`))
	m := p.message()
	cancel(`1`)
	p.say(retryCall(t, `2`, `1`, m))
	p.say(strings.Replace(askCall("3", "{}"), `"ask"`, `"x"`, 1))
	if got := p.message(); got.ID.String() != "3" || len(a.ended) > 0 {
		t.Fatalf("%s was answered, %d calls have ended", got.ID, len(a.ended))
	}
	cancel(`2`)
	if err := receive(t, "the end", a.ended); err == nil || err.Error() != "cancelled by the client" {
		t.Errorf("the cause is %v", err)
	}
	p.say(strings.Replace(askCall("4", "{}"), `"ask"`, `"x"`, 1))
	if got := p.message(); got.ID.String() != "4" {
		t.Errorf("%s was answered", got.ID)
	}
}

func TestParkedCallsEndWithTheirConnection(t *testing.T) {
	a := &asker{ended: make(chan error, 10)}
	p, s := serve(t, a, transport.ServeOptions{Drain: time.Hour})
	p.say(askCall(`1`, `1`))
	p.line()
	_ = p.conn.Close()
	receive(t, "the end of Serve", s.done)
	if err := receive(t, "the end of the call", a.ended); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("the cause is %v", err)
	}
}

// TestParkedRequestsKeepTheirMemory: messages whose memory is used again do not
// write into those that are still needed.
func TestParkedRequestsKeepTheirMemory(t *testing.T) {
	p, _ := serve(t, new(asker), transport.ServeOptions{})
	arguments := func(i int) string {
		return `{"text":"` + strings.Repeat(string(rune('a'+i)), 100_000) + `"}`
	}
	var asked []*jsonrpc.Message
	for i := range 8 {
		p.say(askCall(`1`, arguments(i)))
		asked = append(asked, p.message())
		for j := range 4 {
			p.say(strings.Replace(askCall("0", arguments(20+j)), `"ask"`, `"x"`, 1))
			p.line()
		}
	}
	for i, m := range asked {
		p.say(retryCall(t, `2`, arguments(i), m))
		got := p.message().Body.Get("arguments")
		if string(got.Raw()) != arguments(i) {
			t.Errorf("call %d has got %.40s instead of %.40s", i, got.Raw(), arguments(i))
		}
	}
}

// TestClockOfACallStandsStillWhileItIsParked: the time that a client takes to
// answer is not the legacy server's.
func TestClockOfACallStandsStillWhileItIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, server := connect(t, transport.DialOptions{
			MaxCall: time.Minute, Capabilities: []byte(`{"elicitation":{}}`),
		}, transport.LineOptions{})
		p, _ := serve(t, conn, transport.ServeOptions{})
		p.patience = time.Hour
		server.patience = time.Hour
		var playing sync.WaitGroup
		playing.Go(func() {
			call := server.expect(mcp.MethodCallTool)
			server.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`)
			if answer := server.message(); string(answer.Body.Raw()) != `{"n":2}` {
				t.Errorf("answered %s", answer.Body.Raw())
			}
			time.Sleep(time.Minute - time.Second)
			server.answer(call, `{"done":true}`)
		})
		p.say(askCall(`1`, `{}`))
		m := p.message()
		time.Sleep(park.DefaultLife - time.Second)
		p.say(retryCall(t, `2`, `{}`, m))
		if got := p.line(); got != `{"jsonrpc":"2.0","id":2,"result":{"done":true,"resultType":"complete"}}` {
			t.Errorf("got %s", got)
		}
		playing.Wait()
		// A state of before a restart is the server's, which has no such thing.
		p.say(strings.Replace(retryCall(t, `3`, `{}`, m), "mcpsplice.", "mcpsplice.X", 1))
		if got := p.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":3,"error":{"code":-32602,`) {
			t.Errorf("got %s", got)
		}
	})
}

// TestStateThatExpiresCancelsAtTheServer: a client that does not come back with its
// answer has a call which nobody waits for.
func TestStateThatExpiresCancelsAtTheServer_B136(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, server := connect(t, transport.DialOptions{Capabilities: []byte(`{"elicitation":{}}`)}, transport.LineOptions{})
		p, _ := serve(t, conn, transport.ServeOptions{})
		p.patience, server.patience = time.Hour, time.Hour
		p.say(askCall(`1`, `{}`))
		call := server.expect(mcp.MethodCallTool)
		server.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`)
		m := p.message()
		began := time.Now()
		cancelled := server.expect(mcp.NotificationCancelled)
		if id, _ := cancelled.Body.Lookup("requestId"); string(id) != call.ID.String() || time.Since(began) != park.DefaultLife {
			t.Errorf("%s is cancelled after %v", id, time.Since(began))
		}
		// Had it come before, the tool would have gone on with an answer.
		if answer := server.message(); answer.Kind != jsonrpc.Response || answer.ID.String() != `"q"` {
			t.Errorf("then %s came", answer.Body.Raw())
		}
		p.say(retryCall(t, `2`, `{}`, m))
		if got := p.line(); !strings.Contains(got, `"error":{"code":-32602,`) {
			t.Errorf("got %s", got)
		}
	})
}

// TestWithdrawnQuestionOfAParkedCall: what the server does instead of waiting for the
// answer is there for the retry, whose answer it does not get.
func TestWithdrawnQuestionOfAParkedCall_B151(t *testing.T) {
	conn, server := connect(t, transport.DialOptions{Capabilities: []byte(`{"elicitation":{}}`)}, transport.LineOptions{})
	p, _ := serve(t, conn, transport.ServeOptions{})
	p.say(askCall(`1`, `{}`))
	call := server.expect(mcp.MethodCallTool)
	server.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`)
	m := p.message()
	server.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`)
	server.answer(call, `{"without":true}`)
	// Whoever answers this has read what came before.
	server.say(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if got := server.line(); got != `{"jsonrpc":"2.0","id":"p","result":{}}` {
		t.Errorf("the server got %s", got)
	}
	p.say(retryCall(t, `2`, `{}`, m))
	if got := p.line(); got != `{"jsonrpc":"2.0","id":2,"result":{"without":true,"resultType":"complete"}}` {
		t.Errorf("got %s", got)
	}
	server.say(`{"jsonrpc":"2.0","id":"p2","method":"ping"}`)
	if got := server.line(); got != `{"jsonrpc":"2.0","id":"p2","result":{}}` {
		t.Errorf("the server got %s", got)
	}
}

// TestPagesOfALegacyServerForAModernClient: the client gets no id, and is not told
// that the user is done.
func TestPagesOfALegacyServerForAModernClient(t *testing.T) {
	conn, server := connect(t, transport.DialOptions{Capabilities: []byte(`{"elicitation":{"url":{}}}`)}, transport.LineOptions{})
	p, _ := serve(t, conn, transport.ServeOptions{})
	withURL := func(line string) string {
		return strings.Replace(line, `"elicitation":{}`, `"elicitation":{"url":{}}`, 1)
	}
	complete := `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}`
	p.say(withURL(askCall(`1`, `{}`)))
	call := server.expect(mcp.MethodCallTool)
	server.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":"https://a"}}`)
	m := p.message()
	if got := m.Body.Get("inputRequests"); string(got.Raw()) != `{"q1":{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}}}` {
		t.Errorf("got %s", m.Body.Raw())
	}
	server.say(complete)
	p.say(withURL(retryCall(t, `2`, `{}`, m)))
	if got := server.line(); got != `{"jsonrpc":"2.0","id":"q","result":{"n":2}}` {
		t.Errorf("the server got %s", got)
	}
	server.say(complete)
	server.answer(call, `{"done":true}`)
	if got := p.line(); got != `{"jsonrpc":"2.0","id":2,"result":{"done":true,"resultType":"complete"}}` {
		t.Errorf("got %s", got)
	}
}

// TestSeveralQuestionsOfALegacyServer at once, and again in the next round: each gets
// its own answer, under whichever retry it is asked.
func TestSeveralQuestionsOfALegacyServer_B151(t *testing.T) {
	const declared = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`
	conn, server := connect(t, transport.DialOptions{Capabilities: []byte(declared)}, transport.LineOptions{})
	p, _ := serve(t, conn, transport.ServeOptions{})
	questions := map[string]string{
		"1": `"method":"elicitation/create","params":{"message":"?"}`,
		"2": `"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[{"name":"t"}]}`,
		"3": `"method":"roots/list"`,
		"4": `"method":"elicitation/create","params":{"mode":"url","url":"https://a"}`,
	}
	var playing sync.WaitGroup
	playing.Go(func() {
		server.answer(server.expect(mcp.MethodPing), `{}`)
		call := server.expect(mcp.MethodCallTool)
		for round := range 2 {
			for id, question := range questions {
				server.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d.%s",%s}`, round, id, question))
			}
			for range questions {
				got := server.message()
				id, _ := jsonrpc.Unquote(got.ID.Raw())
				if want := `{"of":"` + wordIn(questions[id[2:]]) + `"}`; got.Failed || string(got.Body.Raw()) != want {
					t.Errorf("%s is answered %s, not %s", id, got.Body.Raw(), want)
				}
			}
		}
		server.answer(call, `{"done":true}`)
	})
	line := strings.Replace(askCall(`1`, `{}`), `{"elicitation":{}}`, declared, 1)
	asked := make(map[string]bool)
	for p.say(line); ; p.say(line) {
		m := p.message()
		requests := m.Body.Get("inputRequests")
		if requests.IsZero() {
			if string(m.Body.Raw()) != `{"done":true,"resultType":"complete"}` {
				t.Errorf("got %s", m.Body.Raw())
			}
			break
		}
		var answers []string
		for key, raw := range requests.Members() {
			asked[key] = true
			answers = append(answers, fmt.Sprintf(`"%s":{"of":"%s"}`, key, wordIn(string(raw))))
		}
		state, _ := m.Body.Lookup("requestState")
		line = strings.Replace(askCall(`1`, `{}`), `{"elicitation":{}}`, declared, 1)
		line = strings.Replace(line, `"name":`, `"inputResponses":{`+strings.Join(answers, ",")+`},"requestState":`+string(state)+`,"name":`, 1)
	}
	playing.Wait()
	if len(asked) != 8 {
		t.Errorf("%d questions were put", len(asked))
	}
}

// wordIn tells the questions of a test apart.
func wordIn(question string) string {
	for _, word := range []string{"url", "sampling", "roots", "elicitation"} {
		if strings.Contains(question, word) {
			return word
		}
	}
	return ""
}

// TestServerThatReadsLateIsToldFirst: a question fails when the server has been told that
// its call was left, also if there was no room for that at once.
func TestServerThatReadsLateIsToldFirst_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 5 {
			conn, p := connect(t, transport.DialOptions{Capabilities: []byte(`{"elicitation":{}}`)}, transport.LineOptions{MaxQueue: 64 << 10})
			l := newListener()
			asked := make(chan struct{})
			l.ask = func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
				close(asked)
				<-ctx.Done()
				return mcp.Result{}, ctx.Err()
			}
			meta := legacyMeta("a")
			meta.Capabilities = []byte(`{"elicitation":{}}`)
			ctx, cancel := context.WithCancel(t.Context())
			c := startWith(ctx, t, conn, &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(`{"name":"x"}`)), Meta: meta}, l)
			p.expect(mcp.MethodCallTool)
			p.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`)
			<-asked
			large := toolCall(meta)
			large.Params = jsonrpc.Trusted([]byte(`{"name":"` + strings.Repeat("x", 64<<10-100) + `"}`)) // leaves no room
			for range 3 {                                                                                // of which one is being written
				start(t, conn, large, mcp.NoCaller{})
			}
			synctest.Wait()
			cancel()
			<-c.done
			time.Sleep(time.Second)
			var got []string
			for len(got) < 2 {
				switch m := p.message(); {
				case m.Kind == jsonrpc.Response:
					got = append(got, "answer")
				case string(m.Method) == mcp.NotificationCancelled:
					got = append(got, "cancelled")
				}
			}
			if got[0] != "cancelled" {
				t.Errorf("the server is sent %q", got)
			}
			go p.drain()
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
