package session_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// TestTaskThatItsClientGivesUpWhileItIsMade: "For task-augmented requests, the
// tasks/cancel request MUST be used instead of the notifications/cancelled
// notification" (2025-11-25, utilities/cancellation).
func TestTaskThatItsClientGivesUpWhileItIsMade(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer string // to the call that makes it; empty for none
		want   []string
		took   time.Duration
	}{
		{"a task", made, []string{`tasks/cancel {"taskId":"t\"1"}`}, 0},
		{"a result", `{"content":[]}`, nil, 0},
		{"too late to be heard of", "", nil, session.TaskCreateWait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSlowTask()
				c := toTasks(t, w.wire)
				r := handle(t, c, toolNamed(legacyRev, "must", `,"task":{}`), newListener())
				created := <-w.creating
				began := time.Now()
				r.cancel()
				synctest.Wait()
				if tt.answer != "" {
					answer(created, tt.answer)
				}
				<-r.done
				if took := time.Since(began); took != tt.took {
					t.Errorf("the call ended after %v", took)
				}
				if got := w.all(mcp.MethodCancelTask); !slices.Equal(got, tt.want) || c.Tasks() != 0 {
					t.Errorf("sent %q, %d tasks are known", got, c.Tasks())
				}
			})
		})
	}
}

// TestTaskThatIsGivenUpBeforeItIsMade is not made.
func TestTaskThatIsGivenUpBeforeItIsMade(t *testing.T) {
	for _, r := range []mcp.Revision{legacyRev, modernRev} {
		w := newWire(tasking)
		c := toTasks(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := c.Handle(ctx, &mcp.Request{Method: mcp.MethodListTools, Meta: mcp.Metadata{Revision: r}}, mcp.NoCaller{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		_, err = c.Handle(ctx, toolNamed(r, "must", `,"task":{}`), mcp.NoCaller{})
		if mcp.OutcomeOf(err) != mcp.NotSent || len(w.all(mcp.MethodCallTool)) != 0 {
			t.Errorf("%s: %v, sent %q", r, err, w.all(mcp.MethodCallTool))
		}
	}
}

// TestQuestionAboutATaskThatIsNotHeardOf: it waits for calls that may be making the
// task, for a while. A server may ask before it answers, or about another task.
func TestQuestionAboutATaskThatIsNotHeardOf_B151(t *testing.T) {
	for _, tt := range []struct{ name, other string }{
		{"a server that asks first", ""},
		{"while other calls make tasks all the time", "other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSlowTask()
				c := toTasks(t, w.wire)
				r := handle(t, c, toolNamed(modernRev, "must", ""), answering("its client"))
				created := <-w.creating
				c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{`+related+`}}`), nil)
				for i := 0; tt.other != "" && i < 20; i++ {
					other := handle(t, c, toolNamed(legacyRev, "x", `,"task":{}`), mcp.NoCaller{})
					call := <-w.creating
					time.Sleep(session.TaskNameWait / 10)
					answer(call, fmt.Sprintf(`{"task":{"taskId":"%s%d","status":"working"}}`, tt.other, i))
					<-other.done
				}
				time.Sleep(session.TaskNameWait)
				synctest.Wait()
				if got := w.all("reply"); !slices.Equal(got, []string{`reply 1 {"from":"its client"}`}) {
					t.Errorf("answered %q", got)
				}
				answer(created, "{}")
				<-r.done
			})
		})
	}
}
