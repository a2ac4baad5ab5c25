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

// numbered returns a legacy server whose tasks have the ids "1", "2" and so on, and
// which answers whatever is asked about any of them.
func numbered(ttl string) *wire {
	n := 0
	return newWire(func(call *inflight.Call, method, _ string) {
		switch method {
		case mcp.MethodCallTool:
			n++
			answer(call, fmt.Sprintf(`{"task":{"taskId":"%d","status":"working","ttl":%s}}`, n, ttl))
		case mcp.MethodListTasks:
			answer(call, `{"tasks":[{"taskId":"1","z":1.0},{"taskId":"2"},{"taskId":"3"},{}],"nextCursor":"c"}`)
		default:
			answer(call, `{"secret":1}`)
		}
	})
}

func of(client, method, params string) *mcp.Request {
	return &mcp.Request{
		Method: method, Params: jsonrpc.Trusted([]byte(params)),
		Meta: mcp.Metadata{Revision: legacyRev, Session: client},
	}
}

func makeTaskOf(t *testing.T, c *session.Client, client string) {
	t.Helper()
	if _, err := c.Handle(t.Context(), of(client, mcp.MethodCallTool, `{"name":"x","task":{}}`), mcp.NoCaller{}); err != nil {
		t.Fatal(err)
	}
}

// TestTasksOfOthers: what a client has not been given is the same to it as what there
// is not, and is not in its lists.
func TestTasksOfOthers_TG2_SEC104(t *testing.T) {
	w := numbered("null")
	c := toTasks(t, w)
	makeTaskOf(t, c, "a")
	makeTaskOf(t, c, "b")
	for _, method := range []string{mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask} {
		for client, own := range map[string]string{"a": "1", "b": "2", "c": ""} {
			for _, id := range []string{"1", "2", "3"} {
				result, err := c.Handle(t.Context(), of(client, method, `{"taskId":"`+id+`"}`), mcp.NoCaller{})
				if id == own && (err != nil || string(result.Raw()) != `{"secret":1}`) {
					t.Errorf("%s of %s by %s: %s, %v", method, id, client, result.Raw(), err)
				}
				if id != own && (codeOf(err) != jsonrpc.CodeInvalidParams || err.Error() != errNoTask) {
					t.Errorf("%s of %s by %s: %s, %v", method, id, client, result.Raw(), err)
				}
			}
		}
		if got := len(w.all(method)); got != 2 {
			t.Errorf("the server got %d requests", got)
		}
	}
	for client, want := range map[string]string{
		"a": `{"tasks":[{"taskId":"1","z":1.0}],"nextCursor":"c"}`, "b": `{"tasks":[{"taskId":"2"}],"nextCursor":"c"}`, "c": `{"tasks":[],"nextCursor":"c"}`,
	} {
		result, err := c.Handle(t.Context(), of(client, mcp.MethodListTasks, `{}`), mcp.NoCaller{})
		if err != nil || string(result.Raw()) != want {
			t.Errorf("the list of %s is %s, %v", client, result.Raw(), err)
		}
	}
	// The extension's methods of the same names are not for a legacy server.
	for _, method := range []string{mcp.MethodGetTask, mcp.MethodUpdateTask, mcp.MethodCancelTask} {
		req := of("a", method, `{"taskId":"1"}`)
		req.Meta.Revision = modernRev
		if _, err := c.Handle(t.Context(), req, mcp.NoCaller{}); codeOf(err) != jsonrpc.CodeMethodNotFound {
			t.Errorf("%s: %v", method, err)
		}
	}
}

const errNoTask = "Failed to retrieve task: Task not found (-32602)"

// TestTasksOfAnEarlierConnection can be had by the only client there is, which may
// have made them there; not by one of which it is known who it is.
func TestTasksOfAnEarlierConnection(t *testing.T) {
	get := func(c *session.Client, client string, p mcp.Principal) error {
		req := of(client, mcp.MethodGetTask, `{"taskId":"old"}`)
		req.Meta.Principal = p
		_, err := c.Handle(t.Context(), req, mcp.NoCaller{})
		return err
	}
	alice := mcp.Principal{Issuer: "i", Subject: "alice"}
	c := toTasks(t, numbered("null"))
	if err := get(c, "a", mcp.Principal{}); err != nil {
		t.Error(err)
	}
	if err := get(c, "a", alice); codeOf(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("got %v", err)
	}
	if result, err := c.Handle(t.Context(), of("a", mcp.MethodListTasks, `{}`), mcp.NoCaller{}); err != nil || !strings.Contains(string(result.Raw()), `"3"`) {
		t.Errorf("the list is %s, %v", result.Raw(), err)
	}
	for _, client := range []string{"b", "a"} {
		if err := get(c, client, mcp.Principal{}); codeOf(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("%s got %v", client, err)
		}
	}
}

// TestTasksAreBounded: at the limits the client's own oldest is forgotten, or the
// call refused before it is made.
func TestTasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := numbered("60000")
		w.arrived = make(chan struct{}, 2*session.MaxTasks)
		c := toTasks(t, w)
		makeTaskOf(t, c, "another")
		for range session.MaxTasksPerClient + 1 {
			makeTaskOf(t, c, "a")
		}
		if n := c.Tasks(); n != session.MaxTasksPerClient+1 {
			t.Errorf("%d tasks are known", n)
		}
		for id, code := range map[string]int{"2": jsonrpc.CodeInvalidParams, "3": 0} {
			if _, err := c.Handle(t.Context(), of("a", mcp.MethodGetTask, `{"taskId":"`+id+`"}`), mcp.NoCaller{}); codeOf(err) != code {
				t.Errorf("task %s: %v", id, err)
			}
		}
		for i := range session.MaxTasks - session.MaxTasksPerClient - 1 {
			makeTaskOf(t, c, fmt.Sprint("client", i%100))
		}
		calls := len(w.all(mcp.MethodCallTool))
		_, err := c.Handle(t.Context(), of("late", mcp.MethodCallTool, `{"name":"x","task":{}}`), mcp.NoCaller{})
		if err == nil || !strings.Contains(err.Error(), "MaxTasks") || len(w.all(mcp.MethodCallTool)) != calls {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Hour)
		makeTaskOf(t, c, "late")
		if n := c.Tasks(); n != 1 {
			t.Errorf("%d tasks are known", n)
		}
	})
}

// TestWhatConcernsATaskReachesItsClient, of two that share a connection.
func TestWhatConcernsATaskReachesItsClient_B151(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	clients := map[string]*listener{}
	for _, name := range []string{"a", "b"} {
		l, _ := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: name}, mcp.Filter{Session: true})
		l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
			return mcp.RawResult([]byte(`{"by":"` + name + `"}`)), nil
		}
		clients[name] = l
		req := toolNamed(legacyRev, "x", `,"task":{}`)
		req.Meta.Session = name
		req.Meta.ProgressToken = jsonrpc.StringID(name)
		r := handle(t, c, req, mcp.NoCaller{})
		call := receive(t, "the call", w.creating)
		answer(call, fmt.Sprintf(`{"task":{"taskId":"%s","status":"working"}}`, name))
		<-r.done
		c.Notified(scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, call.ID)), nil)
		c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"`+name+`"}}`), nil)
	}
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"unknown"}}`), nil)
	for i, name := range []string{"a", "b"} {
		for _, want := range []string{`notifications/progress {"progressToken":"` + name + `","progress":1}`, `notifications/tasks/status {"taskId":"` + name + `"}`} {
			if got := receive(t, "a notification", clients[name].got); got != want {
				t.Errorf("%s was told %s", name, got)
			}
		}
		c.Asked(t.Context(), scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"%s"}}}}`, i, name)), nil)
		if got := w.await(t, i+1, "reply"); got[i] != fmt.Sprintf(`reply %d {"by":"%s"}`, i, name) {
			t.Errorf("answered %q", got)
		}
	}
	// Once its client waits for the result, that call is where it is asked.
	waiter := newListener()
	waiter.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult([]byte(`{"by":"the waiting call"}`)), nil
	}
	r := handle(t, c, of("b", mcp.MethodTaskResult, `{"taskId":"b"}`), waiter)
	receive(t, "the wait", w.waiting)
	c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"b"}}}}`), nil)
	if got := w.await(t, 3, "reply"); got[2] != `reply 9 {"by":"the waiting call"}` {
		t.Errorf("answered %q", got)
	}
	r.stop()
}

// TestTasksOfClients: what a server asks about a task that a client has made for it
// goes to that client, and to none if that cannot be told.
func TestTasksOfClients(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	n := 0
	ask := func(method, params string) string {
		t.Helper()
		n++
		c.Asked(t.Context(), scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}`, n, method, params)), nil)
		_, answer, _ := strings.Cut(w.await(t, n, "reply")[n-1], " ")
		return answer
	}
	for _, name := range []string{"a", "b"} {
		l, _ := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: name}, mcp.Filter{Session: true})
		l.ask = func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			return mcp.RawResult([]byte(`{"by":"` + name + ` ` + req.Method + `"}`)), nil
		}
		// In the middle of a call of the client it is asked something as a task.
		caller := newListener()
		caller.ask = func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			id, _ := req.Params.LookupString("want")
			return mcp.RawResult([]byte(`{"task":{"taskId":"` + strings.ReplaceAll(id, "*", name) + `"}}`)), nil
		}
		r := handle(t, c, of(name, mcp.MethodCallTool, `{"name":"x"}`), caller)
		call := receive(t, "the call", w.creating)
		for _, want := range []string{"of *", "of both"} {
			ask(mcp.MethodCreateMessage, `{"task":{"ttl":1},"want":"`+want+`"}`)
		}
		answer(call, "{}")
		<-r.done
	}
	for _, method := range []string{mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask} {
		for id, want := range map[string]string{
			"of a": `{"by":"a ` + method + `"}`, "of b": `{"by":"b ` + method + `"}`, "of both": "error -32601", "unknown": "error -32603",
		} {
			if got := ask(method, `{"taskId":"`+id+`"}`); got != fmt.Sprintf("%d %s", n, want) {
				t.Errorf("%s of %q: %s", method, id, got)
			}
		}
	}
	if got := ask(mcp.MethodListTasks, `{}`); !strings.HasSuffix(got, "error -32603") {
		t.Errorf("the list is %s", got)
	}
}

// TestTaskOfTheOnlyClient: its session is asked, whatever call is in flight: that may
// be over before the answer.
func TestTaskOfTheOnlyClient(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	l, _ := listen(t, c, mcp.Metadata{Revision: legacyRev, Session: "a"}, mcp.Filter{Session: true})
	l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult([]byte(`{"status":"working"}`)), nil
	}
	r := handle(t, c, of("a", mcp.MethodCallTool, `{"name":"x"}`), newListener())
	receive(t, "the call", w.creating)
	for i, method := range []string{mcp.MethodGetTask, mcp.MethodListTasks} {
		c.Asked(t.Context(), scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"taskId":"any"}}`, i, method)), nil)
		if got := w.await(t, i+1, "reply"); !slices.Contains(got, fmt.Sprintf(`reply %d {"status":"working"}`, i)) {
			t.Errorf("answered %q", got)
		}
	}
	r.stop()
}
