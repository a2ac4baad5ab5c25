package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// needing returns a backend that answers a tool's calls with results, one after
// the other, and the last one from then on.
func needing(results ...string) *backend {
	n := 0
	return &backend{serve: func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		result := results[min(n, len(results)-1)]
		n++
		return mcp.RawResult([]byte(result)), nil
	}}
}

// paramsOf returns the params of all calls of tools.
func (b *backend) paramsOf() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, req := range b.got {
		if req.Method == mcp.MethodCallTool {
			all = append(all, string(req.Params.Raw()))
		}
	}
	return all
}

// called is a call of a tool in the background.
type called struct {
	out  outlet
	done chan string // result or error
	stop context.CancelFunc
}

func callTool(t *testing.T, s *session.Server, params string) *called {
	ctx, stop := context.WithCancel(t.Context())
	c := &called{out: make(outlet, 100), done: make(chan string, 1), stop: stop}
	t.Cleanup(stop)
	go func() {
		result, err := s.Handle(ctx, scan(t, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":`+params+`}`), c.out)
		if err != nil {
			wire := jsonrpc.ToWire(err)
			c.done <- fmt.Sprintf("error %d %s %s", wire.Code, wire.Message, wire.Data.Raw())
			return
		}
		c.done <- string(result.Raw())
	}()
	return c
}

// question takes the next question and returns it, with its id for the answer.
func (c *called) question(t *testing.T) (id, text string) {
	t.Helper()
	frame := receive(t, "a question", c.out)
	m := scan(t, frame)
	return m.ID.String(), string(m.Method) + " " + string(m.Body.Raw())
}

// TestInputIsAskedOfALegacyClient: what a modern server's result asks is put to
// the client, and the call is made again with the answers and the state.
func TestInputIsAskedOfALegacyClient_B151(t *testing.T) {
	b := needing(`{"resultType":"input_required","requestState":"s\u0031","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?","z":1.0}},`+
		`"\u0062\"":{"method":"roots/list"},"c":{"method":"sampling/createMessage","params":{}}}}`,
		`{"resultType":"input_required","inputRequests":{"d":{"method":"roots/list"}}}`, `{"content":[],"resultType":"complete"}`)
	s := serving(t, b)
	c := callTool(t, s, `{"arguments":{"n":9007199254740993},"name":"t","_meta":{"progressToken":1}}`)
	answers := map[string]string{
		`elicitation/create {"message":"?","z":1.0}`: `{"action":"accept","n":1.0}`,
		`roots/list `:               `{"roots":[]}`,
		`sampling/createMessage {}`: `{"role":"assistant"}`,
	}
	for range 3 {
		id, text := c.question(t)
		if !s.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":`+answers[text]+`}`)) {
			t.Errorf("the answer to %s was not taken", text)
		}
	}
	id, text := c.question(t)
	s.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":`+answers[text]+`}`))
	if got := receive(t, "the result", c.done); got != `{"content":[],"resultType":"complete"}` {
		t.Errorf("got %s", got)
	}
	got := b.paramsOf()
	want := []string{
		`{"arguments":{"n":9007199254740993},"name":"t","_meta":{"progressToken":1}}`,
		`{"arguments":{"n":9007199254740993},"name":"t","_meta":{"progressToken":1},"inputResponses":{"a":{"action":"accept","n":1.0},"\u0062\"":{"roots":[]},"c":{"role":"assistant"}},"requestState":"s\u0031"}`,
		`{"arguments":{"n":9007199254740993},"name":"t","_meta":{"progressToken":1},"inputResponses":{"d":{"roots":[]}}}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the server got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestInputThatCannotBeHad(t *testing.T) {
	form := `{"method":"elicitation/create","params":{"message":"?"}}`
	input := func(requests string) string {
		return `{"resultType":"input_required","requestState":"s","inputRequests":{` + requests + `}}`
	}
	for _, tt := range []struct{ name, result, want string }{
		{"a mode that is not declared", input(`"a":` + form + `,"b":{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}}`),
			`error -32021 Missing required client capability: the server asks elicitation/create {"requiredCapabilities":{"elicitation":{"url":{}}}}`},
		{"tools that are not declared", input(`"a":{"method":"sampling/createMessage","params":{"tools":[]}}`),
			`error -32021 Missing required client capability: the server asks sampling/createMessage {"requiredCapabilities":{"sampling":{"tools":{}}}}`},
		{"something else", input(`"a":{"method":"vendor/x"}`), `error -32021 Missing required client capability: the server asks vendor/x `},
		{"params that are none", input(`"a":{"method":"roots/list","params":[]}`), `error -32603 Internal error: bad reply: the params of a question of the server are no object`},
		{"nothing but null", `{"resultType":"input_required","inputRequests":null,"requestState":null}`, `error -32603 Internal error: bad reply: the server's result needs input, and does not say which`},
		{"no method", input(`"a":{}`), `error -32603 Internal error: bad reply: a question of the server has no method`},
		{"nothing", `{"resultType":"input_required"}`, `error -32603 Internal error: bad reply: the server's result needs input, and does not say which`},
		{"no questions", `{"resultType":"input_required","inputRequests":[],"requestState":"s"}`, `error -32603 Internal error: bad reply:`},
		{"a state that is no string", `{"resultType":"input_required","requestState":1}`, `error -32603 Internal error: bad reply:`},
		{"too many", input(strings.TrimSuffix(strings.Repeat(`"a":`+form+`,`, session.MaxInputRequests+1), ",")), `error -32603 Internal error: limit exceeded: the server asks 65 questions`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := needing(tt.result)
			c := callTool(t, serving(t, b), `{"name":"t"}`)
			if got := receive(t, "the failure", c.done); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s", got)
			}
			if len(c.out) > 0 || len(b.paramsOf()) != 1 {
				t.Errorf("%d questions, %d calls", len(c.out), len(b.paramsOf()))
			}
		})
	}
}

// TestNullIsAbsent_B151: languages write it that have no absent members.
func TestNullIsAbsent_B151(t *testing.T) {
	b := needing(`{"resultType":"input_required","requestState":null,"inputRequests":{"a":{"method":"roots/list","params":null}}}`,
		`{"resultType":"input_required","requestState":"s","inputRequests":null}`, `{"content":[]}`)
	s := serving(t, b)
	c := callTool(t, s, `{"name":"t"}`)
	id, text := c.question(t)
	if text != "roots/list " {
		t.Errorf("asked %q", text)
	}
	s.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"roots":[]}}`))
	if got := receive(t, "the result", c.done); got != `{"content":[]}` {
		t.Errorf("got %s", got)
	}
	want := []string{`{"name":"t"}`, `{"name":"t","inputResponses":{"a":{"roots":[]}}}`, `{"name":"t","requestState":"s"}`}
	if got := b.paramsOf(); !slices.Equal(got, want) {
		t.Errorf("the server got %q", got)
	}
}

// TestOnlyPagesAreOpenedOnce_B151: forms have no ids, whatever members they have.
func TestOnlyPagesAreOpenedOnce_B151(t *testing.T) {
	const form = `{"method":"elicitation/create","params":{"message":"?","url":"https://a"}}`
	b := needing(`{"resultType":"input_required","inputRequests":{"a":`+form+`,"b":`+form+`}}`, `{"content":[]}`)
	s := serving(t, b)
	c := callTool(t, s, `{"name":"t"}`)
	for range 2 {
		id, text := c.question(t)
		if text != `elicitation/create {"message":"?","url":"https://a"}` {
			t.Errorf("asked %s", text)
		}
		s.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept"}}`))
	}
	if got := receive(t, "the result", c.done); got != `{"content":[]}` || len(c.out) > 0 {
		t.Errorf("got %s", got)
	}
}

// TestClientThatDoesNotAnswer: the call fails, and the other questions are taken
// back.
func TestClientThatDoesNotAnswer(t *testing.T) {
	for _, answer := range []string{`"error":{"code":-1,"message":"rejected"}`, `"result":5`} {
		t.Run(answer, func(t *testing.T) {
			b := needing(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}}}`)
			s := serving(t, b)
			c := callTool(t, s, `{"name":"t"}`)
			id, _ := c.question(t)
			c.question(t)
			s.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,`+answer+`}`))
			if got := receive(t, "the withdrawal", c.out); !strings.Contains(got, mcp.NotificationCancelled) {
				t.Errorf("sent %s", got)
			}
			if got := receive(t, "the failure", c.done); !strings.HasPrefix(got, "error -32603 Internal error: cancelled: the client did not answer what the server asked (roots/list)") {
				t.Errorf("got %s", got)
			}
			if n := len(b.paramsOf()); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestStateWithoutQuestionsIsRetried: with waits, and not for ever.
func TestStateWithoutQuestionsIsRetried(t *testing.T) {
	const later = `{"resultType":"input_required","requestState":"s"}`
	t.Run("in the end complete", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := needing(later, later, `{"content":[]}`)
			s := session.NewServer(b, session.ServerOptions{})
			defer s.Close()
			if _, err := s.Handle(t.Context(), scan(t, initialize), nil); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			c := callTool(t, s, `{"name":"t"}`)
			if got := <-c.done; got != `{"content":[]}` || time.Since(began) != 300*time.Millisecond {
				t.Errorf("got %s after %v", got, time.Since(began))
			}
			if got := strings.Join(b.paramsOf(), " "); got != `{"name":"t"} {"name":"t","requestState":"s"} {"name":"t","requestState":"s"}` {
				t.Errorf("the server got %s", got)
			}
		})
	})
	t.Run("never", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := needing(later)
			s := session.NewServer(b, session.ServerOptions{})
			defer s.Close()
			if _, err := s.Handle(t.Context(), scan(t, initialize), nil); err != nil {
				t.Fatal(err)
			}
			c := callTool(t, s, `{"name":"t"}`)
			if got := <-c.done; !strings.Contains(got, `"limit":"MaxRounds"`) || len(b.paramsOf()) != 1+session.MaxRounds {
				t.Errorf("got %s after %d calls", got, len(b.paramsOf()))
			}
			c = callTool(t, s, `{"name":"t"}`)
			time.Sleep(time.Second)
			c.stop()
			if got := <-c.done; !strings.Contains(got, "cancelled") {
				t.Errorf("got %s", got)
			}
		})
	})
}

// TestRetriesAreNotForALegacyServer: it would do the work again.
func TestRetriesAreNotForALegacyServer(t *testing.T) {
	w := newWire(func(call *inflight.Call, _, _ string) { answer(call, `{"done":true}`) })
	c := connected(t, w, `{}`)
	for params, code := range map[string]int{
		`{"name":"t"}`:                     0,
		`{"name":"t","requestState":"s"}`:  jsonrpc.CodeInvalidParams,
		`{"name":"t","inputResponses":{}}`: jsonrpc.CodeInvalidParams,
	} {
		_, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(params))}, mcp.NoCaller{})
		if codeOf(err) != code {
			t.Errorf("%s: %v", params, err)
		}
	}
	if n := len(w.all(mcp.MethodCallTool)); n != 1 {
		t.Errorf("%d calls were sent", n)
	}
}

// TestPagesAreAskedForOnce: a server that repeats a URL waits for the user, who
// is not asked again, and the client is told when that is over.
func TestPagesAreAskedForOnce(t *testing.T) {
	page := func(url string) string {
		return `{"resultType":"input_required","inputRequests":{"p":{"method":"elicitation/create","params":{"mode":"url","url":"` + url + `"}}}}`
	}
	start := func(t *testing.T, b *backend) (*session.Server, *called) {
		s := session.NewServer(b, session.ServerOptions{})
		t.Cleanup(s.Close)
		if _, err := s.Handle(t.Context(), scan(t, strings.Replace(initialize, `"elicitation":{}`, `"elicitation":{"url":{}}`, 1)), nil); err != nil {
			t.Fatal(err)
		}
		return s, callTool(t, s, `{"name":"t"}`)
	}
	open := func(t *testing.T, s *session.Server, c *called, url, action string) (elicitation string) {
		t.Helper()
		m := scan(t, <-c.out)
		elicitation, _ = m.Body.LookupString("elicitationId")
		if want := `{"mode":"url","url":"` + url + `","elicitationId":"` + elicitation + `"}`; elicitation == "" || string(m.Body.Raw()) != want {
			t.Errorf("asked %s", m.Body.Raw())
		}
		s.Answered(scan(t, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"action":"`+action+`"}}`))
		return elicitation
	}
	complete := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"` + id + `"}}`
	}
	t.Run("opened", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			results := append(slices.Repeat([]string{page("https://a")}, 30), page("https://b"), `{"content":[]}`)
			b := needing(results...)
			began := time.Now()
			s, c := start(t, b)
			first := open(t, s, c, "https://a", "accept")
			if got := <-c.out; got != complete(first) {
				t.Errorf("sent %s", got)
			}
			if took, want := time.Since(began), (1+2+4+8)*time.Second+25*15*time.Second; took != want {
				t.Errorf("the server was asked for %v, want %v", took, want)
			}
			second := open(t, s, c, "https://b", "accept")
			if got := <-c.done; got != `{"content":[]}` || <-c.out != complete(second) || first == second {
				t.Errorf("got %s", got)
			}
			for i, params := range b.paramsOf()[1:] {
				if params != `{"name":"t","inputResponses":{"p":{"action":"accept"}}}` {
					t.Errorf("%d: %s", i, params)
				}
			}
			s.Close()
		})
	})
	t.Run("twice in a result", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const question = `{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}}`
			b := needing(`{"resultType":"input_required","inputRequests":{"p":`+question+`,"q":`+question+`}}`, `{"content":[]}`)
			s, c := start(t, b)
			id := open(t, s, c, "https://a", "accept")
			if got := <-c.out; got != complete(id) {
				t.Errorf("sent %s", got)
			}
			if got, want := b.paramsOf()[1], `{"name":"t","inputResponses":{"p":{"action":"accept"},"q":{"action":"accept"}}}`; got != want {
				t.Errorf("the answers are %s", got)
			}
			<-c.done
			s.Close()
		})
	})
	t.Run("refused in the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			b := &backend{serve: func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
				if calls++; calls == 1 {
					return mcp.RawResult([]byte(page("https://a"))), nil
				}
				return mcp.Result{}, jsonrpc.Errorf(7, "no")
			}}
			s, c := start(t, b)
			id := open(t, s, c, "https://a", "accept")
			if got := <-c.done; got != `error 7 no ` || <-c.out != complete(id) {
				t.Errorf("got %s", got)
			}
			s.Close()
		})
	})
	t.Run("never done", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, c := start(t, needing(page("https://a")))
			open(t, s, c, "https://a", "accept")
			began := time.Now()
			if got := <-c.done; !strings.Contains(got, `"limit":"MaxPageWait"`) || time.Since(began) > session.MaxPageWait {
				t.Errorf("got %s after %v", got, time.Since(began))
			}
			s.Close()
		})
	})
	t.Run("declined", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, c := start(t, needing(page("https://a"), page("https://a"), `{"content":[]}`))
			first := open(t, s, c, "https://a", "decline")
			if second := open(t, s, c, "https://a", "cancel"); first == second {
				t.Error("the id is the same")
			}
			if got := <-c.done; got != `{"content":[]}` || len(c.out) > 0 {
				t.Errorf("got %s", got)
			}
			s.Close()
		})
	})
}

// TestLaterRoundThatWasNotSent_P2: the call has been with the server before, and who
// believes that it was not would make it again.
func TestLaterRoundThatWasNotSent_P2(t *testing.T) {
	b := &backend{serve: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		if _, again := req.Params.Lookup("requestState"); !again {
			return mcp.RawResult([]byte(`{"resultType":"input_required","requestState":"s"}`)), nil
		}
		return mcp.Result{}, fmt.Errorf("pooled: %w", &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent})
	}}
	c := callTool(t, serving(t, b), `{"name":"t"}`)
	if got := receive(t, "the failure", c.done); !strings.HasSuffix(got, `{"mcpsplice":{"kind":"unreachable","outcome":"maybe executed"}}`) {
		t.Errorf("got %s", got)
	}
}
