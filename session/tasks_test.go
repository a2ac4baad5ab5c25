package session_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestTaskWhoseIDIsUsedAgain is the newer one's, with all that concerns it.
func TestTaskWhoseIDIsUsedAgain_SEC104(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	clients := map[string]*listener{}
	listening := map[string]*running{}
	tokens := map[string]int64{}
	for _, name := range []string{"a", "b"} {
		clients[name], listening[name] = listen(t, c, mcp.Metadata{Revision: legacyRev, Session: name}, mcp.Filter{Session: true})
		req := toolNamed(legacyRev, "x", `,"task":{}`)
		req.Meta.Session = name
		r := handle(t, c, req, mcp.NoCaller{})
		call := receive(t, "the call", w.creating)
		answer(call, `{"task":{"taskId":"same","status":"working"}}`)
		<-r.done
		tokens[name] = call.ID
	}
	for name, code := range map[string]int{"a": jsonrpc.CodeInvalidParams, "b": 0} {
		if _, err := c.Handle(t.Context(), of(name, mcp.MethodGetTask, `{"taskId":"same"}`), mcp.NoCaller{}); codeOf(err) != code {
			t.Errorf("%s got %v", name, err)
		}
		c.Notified(scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, tokens[name])), nil)
	}
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"same"}}`), nil)
	for _, want := range []string{`notifications/progress {"progressToken":"p","progress":1}`, `notifications/tasks/status {"taskId":"same"}`} {
		if got := receive(t, "a notification", clients["b"].got); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	w.calls.Fail(mcp.ErrClosed, true) // what has come is delivered before
	<-listening["a"].done
	if got := clients["a"].told(); len(got) > 0 || c.Tasks() != 1 {
		t.Errorf("the other client was told %q; %d tasks are known", got, c.Tasks())
	}
}

// TestQuestionAboutATaskOfWhoDoesNotListen reaches its client all the same, by a call
// that it has in flight.
func TestQuestionAboutATaskOfWhoDoesNotListen_B151(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	var inFlight []*running
	for _, name := range []string{"a", "b"} {
		made := handle(t, c, of(name, mcp.MethodCallTool, `{"name":"x","task":{}}`), mcp.NoCaller{})
		answer(receive(t, "the call", w.creating), `{"task":{"taskId":"of `+name+`","status":"working"}}`)
		<-made.done
		inFlight = append(inFlight, handle(t, c, of(name, mcp.MethodCallTool, `{"name":"x"}`), answering(name)))
		receive(t, "the other call", w.creating)
	}
	for i, name := range []string{"a", "b"} {
		c.Asked(t.Context(), scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"of %s"}}}}`, i, name)), nil)
		if got := w.await(t, i+1, "reply"); got[i] != fmt.Sprintf(`reply %d {"from":"%s"}`, i, name) {
			t.Errorf("answered %q", got)
		}
	}
	for _, r := range inFlight {
		r.stop()
	}
}

// TestClockStandsStillForAllQuestionsOfATask: as long as one of them is open.
func TestClockStandsStillForAllQuestionsOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Minute
		w := newSlowTask()
		c := toTasks(t, w.wire, limit)
		l := newListener()
		l.ask = func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodElicit {
				time.Sleep(limit)
			}
			time.Sleep(2 * limit)
			return mcp.RawResult([]byte(`{}`)), nil
		}
		r := handle(t, c, toolNamed(modernRev, "must", ""), l)
		answer(<-w.creating, made)
		<-w.waiting
		began := time.Now()
		time.Sleep(10 * time.Second)                                                 // which count
		for i, method := range []string{mcp.MethodCreateMessage, mcp.MethodElicit} { // answered after two minutes and three
			c.Asked(t.Context(), scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s}}`, i, method, related)), nil)
			time.Sleep(time.Second)
		}
		<-r.done
		// The second question began a second after the first. What is left of the limit then
		// is what was left before.
		if took, want := time.Since(began), 3*limit+time.Second+limit; took != want {
			t.Errorf("got %v after %v, want %v", r.err, took, want)
		}
	})
}
