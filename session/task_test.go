package session_test

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
	"github.com/mcpsplice/mcpsplice/session"
)

// A tasker is a modern server whose tool results in a task. Looked at, it says the
// next of its states, and the last one from then on.
type tasker struct {
	created string // members of the first state
	states  []string
	listen  func(ctx context.Context, caller mcp.Caller) error // nil for a server that tells nothing
	get     func(n int) error                                  // nil for no failures
	update  func() error                                       // nil for no failures

	mu   sync.Mutex
	got  []string // "method params" about the task
	when []time.Duration
	from time.Time
	meta mcp.Metadata // of the last request
	n    int          // how often it was looked at
}

const theTask = `"taskId":"t1","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z",`

func (s *tasker) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from.IsZero() {
		s.from = time.Now()
	}
	switch req.Method {
	case mcp.MethodDiscover:
		return mcp.RawResult([]byte(discovered)), nil
	case mcp.MethodCallTool:
		s.from = time.Now()
		s.meta = req.Meta
		return mcp.RawResult([]byte(`{"resultType":"task",` + theTask + s.created + `}`)), nil
	case mcp.MethodListen:
		if s.listen == nil || !strings.Contains(string(req.Params.Raw()), `"taskIds":["t1"]`) {
			return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no")
		}
		s.mu.Unlock()
		defer s.mu.Lock()
		return mcp.Result{}, s.listen(ctx, caller)
	}
	if !req.Meta.TakesTasks || !req.Meta.ProgressToken.IsZero() {
		return mcp.Result{}, errors.New("the metadata are not those of a request about a task")
	}
	s.got = append(s.got, req.Method+" "+string(req.Params.Raw()))
	s.when = append(s.when, time.Since(s.from))
	if req.Method == mcp.MethodUpdateTask && s.update != nil {
		return mcp.Result{}, s.update()
	}
	if req.Method != mcp.MethodGetTask {
		return mcp.RawResult([]byte(`{"resultType":"complete"}`)), nil
	}
	s.n++
	if s.get != nil {
		if err := s.get(s.n); err != nil {
			return mcp.Result{}, err
		}
	}
	return mcp.RawResult([]byte(`{"resultType":"complete",` + theTask + s.states[min(s.n, len(s.states))-1] + `}`)), nil
}

// about returns the requests about the task, without looks at it.
func (s *tasker) about() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.got {
		if !strings.HasPrefix(line, mcp.MethodGetTask) {
			all = append(all, line)
		}
	}
	return all
}

const (
	done      = `"status":"completed","result":{"content":[],"n":1.0}`
	working   = `"status":"working"`
	cancelled = `tasks/cancel {"taskId":"t1"}`
)

// callTask calls the tool of a tasker for a legacy client that made the handshake.
func callTask(t *testing.T, s *tasker, params string) (*session.Server, *called) {
	t.Helper()
	return callTaskOf(t, session.ServerOptions{}, s, params)
}

func callTaskOf(t *testing.T, opts session.ServerOptions, s *tasker, params string) (*session.Server, *called) {
	t.Helper()
	server := session.NewServer(s, opts)
	t.Cleanup(server.Close)
	if _, err := server.Handle(t.Context(), scan(t, strings.Replace(initialize, `"elicitation":{}`, `"elicitation":{"form":{},"url":{}}`, 1)), nil); err != nil {
		t.Fatal(err)
	}
	return server, callTool(t, server, params)
}

// TestTaskIsAwaitedForALegacyClient: the client gets the result, and hears of the
// task meanwhile.
func TestTaskIsAwaitedForALegacyClient(t *testing.T) {
	for _, tt := range []struct {
		name, created string
		states        []string
		when          string // looks at the task
		progress      string // "any" if it does not matter
	}{
		{"at the server's pace", working + `,"pollIntervalMs":300,"statusMessage":"begun"`,
			[]string{working + `,"pollIntervalMs":500,"statusMessage":"half"`, working + `,"statusMessage":"half"`, done},
			"[300ms 800ms 1.8s]", "1 begun, 2 half"},
		{"not faster than may be", working + `,"pollIntervalMs":1`, []string{working + `,"pollIntervalMs":0.5`, done}, "[100ms 200ms]", "1 "},
		{"not slower than may be", working + `,"pollIntervalMs":1e300`, []string{done}, "[1m0s]", "any"}, // the last look and a sign of life fall together
		{"over at once", `"status":"completed"`, []string{done}, "[0s]", ""},
		{"without news", working + `,"pollIntervalMs":6000`, []string{working + `,"pollIntervalMs":6000`, working + `,"pollIntervalMs":6000`, done},
			"[6s 12s 18s]", "1 , 2 "},
		{"seldom looked at", working + `,"pollIntervalMs":25000`, []string{working + `,"pollIntervalMs":25000,"statusMessage":"half"`, done},
			"[25s 50s]", "1 , 2 , 3 , 4 half, 5 half, 6 half"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tasker{created: tt.created, states: tt.states}
				server, c := callTask(t, s, `{"name":"t","_meta":{"progressToken":"p"}}`)
				if got := <-c.done; got != `{"content":[],"n":1.0}` {
					t.Errorf("got %s", got)
				}
				if got := fmt.Sprint(s.when); got != tt.when {
					t.Errorf("looked after %s, want %s", got, tt.when)
				}
				var told []string
				for len(c.out) > 0 {
					m := scan(t, <-c.out)
					token, _ := m.Body.LookupString("progressToken")
					progress, _ := m.Body.Lookup("progress")
					message, _ := m.Body.LookupString("message")
					if string(m.Method) != mcp.NotificationProgress || token != "p" {
						t.Errorf("sent %s %s", m.Method, m.Body.Raw())
					}
					told = append(told, string(progress)+" "+message)
				}
				if got := strings.Join(told, ", "); got != tt.progress && tt.progress != "any" {
					t.Errorf("told %q, want %q", got, tt.progress)
				}
				if got := s.about(); len(got) > 0 {
					t.Errorf("the server got %q", got)
				}
				if !s.meta.TakesTasks {
					t.Error("the server is not told that tasks are awaited")
				}
				server.Close()
			})
		})
	}
}

// TestProgressOfATaskRises from what the server has told before it made the task, and
// news of the extension's tasks is not for its client.
func TestProgressOfATaskRises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasker{created: working, states: []string{done}}
		told := []*mcp.Notification{
			{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(`{"progressToken":"p","progress":5.5}`))},
			{Method: mcp.NotificationTask, Params: jsonrpc.Trusted([]byte(`{"taskId":"t1","status":"working"}`))},
		}
		server := session.NewServer(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				if err := mcp.NotifyAll(ctx, caller, told); err != nil {
					return mcp.Result{}, err
				}
			}
			return s.Handle(ctx, req, caller)
		}), session.ServerOptions{})
		if _, err := server.Handle(t.Context(), scan(t, initialize), nil); err != nil {
			t.Fatal(err)
		}
		c := callTool(t, server, `{"name":"t","_meta":{"progressToken":"p"}}`)
		<-c.done
		server.Close()
		for _, want := range []string{"5.5", "6"} {
			if got := <-c.out; got != `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":`+want+`}}` {
				t.Errorf("told %s, want %s", got, want)
			}
		}
		if len(c.out) > 0 {
			t.Errorf("told %s", <-c.out)
		}
	})
}

// TestTaskThatDoesNotSucceed: each end is told apart, and a task that goes on is
// cancelled.
func TestTaskThatDoesNotSucceed(t *testing.T) {
	lost := &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Public: "gone"}
	unreachable := &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent}
	refused := func(m string) error {
		v := jsonrpc.Trusted([]byte(`{"code":-32602,"message":"` + m + `"}`))
		return jsonrpc.ReadError(&v)
	}
	for _, tt := range []struct {
		name    string
		created string
		states  []string
		get     func(n int) error
		want    string
		cancels bool
	}{
		{"failed", working, []string{`"status":"failed","error":{"code":-7,"message":"why","data":[1.0]}`}, nil, `error -7 why [1.0]`, false},
		{"failed without a reason", working, []string{`"status":"failed","statusMessage":"m"`}, nil, `error -32603 Internal error: cancelled: the server's task has failed: m {"mcpsplice":{"kind":"cancelled","outcome":"maybe executed"}}`, false},
		{"cancelled by the server", working, []string{`"status":"cancelled","statusMessage":"m"`}, nil, `error -32603 Internal error: cancelled: the server has cancelled its task: m `, false},
		{"expired", working + `,"ttlMs":60000`, []string{working}, func(int) error { return refused("Task has expired") },
			`error -32603 Internal error: bad reply: the server refuses tasks/get: Task has expired (its time to live is 1m0s) `, true},
		{"no result", working, []string{`"status":"completed"`}, nil, `error -32603 Internal error: bad reply: the server's task is completed and has no result`, false},
		{"a state that is none", working, []string{`"status":"paused"`}, nil, `error -32603 Internal error: bad reply: the server's answer about the task is not one`, true},
		{"cannot be looked at", working, []string{working}, func(int) error { return lost },
			`error -32603 Internal error: connection lost: gone {"mcpsplice":{"kind":"connection lost","outcome":"maybe executed"}}`, true},
		{"cannot be reached any more", working, []string{working}, func(int) error { return unreachable },
			`error -32603 Internal error: unreachable {"mcpsplice":{"kind":"unreachable","outcome":"maybe executed"}}`, true},
		{"can be looked at again", working, []string{working}, func(n int) error {
			if n%5 > 0 && n < 10 {
				return lost
			}
			if n > 10 {
				return refused("over")
			}
			return nil
		}, `error -32603 Internal error: bad reply: the server refuses tasks/get: over`, true},
		{"for ever", working + `,"pollIntervalMs":60000`, []string{working + `,"pollIntervalMs":60000`}, nil,
			`error -32603 Internal error: limit exceeded: the server's task has not ended within 1h0m0s {"mcpsplice":{"kind":"limit exceeded","outcome":"maybe executed","limit":"MaxTaskWait"}}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tasker{created: tt.created, states: tt.states, get: tt.get}
				server, c := callTask(t, s, `{"name":"t"}`)
				if got := <-c.done; !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %s", got)
				}
				if got := s.about(); len(got) > 0 != tt.cancels || tt.cancels && got[0] != cancelled {
					t.Errorf("the server got %q", got)
				}
				if len(c.out) > 0 {
					t.Errorf("the client got %s", <-c.out)
				}
				server.Close()
			})
		})
	}
}

func TestTaskWithoutAnIDIsNotATask(t *testing.T) {
	for _, result := range []string{`{"resultType":"task"}`, `{"resultType":"task","taskId":5}`, `{"resultType":"task","taskId":""}`,
		`{"resultType":"task","taskId":"` + strings.Repeat("x", mcp.MaxTaskID) + `"}`} {
		b := needing(result)
		c := callTool(t, serving(t, b), `{"name":"t"}`)
		if got := receive(t, "the failure", c.done); !strings.Contains(got, "a task without a usable id") {
			t.Errorf("got %s", got)
		}
	}
	// Only a tool may become a task.
	s := serving(t, needing(`{"resultType":"task","taskId":"t1"}`))
	_, err := s.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"p"}}`), make(outlet, 1))
	if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.Unsupported {
		t.Errorf("got %v", err)
	}
}

// TestTaskIsCancelledWithItsCall: by the client, and at the session's end; not if
// it is over.
func TestTaskIsCancelledWithItsCall(t *testing.T) {
	for _, end := range []string{"notifications/cancelled", "context", "session"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tasker{created: working, states: []string{`"status":"input_required","inputRequests":{"a":{"method":"roots/list"}}`}}
				server, c := callTask(t, s, `{"name":"t"}`)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if got := len(c.out); got != 1 {
					t.Fatalf("%d questions", got)
				}
				switch end {
				case "context":
					c.stop()
				case "session":
					server.Close()
				default:
					server.Notified(t.Context(), scan(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`))
				}
				if got := <-c.done; !strings.HasPrefix(got, "error ") {
					t.Errorf("got %s", got)
				}
				if got := s.about(); len(got) != 1 || got[0] != cancelled {
					t.Errorf("the server got %q", got)
				}
				if <-c.out; end != "session" && !strings.Contains(<-c.out, mcp.NotificationCancelled) {
					t.Error("the question was not taken back")
				}
				server.Close()
			})
		})
	}
}

// TestServerThatDoesNotCancel holds up the end of the call no longer than a bound.
func TestServerThatDoesNotCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{serve: func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodCallTool:
				return mcp.RawResult([]byte(`{"resultType":"task",` + theTask + working + `}`)), nil
			case mcp.MethodCancelTask, mcp.MethodGetTask:
				<-ctx.Done()
			}
			return mcp.Result{}, ctx.Err()
		}}
		s := session.NewServer(b, session.ServerOptions{})
		defer s.Close()
		if _, err := s.Handle(t.Context(), scan(t, initialize), nil); err != nil {
			t.Fatal(err)
		}
		c := callTool(t, s, `{"name":"t"}`)
		time.Sleep(time.Minute)
		began := time.Now()
		c.stop()
		if got := <-c.done; time.Since(began) != session.TaskCancelWait || b.count(mcp.MethodCancelTask) != 1 {
			t.Errorf("got %s after %v", got, time.Since(began))
		}
	})
}

// TestTasksAreWaitedForAsLongAsConfigured, on both sides.
func TestTasksAreWaitedForAsLongAsConfigured(t *testing.T) {
	const limit = 90 * time.Second
	overdue := func(t *testing.T, began time.Time, err error) {
		t.Helper()
		e, ok := errors.AsType[*mcp.CallError](err)
		if took := time.Since(began); !ok || e.Limit != "MaxTaskWait" || took != limit {
			t.Errorf("got %v after %v", err, took)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		server := session.NewServer(&tasker{created: working, states: []string{working}}, session.ServerOptions{MaxTaskWait: limit})
		defer server.Close()
		if _, err := server.Handle(t.Context(), scan(t, initialize), nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := server.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`), make(outlet, 10))
		overdue(t, began, err)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newSlowTask()
		c := toTasks(t, w.wire, limit)
		r := handle(t, c, toolNamed(modernRev, "must", ""), newListener())
		answer(<-w.creating, made)
		<-w.waiting
		began := time.Now()
		<-r.done
		overdue(t, began, r.err)
		if got := w.all(mcp.MethodCallTool); len(got) != 1 || !strings.Contains(got[0], `"task":{"ttl":90000}`) {
			t.Errorf("sent %q", got)
		}
	})
}
