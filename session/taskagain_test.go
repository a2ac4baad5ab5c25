package session_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestQuestionThatATaskAsksOnceMore: a server that is consistent only after a while may
// say for a moment that it asks nothing. Its question is put again, or the task would
// wait for ever.
func TestQuestionThatATaskAsksOnceMore(t *testing.T) {
	for _, between := range []string{working, `"status":"input_required"`} {
		t.Run(between, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				question := asking(`"a":` + form)
				s := &tasker{created: working, states: []string{question, between, question}}
				server, c := callTask(t, s, `{"name":"t"}`)
				time.Sleep(3500 * time.Millisecond) // it has been looked at three times
				id := ""
				for len(c.out) > 0 {
					m := scan(t, <-c.out)
					switch string(m.Method) {
					case mcp.MethodElicit:
						id = m.ID.String()
					case mcp.NotificationCancelled:
						id = ""
					}
				}
				if id == "" {
					t.Fatal("the client is not being asked")
				}
				server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":`+accepted+`}`))
				s.mu.Lock()
				s.states = []string{done}
				s.mu.Unlock()
				if got := <-c.done; got != `{"content":[],"n":1.0}` {
					t.Errorf("got %s", got)
				}
				if got := s.about(); len(got) != 1 || got[0] != `tasks/update {"taskId":"t1","inputResponses":{"a":`+accepted+`}}` {
					t.Errorf("the server got %q", got)
				}
				server.Close()
			})
		})
	}
}

// TestAnswersOfWhichATaskKnowsLate: a server that takes answers after a while goes on
// asking what it has been answered, and what it asks besides is answered alone.
func TestAnswersOfWhichATaskKnowsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := asking(`"a":` + form + `,"b":` + form)
		s := &tasker{created: working, states: []string{asking(`"a":` + form), both}}
		updates := 0
		s.update = func() error {
			if updates++; updates == 2 {
				s.states = []string{both, done}
				s.n = 0
			}
			return nil
		}
		server, c := callTask(t, s, `{"name":"t"}`)
		for range 2 {
			id, _ := c.question(t)
			server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":`+accepted+`}`))
		}
		if got := <-c.done; got != `{"content":[],"n":1.0}` || len(c.out) > 0 {
			t.Errorf("got %s, and %d messages", got, len(c.out))
		}
		want := []string{`tasks/update {"taskId":"t1","inputResponses":{"a":` + accepted + `}}`, `tasks/update {"taskId":"t1","inputResponses":{"b":` + accepted + `}}`}
		if got := s.about(); !slices.Equal(got, want) {
			t.Errorf("the server got %q", got)
		}
		server.Close()
	})
}

// TestAnswersThatATaskDoesNotWantAnyMore are not sent, although it has not had them.
func TestAnswersThatATaskDoesNotWantAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasker{created: working, states: []string{asking(`"a":` + form), working, working, done}}
		s.update = func() error { return &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted} }
		server, c := callTask(t, s, `{"name":"t"}`)
		id, _ := c.question(t)
		server.Answered(scan(t, `{"jsonrpc":"2.0","id":`+id+`,"result":`+accepted+`}`))
		if got := <-c.done; got != `{"content":[],"n":1.0}` {
			t.Errorf("got %s", got)
		}
		if got := s.about(); len(got) != 1 {
			t.Errorf("the server got %q", got)
		}
		server.Close()
	})
}
