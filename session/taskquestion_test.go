package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// asking is a state of a task in which it needs input.
func asking(requests string) string {
	return `"status":"input_required","pollIntervalMs":1000,"inputRequests":{` + requests + `}`
}

const (
	form     = `{"method":"elicitation/create","params":{"message":"?","z":1.0}}`
	accepted = `{"action":"accept","n":1.0}`
)

// TestQuestionsOfATask are put to the client once each, however often the task
// tells of them, and answered together.
func TestQuestionsOfATask_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := asking(`"a":` + form + `,"b":{"method":"roots/list"}`)
		s := &tasker{created: `"status":"input_required"`, states: []string{both, both, both, both, asking(`"c":` + form), working, done}}
		server, c := callTask(t, s, `{"name":"t"}`)
		answer := func(want string, result string) {
			t.Helper()
			id, text := c.question(t)
			if text != want {
				t.Errorf("asked %s, want %s", text, want)
			}
			server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":`+result+`}`))
		}
		time.Sleep(time.Second / 2)
		ids := map[string]string{}
		for range 2 {
			id, text := c.question(t)
			ids[text] = id
		}
		server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+ids["roots/list "]+`,"result":{"roots":[]}}`))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := s.about(); len(got) > 0 || len(c.out) > 0 {
			t.Errorf("the server got %q before all was answered, the client %d messages", got, len(c.out))
		}
		server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+ids[`elicitation/create {"message":"?","z":1.0}`]+`,"result":`+accepted+`}`))
		time.Sleep(2 * time.Second)
		answer(`elicitation/create {"message":"?","z":1.0}`, `{"action":"decline"}`)
		if got := <-c.done; got != `{"content":[],"n":1.0}` {
			t.Errorf("got %s", got)
		}
		got := s.about()
		if len(got) != 2 || got[1] != `tasks/update {"taskId":"t1","inputResponses":{"c":{"action":"decline"}}}` {
			t.Fatalf("the server got %q", got)
		}
		// The order of the answers is nobody's.
		if first := got[0]; !strings.Contains(first, `"a":`+accepted) || !strings.Contains(first, `"b":{"roots":[]}`) {
			t.Errorf("the server got %s", first)
		}
		server.Close()
	})
}

// TestQuestionThatATaskTakesBack is taken back from the client, and not answered.
func TestQuestionThatATaskTakesBack(t *testing.T) {
	for _, then := range []string{working, asking(`"b":{"method":"roots/list"}`)} {
		synctest.Test(t, func(t *testing.T) {
			s := &tasker{created: working, states: []string{asking(`"a":` + form), then, then, done}}
			server, c := callTask(t, s, `{"name":"t"}`)
			id, _ := c.question(t)
			withdrawn := false
			for !withdrawn {
				m := scan(t, <-c.out)
				if string(m.Method) == mcp.MethodListRoots {
					continue
				}
				named, _ := m.Body.Lookup("requestId")
				withdrawn = string(m.Method) == mcp.NotificationCancelled && string(named) == id
				if !withdrawn {
					t.Fatalf("got %s %s", m.Method, m.Body.Raw())
				}
			}
			if got := <-c.done; got != `{"content":[],"n":1.0}` {
				t.Errorf("got %s", got)
			}
			if got := s.about(); len(got) > 0 {
				t.Errorf("the server got %q", got)
			}
			server.Close()
		})
	}
}

// TestQuestionsOfATaskThatCannotBePut: the call fails and the task is cancelled.
func TestQuestionsOfATaskThatCannotBePut(t *testing.T) {
	for _, tt := range []struct{ name, state, answer, want string }{
		{"not declared", asking(`"a":{"method":"sampling/createMessage","params":{"tools":[]}}`), "", `error -32021 Missing required client capability`},
		{"no method", asking(`"a":{}`), "", `error -32603 Internal error: bad reply: a question of the server has no method`},
		{"no questions", `"status":"input_required","inputRequests":7`, "", `error -32603 Internal error: bad reply: the server's task needs input`},
		{"too many", asking(strings.TrimSuffix(strings.Repeat(`"a":`+form+`,`, session.MaxInputRequests+1), ",")), "", `error -32603 Internal error: limit exceeded: the server asks 65 questions`},
		{"rejected", asking(`"a":` + form), `"error":{"code":-1,"message":"rejected"}`, `error -32603 Internal error: cancelled: the client did not answer what the server asked (elicitation/create)`},
		{"no object", asking(`"a":` + form), `"result":5`, `error -32603 Internal error: cancelled: the client did not answer`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tasker{created: working, states: []string{tt.state}}
				server, c := callTask(t, s, `{"name":"t"}`)
				if tt.answer != "" {
					id, _ := c.question(t)
					server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,`+tt.answer+`}`))
				}
				if got := <-c.done; !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %s", got)
				}
				if got := s.about(); len(got) != 1 || got[0] != cancelled {
					t.Errorf("the server got %q", got)
				}
				server.Close()
			})
		})
	}
}

// TestTaskThatAsksForEver ends at a limit.
func TestTaskThatAsksForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasker{created: working}
		for i := range session.MaxTaskQuestions + 1 {
			s.states = append(s.states, asking(fmt.Sprintf(`"k%d":{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}}`, i)))
		}
		server, c := callTask(t, s, `{"name":"t"}`)
		// The user is asked once about one page; the limit holds all the same.
		id, _ := c.question(t)
		server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept"}}`))
		if got := <-c.done; !strings.Contains(got, `"limit":"MaxTaskQuestions"`) {
			t.Errorf("got %s", got)
		}
		if len(c.out) > 0 {
			t.Errorf("sent %s", <-c.out)
		}
		if n := len(s.about()); n != session.MaxTaskQuestions+1 {
			t.Errorf("%d answers and cancellations", n)
		}
		server.Close()
	})
}

// TestClockStandsStillWhileATaskAsks: the user may take longer than the task.
func TestClockStandsStillWhileATaskAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasker{created: working, states: []string{asking(`"a":` + form)}}
		const limit = time.Minute
		server, c := callTaskOf(t, session.ServerOptions{MaxTaskWait: limit}, s, `{"name":"t"}`)
		id, _ := c.question(t)
		time.Sleep(3 * limit)
		s.mu.Lock()
		s.states = []string{done}
		s.mu.Unlock()
		if got := <-c.done; got != `{"content":[],"n":1.0}` {
			t.Errorf("got %s", got)
		}
		if got := <-c.out; !strings.Contains(got, `"requestId":`+id) {
			t.Errorf("sent %s", got)
		}
		server.Close()
	})
}

// TestTaskThatIsToldOf is not looked at more often than needed: what changes is
// there at once, and when telling ends it is looked at again.
func TestTaskThatIsToldOf(t *testing.T) {
	ack := &mcp.Notification{Method: mcp.NotificationAcknowledged, Params: mcp.Filter{TaskIDs: []string{"t1"}}.Params()}
	told := func(id, state string) *mcp.Notification {
		n, err := mcp.NewNotification(mcp.NotificationTask, mcp.RawResult([]byte(`{"taskId":"`+id+`",`+state+`}`)).Value)
		if err != nil {
			panic(err)
		}
		return n
	}
	for _, tt := range []struct {
		name   string
		listen func(ctx context.Context, caller mcp.Caller) error
		when   string
	}{
		{"to its end", func(ctx context.Context, caller mcp.Caller) error {
			_ = caller.Notify(ctx, ack)
			<-time.After(10 * time.Second)
			_ = caller.Notify(ctx, told("t1", working+`,"statusMessage":"half"`))
			_ = caller.Notify(ctx, told("another", done))
			<-time.After(10 * time.Second)
			_ = caller.Notify(ctx, told("t1", done))
			<-ctx.Done()
			return ctx.Err()
		}, "[1s 1.1s] 21s"},
		{"not to its end", func(ctx context.Context, caller mcp.Caller) error {
			_ = caller.Notify(ctx, ack)
			<-time.After(10 * time.Second)
			return nil
		}, "[1s 1.1s 11s 12s] 12s"},
		{"without what it asks", func(ctx context.Context, caller mcp.Caller) error {
			_ = caller.Notify(ctx, ack)
			<-time.After(10 * time.Second)
			_ = caller.Notify(ctx, told("t1", `"status":"input_required"`))
			<-ctx.Done()
			return ctx.Err()
		}, "[1s 1.1s 11s 1m11s] 1m11s"},
		{"not often enough", func(ctx context.Context, caller mcp.Caller) error {
			_ = caller.Notify(ctx, ack)
			<-ctx.Done()
			return ctx.Err()
		}, "[1s 1.1s 1m1.1s 2m1.1s] 2m1.1s"},
		{"much, and nothing that can be used", func(ctx context.Context, caller mcp.Caller) error {
			_ = caller.Notify(ctx, ack)
			for range 1000 {
				<-time.After(time.Millisecond)
				_ = caller.Notify(ctx, ack)
				_ = caller.Notify(ctx, told("t1", `"status":"paused"`))
			}
			<-ctx.Done()
			return ctx.Err()
		}, "[1s 1.1s 1.2s 1.3s] 2s"},
		{"not of this one", func(ctx context.Context, caller mcp.Caller) error {
			_ = caller.Notify(ctx, mcp.Filter{}.Acknowledge())
			<-ctx.Done()
			return ctx.Err()
		}, "[1s 2s 3s 4s] 4s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tasker{created: working, states: []string{working, working, working, done}, listen: tt.listen}
				began := time.Now()
				server, c := callTask(t, s, `{"name":"t"}`)
				if got := <-c.done; got != `{"content":[],"n":1.0}` {
					t.Errorf("got %s", got)
				}
				if got := fmt.Sprint(s.when, " ", time.Since(began)); got != tt.when {
					t.Errorf("looked after %s, want %s", got, tt.when)
				}
				server.Close()
			})
		})
	}
}

// TestAnswersThatATaskDoesNotGet are sent again, unless the server refuses them.
func TestAnswersThatATaskDoesNotGet(t *testing.T) {
	v := jsonrpc.Trusted([]byte(`{"code":-32602,"message":"too late"}`))
	lost := &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted}
	const success = `{"content":[],"n":1.0}`
	for _, tt := range []struct {
		name    string
		update  func(n int) error
		refused []string // states of the task from the refusal on
		updates int
		want    string
	}{
		{"for a while", func(n int) error {
			if n < 3 {
				return lost
			}
			return nil
		}, nil, 3, success},
		{"refused", func(int) error { return jsonrpc.ReadError(&v) }, nil, 1,
			`error -32603 Internal error: bad reply: the server refuses tasks/update: too late {"mcpsplice":{"kind":"bad reply","outcome":"maybe executed"}}`},
		{"refused, since it has ended", func(int) error { return jsonrpc.ReadError(&v) }, []string{done}, 1, success},
		{"refused, since it has failed", func(int) error { return jsonrpc.ReadError(&v) }, []string{`"status":"failed","error":{"code":-7,"message":"why"}`}, 1,
			`error -7 why `},
		{"refused, since it has had them", func(n int) error {
			if n == 1 {
				return lost
			}
			return jsonrpc.ReadError(&v)
		}, []string{working, working, done}, 2, success},
		{"refused, since it asks something else", func(n int) error {
			if n > 1 {
				return nil
			}
			return jsonrpc.ReadError(&v)
		}, []string{asking(`"b":{"method":"roots/list"}`), done}, 1, success},
		{"refused, without saying what it asks", func(int) error { return jsonrpc.ReadError(&v) }, []string{`"status":"input_required"`}, 1,
			`error -32603 Internal error: bad reply: the server refuses tasks/update: too late `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tasker{created: working, states: []string{asking(`"a":` + form)}}
				updates := 0
				s.update = func() error {
					updates++
					err := tt.update(updates)
					switch {
					case err == nil:
						s.states = []string{done}
					case jsonrpc.FromPeer(err) && tt.refused != nil:
						s.states = append(s.states[:min(s.n, len(s.states))], tt.refused...)
					}
					return err
				}
				server, c := callTask(t, s, `{"name":"t"}`)
				id, _ := c.question(t)
				server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":`+accepted+`}`))
				if got := <-c.done; !strings.HasPrefix(got, tt.want) || updates != tt.updates {
					t.Errorf("got %s after %d updates", got, updates)
				}
				server.Close()
			})
		})
	}
}

// TestPageThatATaskAsksForTwice is opened once, and both questions are answered at once.
func TestPageThatATaskAsksForTwice(t *testing.T) {
	const question = `{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}}`
	for name, states := range map[string][]string{
		"at once":     {asking(`"a":` + question + `,"b":` + question)},
		"one by one":  {asking(`"a":` + question), asking(`"a":` + question + `,"b":` + question)},
		"one is gone": {asking(`"a":` + question + `,"b":` + question), asking(`"b":` + question)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tasker{created: working, states: states}
				s.update = func() error {
					s.states = []string{done}
					return nil
				}
				server, c := callTask(t, s, `{"name":"t"}`)
				m := scan(t, <-c.out)
				time.Sleep(time.Minute)    // in which the task is looked at again
				if name == "one is gone" { // its question is taken back, and the other one put, in any order
					first, second := scan(t, <-c.out), scan(t, <-c.out)
					if m = second; second.ID.IsZero() {
						m = first
					}
				}
				if len(c.out) > 0 {
					t.Errorf("sent %s", <-c.out)
				}
				server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"action":"accept"}}`))
				if got := <-c.done; got != `{"content":[],"n":1.0}` {
					t.Errorf("got %s", got)
				}
				got := strings.Join(s.about(), " ")
				for _, key := range []string{"a", "b"} {
					if wanted := key == "b" || name != "one is gone"; strings.Contains(got, `"`+key+`":{"action":"accept"}`) != wanted {
						t.Errorf("the server got %s", got)
					}
				}
				if len(s.about()) != 1 {
					t.Errorf("the server got %s", got)
				}
				server.Close()
			})
		})
	}
}

// TestPageOfATask: the client is told when the task is over for which its user went
// there.
func TestPageOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasker{created: working, states: []string{asking(`"a":{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}}`), working, done}}
		server, c := callTask(t, s, `{"name":"t"}`)
		m := scan(t, <-c.out)
		id, _ := m.Body.Lookup("elicitationId")
		server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"action":"accept"}}`))
		if got := <-c.done; got != `{"content":[],"n":1.0}` {
			t.Errorf("got %s", got)
		}
		if got := <-c.out; got != `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":`+string(id)+`}}` {
			t.Errorf("sent %s", got)
		}
		server.Close()
	})
}
