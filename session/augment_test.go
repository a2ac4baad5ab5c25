package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

const hasTasks = `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":` +
	`{"tools":{"listChanged":true},"logging":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}`

// toTasks returns a client of w, whose server has tasks, after its handshake.
func toTasks(t *testing.T, w *wire, limit ...time.Duration) *session.Client {
	t.Helper()
	serve := w.serve
	w.serve = func(call *inflight.Call, _, _ string) { answer(call, hasTasks) }
	opts := session.ClientOptions{Capabilities: []byte(asksEverything)}
	if limit != nil {
		opts.MaxTaskWait = limit[0]
	}
	c := session.NewClient(w, &w.calls, opts)
	if err := c.Initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.serve = serve
	t.Cleanup(func() {
		if n := w.calls.Len() + c.Open(); n != 0 {
			t.Errorf("%d calls and questions are left", n)
		}
	})
	return c
}

const (
	modernRev = mcp.Revision20260728
	legacyRev = mcp.Revision20251125

	toolList = `{"tools":[{"name":"must","execution":{"taskSupport":"required"}},{"name":"may","execution":{"taskSupport":"optional"}},{"name":"plain"}]}`
	made     = `{"task":{"taskId":"t\"1","status":"working","ttl":60000,"pollInterval":5000},"_meta":{}}`
	final    = `{"content":[],"n":1.0,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t\"1"}}}`
)

func toolNamed(r mcp.Revision, name, more string) *mcp.Request {
	return &mcp.Request{
		Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(`{"name":"` + name + `"` + more + `}`)),
		Meta: mcp.Metadata{Revision: r, Session: "a", ProgressToken: jsonrpc.StringID("p")},
	}
}

// tasking is a legacy server with tools of all kinds.
func tasking(call *inflight.Call, method, params string) {
	task := strings.Contains(params, `"task":{`)
	switch {
	case method == mcp.MethodListTools:
		answer(call, toolList)
	case method == mcp.MethodTaskResult:
		answer(call, final)
	case method != mcp.MethodCallTool:
		answer(call, "{}")
	case strings.Contains(params, `"must"`) != task:
		refuse(call, jsonrpc.CodeMethodNotFound)
	case task:
		answer(call, made)
	default:
		answer(call, `{"content":[]}`)
	}
}

// TestToolThatMustBeATask is called as one for who knows no such tasks, and as it
// came for who does.
func TestToolThatMustBeATask(t *testing.T) {
	augmented := func(token int) string {
		return fmt.Sprintf(`tools/call {"name":"must","_meta":{"progressToken":%d},"task":{"ttl":3600000}}`, token)
	}
	for _, tt := range []struct {
		name    string
		req     *mcp.Request
		sent    []string
		want    string
		refused int
	}{
		{"required", toolNamed(modernRev, "must", ""),
			[]string{"tools/list ", augmented(4), `tasks/result {"taskId":"t\"1"}`}, `{"content":[],"n":1.0}`, 0},
		{"required, of a client of our own", toolNamed("", "must", ""),
			[]string{"tools/list ", augmented(4), `tasks/result {"taskId":"t\"1"}`}, `{"content":[],"n":1.0}`, 0},
		{"required, of an old client", toolNamed(mcp.Revision20250618, "must", ""),
			[]string{"tools/list ", augmented(3), `tasks/result {"taskId":"t\"1"}`}, `{"content":[],"n":1.0}`, 0},
		{"optional", toolNamed(modernRev, "may", ""), []string{"tools/list ", `tools/call {"name":"may","_meta":{"progressToken":4}}`}, `{"content":[]}`, 0},
		{"no tasks", toolNamed(modernRev, "plain", ""), []string{"tools/list ", `tools/call {"name":"plain","_meta":{"progressToken":4}}`}, `{"content":[]}`, 0},
		{"what means nothing to the client", toolNamed(modernRev, "may", `,"task":{"ttl":1}`),
			[]string{"tools/list ", `tools/call {"name":"may","_meta":{"progressToken":4}}`}, `{"content":[]}`, 0},
		{"of a client with tasks, as one", toolNamed(legacyRev, "must", `,"task":{"ttl":1}`),
			[]string{`tools/call {"name":"must","task":{"ttl":1},"_meta":{"progressToken":2}}`}, made, 0},
		{"of a client with tasks, not as one", toolNamed(legacyRev, "must", ""),
			[]string{`tools/call {"name":"must","_meta":{"progressToken":2}}`}, "", jsonrpc.CodeMethodNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWire(tasking)
			c := toTasks(t, w)
			result, err := c.Handle(t.Context(), tt.req, mcp.NoCaller{})
			if codeOf(err) != tt.refused || string(result.Raw()) != tt.want {
				t.Errorf("got %s, %v", result.Raw(), err)
			}
			if got := w.all("t"); !slices.Equal(got, tt.sent) {
				t.Errorf("sent %q\nwant %q", got, tt.sent)
			}
		})
	}
}

// TestHowItIsKnownWhichToolsMustBeTasks: by a list that passes, by asking for it
// once, by the server's error, and anew when the list changes.
func TestHowItIsKnownWhichToolsMustBeTasks_P2(t *testing.T) {
	lists := func(w *wire) int { return len(w.all(mcp.MethodListTools)) }
	call := func(t *testing.T, c *session.Client, name string) {
		t.Helper()
		if _, err := c.Handle(t.Context(), toolNamed(modernRev, name, ""), mcp.NoCaller{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Run("a list that passes", func(t *testing.T) {
		w := newWire(tasking)
		c := toTasks(t, w)
		if _, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListTools, Meta: legacyMeta("b", "")}, mcp.NoCaller{}); err != nil {
			t.Fatal(err)
		}
		call(t, c, "must")
		if n := lists(w); n != 1 {
			t.Errorf("%d lists", n)
		}
	})
	t.Run("asked for once", func(t *testing.T) {
		w := newWire(tasking)
		c := toTasks(t, w)
		var calling sync.WaitGroup
		for range 5 {
			calling.Go(func() { call(t, c, "plain") })
		}
		calling.Wait()
		call(t, c, "must")
		call(t, c, "unheard of")
		if n := lists(w); n != 1 {
			t.Errorf("%d lists", n)
		}
		c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`), nil)
		call(t, c, "plain")
		call(t, c, "plain")
		if n := lists(w); n != 2 {
			t.Errorf("%d lists", n)
		}
	})
	t.Run("a tool that must no longer", func(t *testing.T) {
		may := false
		w := newWire(func(call *inflight.Call, method, params string) {
			switch {
			case may && method == mcp.MethodListTools:
				answer(call, `{"tools":[{"name":"must"}]}`)
			case may && method == mcp.MethodCallTool && strings.Contains(params, `"task":{`):
				refuse(call, jsonrpc.CodeMethodNotFound)
			case may:
				answer(call, "{}")
			default:
				tasking(call, method, params)
			}
		})
		c := toTasks(t, w)
		call(t, c, "must")
		may = true
		c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`), nil)
		call(t, c, "must")
		if n := lists(w); n != 2 {
			t.Errorf("%d lists", n)
		}
	})
	t.Run("a list that changes while it is asked for", func(t *testing.T) {
		var c *session.Client
		w := newWire(nil)
		w.serve = func(call *inflight.Call, method, params string) {
			if method == mcp.MethodListTools && lists(w) == 1 {
				answer(call, `{"tools":[]}`)
				c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`), nil)
				return
			}
			tasking(call, method, params)
		}
		c = toTasks(t, w)
		call(t, c, "plain")
		call(t, c, "must")
		if got := len(w.all(mcp.MethodCallTool)); got != 2 || lists(w) != 2 {
			t.Errorf("%d calls, %d lists", got, lists(w))
		}
	})
	t.Run("the error", func(t *testing.T) {
		for _, code := range []int{jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest} {
			w := newWire(func(call *inflight.Call, method, params string) {
				switch {
				case method == mcp.MethodListTools:
					answer(call, `{"tools":[{"name":"another"}],"nextCursor":"for ever"}`)
				case method == mcp.MethodCallTool && !strings.Contains(params, `"task":{`):
					refuse(call, code)
				default:
					tasking(call, method, params)
				}
			})
			c := toTasks(t, w)
			call(t, c, "must")
			call(t, c, "must")
			if got := len(w.all(mcp.MethodCallTool)); got != 3 || lists(w) != 4 {
				t.Errorf("%d calls, %d lists", got, lists(w))
			}
		}
	})
	t.Run("an error that the tool has met itself", func(t *testing.T) {
		for _, code := range []int{jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest} {
			w := newWire(func(call *inflight.Call, method, params string) {
				if method == mcp.MethodCallTool {
					refuse(call, code)
					return
				}
				tasking(call, method, params)
			})
			c := toTasks(t, w)
			for n := range 2 {
				r := handle(t, c, toolNamed(modernRev, "plain", ""), mcp.NoCaller{})
				receive(t, "the error", r.done)
				if got := len(w.all(mcp.MethodCallTool)); got != n+1 || codeOf(r.err) != code {
					t.Errorf("%d calls, %v", got, r.err)
				}
			}
		}
	})
	t.Run("an error that says nothing of tasks", func(t *testing.T) {
		w := newWire(func(call *inflight.Call, method, params string) {
			if method == mcp.MethodCallTool {
				refuse(call, jsonrpc.CodeInvalidParams)
				return
			}
			tasking(call, method, params)
		})
		c := toTasks(t, w)
		_, err := c.Handle(t.Context(), toolNamed(modernRev, "unheard of", ""), mcp.NoCaller{})
		if got := len(w.all(mcp.MethodCallTool)); got != 1 || lists(w) != 1 || codeOf(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("%d calls, %d lists, %v", got, lists(w), err)
		}
	})
	t.Run("an error of our own", func(t *testing.T) {
		w := newWire(nil)
		w.serve = func(call *inflight.Call, method, params string) {
			if method == mcp.MethodCallTool {
				call.Finish(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "not from here"))
				return
			}
			tasking(call, method, params)
		}
		c := toTasks(t, w)
		_, err := c.Handle(t.Context(), toolNamed(modernRev, "unheard of", ""), mcp.NoCaller{})
		if got := len(w.all(mcp.MethodCallTool)); got != 1 || codeOf(err) != jsonrpc.CodeMethodNotFound {
			t.Errorf("%d calls, %v", got, err)
		}
	})
	t.Run("an error that says too little", func(t *testing.T) {
		// The tool that is in no list can be called in one way only, which the second
		// call finds out.
		n := 0
		w := newWire(func(call *inflight.Call, method, params string) {
			switch task := strings.Contains(params, `"task":{`); {
			case method == mcp.MethodListTools:
				refuse(call, jsonrpc.CodeInternalError)
			case method == mcp.MethodCallTool && n == 0 && !task:
				n++
				refuse(call, jsonrpc.CodeInvalidRequest)
			case method == mcp.MethodCallTool && task:
				refuse(call, jsonrpc.CodeInternalError)
			default:
				tasking(call, method, params)
			}
		})
		c := toTasks(t, w)
		if _, err := c.Handle(t.Context(), toolNamed(modernRev, "plain", ""), mcp.NoCaller{}); codeOf(err) != jsonrpc.CodeInternalError {
			t.Errorf("got %v", err)
		}
		call(t, c, "plain")
	})
	t.Run("an error after something has come for the call", func(t *testing.T) {
		w := newWire(func(call *inflight.Call, method, params string) {
			switch {
			case method == mcp.MethodListTools:
				answer(call, `{"tools":[]}`)
			case method == mcp.MethodCallTool && !strings.Contains(params, `"task":{`):
				call.Notify(&mcp.Notification{Method: mcp.NotificationProgress})
				refuse(call, jsonrpc.CodeMethodNotFound)
			default:
				tasking(call, method, params)
			}
		})
		c := toTasks(t, w)
		_, err := c.Handle(t.Context(), toolNamed(modernRev, "must", ""), mcp.NoCaller{})
		if got := len(w.all(mcp.MethodCallTool)); got != 1 || !jsonrpc.FromPeer(err) {
			t.Errorf("%d calls, %v", got, err)
		}
	})
	t.Run("a server that does not list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(func(call *inflight.Call, method, params string) {
				if method != mcp.MethodListTools {
					tasking(call, method, params)
				}
			})
			c := toTasks(t, w)
			began := time.Now()
			call(t, c, "plain")
			call(t, c, "must")
			if took := time.Since(began); took != session.ToolListTimeout {
				t.Errorf("the calls took %v", took)
			}
		})
	})
}

// TestServerThatIgnoresTasks answers at once, and its answer is the result.
func TestServerThatIgnoresTasks(t *testing.T) {
	w := newWire(func(call *inflight.Call, method, params string) {
		if method == mcp.MethodCallTool {
			answer(call, `{"content":[1]}`)
			return
		}
		tasking(call, method, params)
	})
	c := toTasks(t, w)
	result, err := c.Handle(t.Context(), toolNamed(modernRev, "must", ""), mcp.NoCaller{})
	if err != nil || string(result.Raw()) != `{"content":[1]}` || len(w.all("tasks/")) != 0 {
		t.Errorf("got %s, %v", result.Raw(), err)
	}
}

// TestTaskThatHasNoName cannot be awaited, and is no result either.
func TestTaskThatHasNoName(t *testing.T) {
	for _, task := range []string{`{}`, `{"taskId":5}`, `{"taskId":""}`, `"t1"`, `{"taskId":"` + strings.Repeat("x", mcp.MaxTaskID) + `"}`} {
		w := newWire(func(call *inflight.Call, method, params string) {
			if method == mcp.MethodCallTool {
				answer(call, `{"task":`+task+`}`)
				return
			}
			tasking(call, method, params)
		})
		c := toTasks(t, w)
		result, err := c.Handle(t.Context(), toolNamed(modernRev, "must", ""), mcp.NoCaller{})
		if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.BadReply || e.Outcome == mcp.NotSent || len(w.all(mcp.MethodCallTool)) != 1 {
			t.Errorf("%s: got %s, %v", task, result.Raw(), err)
		}
		// Its client may know more of it.
		result, err = c.Handle(t.Context(), toolNamed(legacyRev, "must", `,"task":{}`), mcp.NoCaller{})
		if err != nil || string(result.Raw()) != `{"task":`+task+`}` || c.Tasks() != 0 {
			t.Errorf("%s: its client got %s, %v", task, result.Raw(), err)
		}
	}
}

// TestTasksOfARevisionThatHasNone are none, whatever the server declares.
func TestTasksOfARevisionThatHasNone(t *testing.T) {
	w := newWire(nil)
	w.serve = func(call *inflight.Call, _, _ string) {
		answer(call, strings.Replace(hasTasks, string(legacyRev), "2025-06-18", 1))
	}
	c := session.NewClient(w, &w.calls, session.ClientOptions{})
	if err := c.Initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.serve = nil
	if _, err := c.Handle(t.Context(), toolNamed(modernRev, "must", ""), mcp.NoCaller{}); err != nil {
		t.Error(err)
	}
	if got := w.all("t"); len(got) != 1 || strings.Contains(got[0], "task") {
		t.Errorf("sent %q", got)
	}
}

// slowTask is a legacy server whose task is made and ends when the test says so.
type slowTask struct {
	*wire
	creating, waiting chan *inflight.Call // calls that have not been answered
}

func newSlowTask() *slowTask {
	s := &slowTask{creating: make(chan *inflight.Call, 10), waiting: make(chan *inflight.Call, 10)}
	s.wire = newWire(func(call *inflight.Call, method, params string) {
		switch method {
		case mcp.MethodCallTool:
			s.creating <- call
		case mcp.MethodTaskResult:
			s.waiting <- call
		default:
			tasking(call, method, params)
		}
	})
	return s
}

const related = `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t\"1"}}`

// TestAwaitedTaskBelongsToItsCall: questions, progress and log messages about it
// reach the client that waits, on whatever stream they come.
func TestAwaitedTaskBelongsToItsCall_B151(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	l, other := newListener(), newListener()
	l.ask = func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if mcp.RelatedTask(&req.Params) != "" {
			t.Errorf("asked %s", req.Params.Raw())
		}
		return mcp.RawResult([]byte(`{"action":"accept","of":"` + req.Method + `"}`)), nil
	}
	req := toolNamed(modernRev, "must", "")
	req.Meta.LogLevel = "info"
	r := handle(t, c, req, l)
	created := receive(t, "the call", w.creating)
	elsewhere := toolNamed(modernRev, "plain", "")
	elsewhere.Meta.Session = "b"
	running := handle(t, c, elsewhere, other)
	stream := receive(t, "another client's call", w.creating)
	// A question that comes before the task has been heard of waits for that.
	c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?",`+related+`}}`), nil)
	if got := w.all("reply"); len(got) != 0 {
		t.Errorf("answered %q", got)
	}
	answer(created, made)
	waiting := receive(t, "the wait for the result", w.waiting)
	if got := w.await(t, 1, "reply"); got[0] != `reply 1 {"action":"accept","of":"elicitation/create",`+related+`}` {
		t.Errorf("answered %q", got)
	}
	c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{`+related+`}}`), stream)
	if got := w.await(t, 2, "reply"); got[1] != `reply 2 {"action":"accept","of":"sampling/createMessage",`+related+`}` {
		t.Errorf("answered %q", got)
	}
	progress := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, created.ID)
	c.Notified(scan(t, progress), nil)
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1,`+related+`}}`), stream)
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":1,`+related+`}}`), nil)
	// Progress of its own is told as it is, and news of the task no longer.
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t\"1","status":"working"}}`), nil)
	for _, want := range []string{`notifications/progress {"progressToken":"p","progress":1}`, `notifications/message {"level":"info","data":1,` + related + `}`} {
		if got := receive(t, "a notification", l.got); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	answer(waiting, final)
	answer(stream, "{}")
	<-r.done
	<-running.done
	if r.err != nil || string(r.result.Raw()) != `{"content":[],"n":1.0}` || len(l.told()) > 0 || len(other.told()) > 0 {
		t.Errorf("got %s, %v", r.result.Raw(), r.err)
	}
	// It is nobody's any more.
	c.Notified(scan(t, progress), nil)
	if c.Tasks() != 0 {
		t.Errorf("%d tasks are known", c.Tasks())
	}
}

// TestAwaitedTaskIsCancelledWithItsCall: also if the call is cancelled before the
// task has been heard of.
func TestAwaitedTaskIsCancelledWithItsCall(t *testing.T) {
	for _, when := range []string{"while it is being made", "while it is awaited", "too late to be heard of"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSlowTask()
				c := toTasks(t, w.wire)
				r := handle(t, c, toolNamed(modernRev, "must", ""), newListener())
				created := <-w.creating
				if when == "while it is awaited" {
					answer(created, made)
					<-w.waiting
				}
				began := time.Now()
				r.cancel()
				synctest.Wait()
				if when == "while it is being made" {
					answer(created, made)
				}
				<-r.done
				want := []string{`tasks/cancel {"taskId":"t\"1"}`}
				late := when == "too late to be heard of"
				if late {
					want = nil
				}
				if got := w.all(mcp.MethodCancelTask); !slices.Equal(got, want) || !errors.Is(r.err, context.Canceled) {
					t.Errorf("sent %q; %v", got, r.err)
				}
				if took := time.Since(began); took > 0 != late || took > session.TaskCreateWait {
					t.Errorf("the call ended after %v", took)
				}
				if len(w.waiting) > 0 || c.Tasks() != 0 {
					t.Errorf("%d results are waited for, %d tasks known", len(w.waiting), c.Tasks())
				}
			})
		})
	}
}

// TestAwaitedTaskThatDoesNotEnd is cancelled at the limit, in which time that the
// user takes does not count.
func TestAwaitedTaskThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowTask()
		c := toTasks(t, w.wire)
		l := newListener()
		l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
			time.Sleep(2 * session.DefaultMaxTaskWait)
			return mcp.RawResult([]byte(`{}`)), nil
		}
		r := handle(t, c, toolNamed(modernRev, "must", ""), l)
		answer(<-w.creating, made)
		<-w.waiting
		began := time.Now()
		c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{`+related+`}}`), nil)
		<-r.done
		e, ok := errors.AsType[*mcp.CallError](r.err)
		if took := time.Since(began); !ok || e.Limit != "MaxTaskWait" || e.Method != mcp.MethodCallTool || took != 3*session.DefaultMaxTaskWait {
			t.Errorf("got %v after %v", r.err, took)
		}
		if got := w.all(mcp.MethodCancelTask); len(got) != 1 {
			t.Errorf("sent %q", got)
		}
	})
}

// TestResultOfATaskThatGetsLost is asked for again; the call is never made again.
func TestResultOfATaskThatGetsLost(t *testing.T) {
	lost := func(o mcp.Outcome) error {
		return &mcp.CallError{Method: mcp.MethodTaskResult, Kind: mcp.ConnectionLost, Outcome: o}
	}
	for _, tt := range []struct {
		name    string
		fail    func(n int) error // at the nth attempt
		results int               // attempts
		err     string
	}{
		{"for a while", func(n int) error {
			if n < 3 {
				return lost(mcp.MaybeExecuted)
			}
			return nil
		}, 3, ""},
		{"for good", func(int) error { return lost(mcp.MaybeExecuted) }, session.MaxTaskPollFailures, "tools/call: connection lost, maybe executed"},
		{"with the connection", func(int) error { return lost(mcp.NotSent) }, 1, "tools/call: connection lost, maybe executed"},
		{"because it is an error", func(int) error { return jsonrpc.Errorf(-5, "no") }, 1, "peer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int32
				w := newWire(func(call *inflight.Call, method, params string) {
					if method != mcp.MethodTaskResult {
						tasking(call, method, params)
						return
					}
					switch err := tt.fail(int(n.Add(1))); {
					case err == nil:
						answer(call, final)
					case tt.err == "peer":
						refuse(call, -5)
					default:
						call.Finish(err)
					}
				})
				c := toTasks(t, w)
				result, err := c.Handle(t.Context(), toolNamed(modernRev, "must", ""), mcp.NoCaller{})
				switch {
				case tt.err == "" && (err != nil || string(result.Raw()) != `{"content":[],"n":1.0}`):
					t.Errorf("got %s, %v", result.Raw(), err)
				case tt.err == "peer" && codeOf(err) != -5:
					t.Errorf("got %v", err)
				case tt.err != "" && tt.err != "peer" && (err == nil || err.Error() != tt.err):
					t.Errorf("got %v", err)
				}
				if got := int(n.Load()); got != tt.results || len(w.all(mcp.MethodCallTool)) != 1 {
					t.Errorf("%d attempts, %d calls", got, len(w.all(mcp.MethodCallTool)))
				}
				cancels := 0
				if tt.err != "" && tt.err != "peer" {
					cancels = 1
				}
				if got := w.all(mcp.MethodCancelTask); len(got) != cancels {
					t.Errorf("sent %q", got)
				}
			})
		})
	}
}

// TestAwaitedTaskGoesOn: its client hears so every ten seconds, unless the server tells it
// of progress itself or it is being asked.
func TestAwaitedTaskGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowTask()
		c := toTasks(t, w.wire)
		l := newListener()
		l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
			time.Sleep(time.Minute)
			return mcp.RawResult([]byte(`{}`)), nil
		}
		r := handle(t, c, toolNamed(modernRev, "must", ""), l)
		created := <-w.creating
		answer(created, made)
		waiting := <-w.waiting
		told := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			for i := range want {
				want[i] = `notifications/progress {"progressToken":"p","progress":` + want[i] + `}`
			}
			if got := l.told(); !slices.Equal(got, want) {
				t.Errorf("told %q, want %q", got, want)
			}
		}
		status := `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t\"1","status":"working"}}`
		told(9 * time.Second)
		told(12*time.Second, "1", "2")
		c.Notified(scan(t, status), nil) // after 21 s
		told(0, "3")
		told(11 * time.Second)
		told(9*time.Second, "4")
		c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{`+related+`}}`), nil)
		told(59 * time.Second)
		told(10*time.Second, "5")
		for _, progress := range []string{"5", "6"} {
			c.Notified(scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%s}}`, created.ID, progress)), nil)
		}
		told(time.Minute, "6")
		answer(waiting, final)
		<-r.done
		if got := len(w.all("reply")); got != 1 {
			t.Errorf("%d answers", got)
		}
	})
}

// TestProgressBeforeTheTask is the server's own, too: what we would tell besides could be less.
func TestProgressBeforeTheTask_B139(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowTask()
		c := toTasks(t, w.wire)
		l := newListener()
		r := handle(t, c, toolNamed(modernRev, "must", ""), l)
		created := <-w.creating
		c.Notified(scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":5}}`, created.ID)), nil)
		answer(created, made)
		waiting := <-w.waiting
		time.Sleep(time.Minute)
		c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t\"1","status":"working"}}`), nil)
		answer(waiting, final)
		<-r.done
		if got := l.told(); len(got) != 1 || !strings.Contains(got[0], `"progress":5`) {
			t.Errorf("told %q", got)
		}
	})
}

// TestRefusalOfATasksResult: errors that would have the call made again are not the call's,
// whose task has begun.
func TestRefusalOfATasksResult(t *testing.T) {
	for code, isTheCalls := range map[int]bool{
		-5: true, jsonrpc.CodeInvalidParams: true, jsonrpc.CodeUnsupportedVersion: false, jsonrpc.CodeHeaderMismatch: false,
	} {
		w := newWire(func(call *inflight.Call, method, params string) {
			if method == mcp.MethodTaskResult {
				refuse(call, code)
				return
			}
			tasking(call, method, params)
		})
		c := toTasks(t, w)
		_, err := c.Handle(t.Context(), toolNamed(modernRev, "must", ""), mcp.NoCaller{})
		failure, ok := errors.AsType[*mcp.CallError](err)
		cancels := len(w.all(mcp.MethodCancelTask))
		if isTheCalls && (codeOf(err) != code || cancels != 0) {
			t.Errorf("%d: %v, %d cancellations", code, err, cancels)
		}
		if !isTheCalls && (!ok || failure.Method != mcp.MethodCallTool || failure.Outcome != mcp.MaybeExecuted || cancels != 1) {
			t.Errorf("%d: %v, %d cancellations", code, err, cancels)
		}
	}
}

// TestNewsOfAnAwaitedTask is progress to its client, which rises whatever the server
// says besides.
func TestNewsOfAnAwaitedTask(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	l := newListener()
	r := handle(t, c, toolNamed(modernRev, "must", ""), l)
	created := receive(t, "the call", w.creating)
	answer(created, made)
	waiting := receive(t, "the wait for the result", w.waiting)
	for _, params := range []string{`"status":"working","statusMessage":"one"`, `"status":"input_required"`, `"status":"completed"`} {
		c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t\"1",`+params+`}}`), nil)
	}
	for _, progress := range []string{"0.5", "2", "3.5", "4"} {
		c.Notified(scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%s}}`, created.ID, progress)), nil)
	}
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t\"1","status":"working"}}`), nil)
	for _, want := range []string{`"progress":1,"message":"one"`, `"progress":2`, `"progress":3.5`, `"progress":4`} {
		if got := receive(t, "progress", l.got); got != `notifications/progress {"progressToken":"p",`+want+`}` {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	answer(waiting, final)
	<-r.done
	if got := l.told(); len(got) > 0 {
		t.Errorf("told %q", got)
	}
}

// TestToolThatWasCalledAsATaskIsOneAgain: its server has shown that it must be, whatever
// came of it, and is not asked again in vain.
func TestToolThatWasCalledAsATaskIsOneAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		serve func(call *inflight.Call, method string, task bool) bool
		code  int
	}{
		"a task that fails": {func(call *inflight.Call, method string, _ bool) bool {
			if method == mcp.MethodTaskResult {
				refuse(call, jsonrpc.CodeInternalError)
			}
			return method == mcp.MethodTaskResult
		}, jsonrpc.CodeInternalError},
		"no task after all": {func(call *inflight.Call, method string, task bool) bool {
			if task {
				answer(call, `{"content":[]}`)
			}
			return task
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(func(call *inflight.Call, method, params string) {
				switch {
				case method == mcp.MethodListTools:
					refuse(call, jsonrpc.CodeInternalError)
				case !tt.serve(call, method, strings.Contains(params, `"task":{`)):
					tasking(call, method, params)
				}
			})
			c := toTasks(t, w)
			for range 2 {
				if _, err := c.Handle(t.Context(), toolNamed(modernRev, "must", ""), mcp.NoCaller{}); codeOf(err) != tt.code {
					t.Errorf("got %v", err)
				}
			}
			var tasks int
			calls := w.all(mcp.MethodCallTool)
			for _, call := range calls {
				if strings.Contains(call, `"task":{`) {
					tasks++
				}
			}
			if len(calls) != 3 || tasks != 2 {
				t.Errorf("called %q", calls)
			}
		})
	}
}
