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

// TestWhatFollowsTheTaskAtOnce: a server may write the task, and news of it, in one
// piece, before who made it has taken it up. Nothing of that gets lost, or to another
// client.
func TestWhatFollowsTheTaskAtOnce_B139(t *testing.T) {
	const logged = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1,` + related + `}}`
	progress := func(call *inflight.Call, n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%d}}`, call.ID, n)
	}
	status := `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t\"1","status":"working","statusMessage":"m"}}`
	for _, tt := range []struct {
		name   string
		client mcp.Revision
		says   func(call *inflight.Call) []string
		want   []string
	}{
		{"progress of one that is awaited", modernRev, func(call *inflight.Call) []string { return []string{progress(call, 1), progress(call, 2)} },
			[]string{`notifications/progress {"progressToken":"p","progress":1}`, `notifications/progress {"progressToken":"p","progress":2}`}},
		{"progress under another type of token", modernRev, func(call *inflight.Call) []string {
			return []string{strings.Replace(progress(call, 1), fmt.Sprintf(`:%d,`, call.ID), fmt.Sprintf(`:"%d",`, call.ID), 1)}
		}, []string{`notifications/progress {"progressToken":"p","progress":1}`}},
		{"its state", modernRev, func(*inflight.Call) []string { return []string{status} },
			[]string{`notifications/progress {"progressToken":"p","progress":1,"message":"m"}`}},
		{"a log message", modernRev, func(*inflight.Call) []string { return []string{logged} },
			[]string{`notifications/message {"level":"info","data":1,` + related + `}`}},
		{"progress of a client's own", legacyRev, func(call *inflight.Call) []string { return []string{progress(call, 1), progress(call, 2)} },
			[]string{`notifications/progress {"progressToken":"p","progress":1}`, `notifications/progress {"progressToken":"p","progress":2}`}},
		{"the state of a client's own", legacyRev, func(*inflight.Call) []string { return []string{status} },
			[]string{`notifications/tasks/status {"taskId":"t\"1","status":"working","statusMessage":"m"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSlowTask()
				c := toTasks(t, w.wire)
				l, r := newListener(), (*running)(nil)
				if tt.client == legacyRev {
					l, r = listen(t, c, mcp.Metadata{Revision: legacyRev, Session: "a"}, mcp.Filter{Session: true})
					defer r.stop()
				}
				other, others := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: "b"}, mcp.Filter{Session: true})
				req := toolNamed(tt.client, "must", `,"task":{}`)
				req.Meta.LogLevel = "info"
				call := handle(t, c, req, l)
				created := <-w.creating
				answer(created, made)
				for _, text := range tt.says(created) {
					c.Notified(scan(t, text), nil)
				}
				synctest.Wait()
				if got := l.told(); !slices.Equal(got, tt.want) {
					t.Errorf("told %q, want %q", got, tt.want)
				}
				if got := other.told(); len(got) > 0 {
					t.Errorf("another client was told %q", got)
				}
				if tt.client == modernRev {
					answer(<-w.waiting, final)
				}
				<-call.done
				others.stop()
			})
		})
	}
}

// A stuckWire is a server that does not take a reply until it is let.
type stuckWire struct {
	*slowTask
	reached, let chan struct{}
}

func (w stuckWire) Reply(ctx context.Context, id jsonrpc.ID, result mcp.Result, err error) error {
	w.reached <- struct{}{}
	<-w.let
	return w.wire.Reply(ctx, id, result, err)
}

// TestNothingOvertakesWhatHasWaited: what a server says of a task comes in the order in
// which it has said it, although some of it had to wait for the task.
func TestNothingOvertakesWhatHasWaited(t *testing.T) {
	w := stuckWire{newSlowTask(), make(chan struct{}), make(chan struct{})}
	serve := w.serve
	w.serve = func(call *inflight.Call, _, _ string) { answer(call, hasTasks) }
	c := session.NewClient(w, &w.calls, session.ClientOptions{Capabilities: []byte(asksEverything)})
	if err := c.Initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.serve = serve
	l, r := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: "a"}, mcp.Filter{Session: true})
	said := func(message string) {
		c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t\"1","status":"working","statusMessage":"`+message+`"}}`), nil)
	}
	ask := func(id, size int) {
		c.Asked(t.Context(), scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{"x":"%s",%s}}`,
			id, strings.Repeat("x", size), related)), nil)
	}
	answered := make(chan struct{})
	l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		<-answered
		return mcp.RawResult([]byte(`{}`)), nil
	}
	ask(1, 1000)
	call := handle(t, c, of("a", mcp.MethodCallTool, `{"name":"x","task":{}}`), mcp.NoCaller{})
	created := receive(t, "the call", w.creating)
	// What goes on first is a question for which there is no room, and whose answer the
	// server does not take.
	ask(2, inflight.MaxQueuedBytes-1000)
	said("1")
	said("2")
	answer(created, made)
	receive(t, "the answer", w.reached)
	said("3")
	close(w.let)
	<-call.done
	said("4")
	for _, want := range []string{"1", "2", "3", "4"} {
		if got := receive(t, "news", l.got); !strings.Contains(got, `"statusMessage":"`+want+`"`) {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	close(answered)
	receive(t, "the other answer", w.reached)
	r.stop()
	if waiting, size, going := c.Early(); waiting+size+going > 0 {
		t.Errorf("%d messages of %d bytes wait, %d go on", waiting, size, going)
	}
}

// TestNothingOvertakesWhatStillWaits: nor in the moment between when it is known whose a
// task is and when what has waited for that goes on.
func TestNothingOvertakesWhatStillWaits(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	meta := mcp.Metadata{Revision: legacyRev, Session: "a"}
	l, r := listen(t, c, meta, mcp.Filter{Session: true})
	call := handle(t, c, of("a", mcp.MethodCallTool, `{"name":"x","task":{}}`), mcp.NoCaller{})
	created := receive(t, "the call", w.creating)
	said := func(n int) {
		c.Notified(scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"1","pollInterval":%d}}`, n)), nil)
	}
	said(1)
	c.Know("1", meta.ClientKey())
	said(2)
	if waiting, _, _ := c.Early(); waiting != 2 {
		t.Errorf("%d messages wait", waiting)
	}
	answer(created, made)
	<-call.done
	for _, want := range []string{"1", "2"} {
		if got := receive(t, "news", l.got); !strings.HasSuffix(got, `"pollInterval":`+want+`}`) {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	r.stop()
}

// TestNewsOfATaskThatIsNotMade waits no longer than for the calls that may be making it,
// and than a while.
func TestNewsOfATaskThatIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowTask()
		c := toTasks(t, w.wire)
		l, r := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: "a"}, mcp.Filter{Session: true})
		defer r.stop()
		status := scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"old"}}`)
		told := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := l.told(); len(got) != want {
				t.Errorf("told %q, want %d", got, want)
			}
		}
		c.Notified(status, nil)
		told(1)
		call := handle(t, c, of("a", mcp.MethodCallTool, `{"name":"x","task":{}}`), mcp.NoCaller{})
		created := <-w.creating
		c.Notified(status, nil)
		told(0)
		time.Sleep(session.TaskNameWait)
		told(1)
		c.Notified(status, nil)
		told(0)
		answer(created, made)
		<-call.done
		told(1)
	})
}

// TestNewsOfATaskThatIsFound waits no longer: it is not the one that is being made.
func TestNewsOfATaskThatIsFound(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	l, r := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: "a"}, mcp.Filter{Session: true})
	call := handle(t, c, of("a", mcp.MethodCallTool, `{"name":"x","task":{}}`), mcp.NoCaller{})
	created := receive(t, "the call", w.creating)
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"old"}}`), nil)
	if got := l.told(); len(got) > 0 {
		t.Errorf("told %q", got)
	}
	if _, err := c.Handle(t.Context(), of("a", mcp.MethodGetTask, `{"taskId":"old"}`), mcp.NoCaller{}); err != nil {
		t.Fatal(err)
	}
	if waiting, _, _ := c.Early(); waiting != 0 {
		t.Errorf("%d messages wait", waiting)
	}
	if got := receive(t, "the news", l.got); got != `notifications/tasks/status {"taskId":"old"}` {
		t.Errorf("told %q", got)
	}
	answer(created, made)
	<-call.done
	r.stop()
}

// TestEarlyMessagesAreBounded: by their number and by their bytes, with room for
// questions.
func TestEarlyMessagesAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name          string
		news, size, n int // n questions of a size
		refused       int
	}{
		{"news leaves room for questions", 2 * inflight.MaxQueuedMessages, 0, inflight.MaxQueuedMessages / 2, 0},
		{"questions", 0, 0, inflight.MaxQueuedMessages + 3, 3},
		{"bytes", 0, inflight.MaxQueuedBytes/4 - 1000, 7, 3},
		{"a single large one", 0, 2 * inflight.MaxQueuedBytes, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSlowTask()
				c := toTasks(t, w.wire)
				r := handle(t, c, toolNamed(modernRev, "must", ""), answering("its client"))
				created := <-w.creating
				other := handle(t, c, of("b", mcp.MethodCallTool, `{"name":"x"}`), mcp.NoCaller{})
				<-w.creating
				for range tt.news {
					c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t\"1"}}`), nil)
				}
				for i := range tt.n {
					c.Asked(t.Context(), scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"%s",%s}}`,
						i, strings.Repeat("x", tt.size), related)), nil)
				}
				synctest.Wait()
				if got := w.all("reply"); len(got) != tt.refused {
					t.Errorf("%d questions were refused, want %d", len(got), tt.refused)
				}
				answer(created, made)
				call := <-w.waiting
				synctest.Wait()
				if got := w.all("reply"); len(got) != tt.n {
					t.Errorf("%d of %d questions were answered", len(got), tt.n)
				}
				answer(call, final)
				<-r.done
				other.stop()
				if waiting, size, going := c.Early(); waiting+size+going > 0 {
					t.Errorf("%d messages of %d bytes wait, %d go on", waiting, size, going)
				}
			})
		})
	}
}

// TestQuestionBetweenTwoWaits: when a wait for the result gets lost, what is asked meanwhile
// waits for the next one.
func TestQuestionBetweenTwoWaits_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowTask()
		c := toTasks(t, w.wire)
		l := newListener()
		l.ask = func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			return mcp.RawResult([]byte(`{"asked":"` + mcp.RelatedTask(&req.Params) + `"}`)), nil
		}
		r := handle(t, c, toolNamed(modernRev, "must", ""), l)
		answer(<-w.creating, made)
		call := <-w.waiting
		call.Finish(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted})
		synctest.Wait()
		c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{`+related+`}}`), nil)
		call = <-w.waiting
		synctest.Wait()
		if got := w.all("reply"); !slices.Equal(got, []string{`reply 1 {"asked":"",` + related + `}`}) {
			t.Errorf("answered %q", got)
		}
		answer(call, final)
		<-r.done
	})
}

// TestQuestionThatIsWithdrawnWhileItWaits is answered by nothing, whatever it was about.
func TestQuestionThatIsWithdrawnWhileItWaits(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	r := handle(t, c, toolNamed(modernRev, "must", ""), newListener())
	created := receive(t, "the call", w.creating)
	c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{`+related+`}}`), nil)
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), nil)
	refuse(created, jsonrpc.CodeInvalidParams)
	<-r.done
	if got := w.all("reply"); len(got) > 0 {
		t.Errorf("answered %q", got)
	}
}

// TestQuestionOfATaskThatIsGivenUp waits for no further wait.
func TestQuestionOfATaskThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowTask()
		c := toTasks(t, w.wire)
		r := handle(t, c, toolNamed(modernRev, "must", ""), newListener())
		answer(<-w.creating, made)
		call := <-w.waiting
		call.Finish(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted})
		synctest.Wait()
		c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{`+related+`}}`), nil)
		began := time.Now()
		r.stop()
		synctest.Wait()
		if got := w.all("reply"); !slices.Equal(got, []string{`reply 1 {"action":"cancel"}`}) || time.Since(began) > 0 {
			t.Errorf("answered %q", got)
		}
	})
}

// TestNewsForWhoWaitsForTheResult comes by that wait, whether the client listens to its
// session or not: there it could come after the result.
func TestNewsForWhoWaitsForTheResult(t *testing.T) {
	for _, listens := range []bool{false, true} {
		testNewsForWhoWaits(t, listens)
	}
}

func testNewsForWhoWaits(t *testing.T, listens bool) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	if listens {
		l, r := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: "a"}, mcp.Filter{Session: true})
		defer func() {
			r.stop()
			if got := l.told(); len(got) > 0 {
				t.Errorf("the session was told %q", got)
			}
		}()
	}
	made := handle(t, c, toolNamed(legacyRev, "x", `,"task":{}`), mcp.NoCaller{})
	created := receive(t, "the call", w.creating)
	answer(created, `{"task":{"taskId":"1","status":"working"}}`)
	<-made.done
	l, another := newListener(), newListener()
	r := handle(t, c, of("a", mcp.MethodTaskResult, `{"taskId":"1"}`), l)
	waiting := receive(t, "the wait", w.waiting)
	rest := handle(t, c, of("a", mcp.MethodCallTool, `{"name":"x"}`), another)
	receive(t, "another call", w.creating)
	c.Notified(scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, created.ID)), nil)
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"1"}}`), nil)
	for _, want := range []string{`notifications/progress {"progressToken":"p","progress":1}`, `notifications/tasks/status {"taskId":"1"}`} {
		if got := receive(t, "a notification", l.got); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	answer(waiting, final)
	<-r.done
	rest.stop()
	if got := another.told(); len(got) > 0 {
		t.Errorf("by another call it was told %q", got)
	}
}

// TestNewsOfAnotherTaskThanIsWaitedFor comes by the client's session, and what that task
// asks as well.
func TestNewsOfAnotherTaskThanIsWaitedFor(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	l, r := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: "a"}, mcp.Filter{Session: true})
	l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult([]byte(`{"by":"session"}`)), nil
	}
	for _, id := range []string{"1", "2"} {
		made := handle(t, c, toolNamed(legacyRev, "x", `,"task":{}`), mcp.NoCaller{})
		answer(receive(t, "the call", w.creating), `{"task":{"taskId":"`+id+`","status":"working"}}`)
		<-made.done
	}
	other := newListener()
	waits := handle(t, c, of("a", mcp.MethodTaskResult, `{"taskId":"2"}`), other)
	waiting := receive(t, "the wait", w.waiting)
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"1"}}`), nil)
	if got := receive(t, "a notification", l.got); got != `notifications/tasks/status {"taskId":"1"}` {
		t.Errorf("told %s", got)
	}
	c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}}`), nil)
	if got := w.await(t, 1, "reply"); got[0] != `reply 1 {"by":"session"}` {
		t.Errorf("answered %q", got)
	}
	answer(waiting, final)
	<-waits.done
	r.stop()
	if got := other.told(); len(got) > 0 {
		t.Errorf("by the wait it was told %q", got)
	}
}

// TestProgressOfATaskComesWithItsResult: to a legacy client's wait for a result belongs
// the progress of the call that made the task, whose token it has not given again.
func TestProgressOfATaskComesWithItsResult(t *testing.T) {
	const progress = `{"progressToken":"p","progress":1}`
	server := session.NewServer(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			return mcp.RawResult([]byte(discovered)), nil
		}
		n := &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(progress))}
		return mcp.RawResult([]byte(`{}`)), caller.Notify(ctx, n)
	}), session.ServerOptions{})
	defer server.Close()
	if _, err := server.Handle(t.Context(), scan(t, initialize), nil); err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]int{mcp.MethodTaskResult: 1, mcp.MethodGetTask: 0} {
		out := make(outlet, 10)
		if _, err := server.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"taskId":"1"}}`), out); err != nil {
			t.Fatal(err)
		}
		if len(out) != want || want > 0 && <-out != `{"jsonrpc":"2.0","method":"notifications/progress","params":`+progress+`}` {
			t.Errorf("%s: %d notifications", method, len(out))
		}
	}
}
