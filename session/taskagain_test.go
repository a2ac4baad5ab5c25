package session_test

import (
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
