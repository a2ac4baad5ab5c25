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
	get := func(c *session.Client, client, id string, p mcp.Principal) error {
		req := of(client, mcp.MethodGetTask, `{"taskId":"`+id+`"}`)
		req.Meta.Principal = p
		_, err := c.Handle(t.Context(), req, mcp.NoCaller{})
		return err
	}
	alice := mcp.Principal{Issuer: "i", Subject: "alice"}
	if err := get(toTasks(t, numbered("null")), "a", "old", alice); codeOf(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("got %v", err)
	}
	// A list is not how to learn of them: it is everybody's who comes through us.
	c := toTasks(t, numbered("null"))
	listed := func(client, want string) {
		t.Helper()
		result, err := c.Handle(t.Context(), of(client, mcp.MethodListTasks, `{}`), mcp.NoCaller{})
		if err != nil || string(result.Raw()) != `{"tasks":[`+want+`],"nextCursor":"c"}` {
			t.Errorf("the list of %s is %s, %v", client, result.Raw(), err)
		}
	}
	listed("a", "")
	for _, id := range []string{"old", "1", "2"} {
		if err := get(c, "a", id, mcp.Principal{}); err != nil {
			t.Error(err)
		}
	}
	listed("a", `{"taskId":"1","z":1.0},{"taskId":"2"}`)
	for _, id := range []string{"old", "2", "3"} {
		if err := get(c, "b", id, mcp.Principal{}); codeOf(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("b got %v", err)
		}
	}
	listed("b", "")
	// What it has found stays its own.
	listed("a", `{"taskId":"1","z":1.0},{"taskId":"2"}`)
	if err := get(c, "a", "old", mcp.Principal{}); err != nil {
		t.Error(err)
	}
	if err := get(c, "a", "3", mcp.Principal{}); codeOf(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("got %v", err)
	}
}

// TestListOfAProgramsOwnTasks is the server's, also on another connection than they were
// made on: nobody else comes through it.
func TestListOfAProgramsOwnTasks(t *testing.T) {
	c := toTasks(t, numbered("null"))
	list := func(session string) string {
		t.Helper()
		req := of(session, mcp.MethodListTasks, `{}`)
		req.Meta.Revision = ""
		result, err := c.Handle(t.Context(), req, mcp.NoCaller{})
		if err != nil {
			t.Fatal(err)
		}
		return string(result.Raw())
	}
	const all = `{"tasks":[{"taskId":"1","z":1.0},{"taskId":"2"},{"taskId":"3"},{}],"nextCursor":"c"}`
	if got := list(""); got != all {
		t.Errorf("the list is %s", got)
	}
	if got := list("another"); strings.Contains(got, "1") {
		t.Errorf("the list of another one is %s", got)
	}
}

// TestTaskThatIsNotFound does not become the client's that has named it.
func TestTaskThatIsNotFound(t *testing.T) {
	refused := true
	c := toTasks(t, newWire(func(call *inflight.Call, _, _ string) {
		if refused {
			refuse(call, jsonrpc.CodeInvalidParams)
			return
		}
		answer(call, "{}")
	}))
	name := func(client string) error {
		_, err := c.Handle(t.Context(), of(client, mcp.MethodCancelTask, `{"taskId":"x"}`), mcp.NoCaller{})
		return err
	}
	if err := name("a"); codeOf(err) != jsonrpc.CodeInvalidParams || c.Tasks() != 0 {
		t.Errorf("got %v, %d tasks are known", err, c.Tasks())
	}
	refused = false
	_ = name("b")
	if err := name("a"); codeOf(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("got %v", err)
	}
}

// TestTaskThatIsMadeWhileItIsLookedFor is who made it's.
func TestTaskThatIsMadeWhileItIsLookedFor_TG2(t *testing.T) {
	looking := make(chan *inflight.Call, 1)
	looks := 0
	c := toTasks(t, newWire(func(call *inflight.Call, method, _ string) {
		switch {
		case method == mcp.MethodCallTool:
			answer(call, `{"task":{"taskId":"1"}}`)
		case looks == 0:
			looks++
			looking <- call
		default:
			answer(call, "{}")
		}
	}))
	first := handle(t, c, of("a", mcp.MethodGetTask, `{"taskId":"1"}`), mcp.NoCaller{})
	call := receive(t, "the look", looking)
	makeTaskOf(t, c, "b")
	answer(call, "{}")
	<-first.done
	for client, code := range map[string]int{"a": jsonrpc.CodeInvalidParams, "b": 0} {
		if _, err := c.Handle(t.Context(), of(client, mcp.MethodGetTask, `{"taskId":"1"}`), mcp.NoCaller{}); codeOf(err) != code {
			t.Errorf("%s got %v", client, err)
		}
	}
}

// TestTasksAreBounded: at the limits the client's own oldest is forgotten, or the
// call refused before it is made, as long as all the others' clients are there.
func TestTasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := numbered("60000")
		w.arrived = make(chan struct{}, 3*session.MaxTasks)
		c := toTasks(t, w)
		here := map[string]*running{}
		arrive := func(client string) {
			_, here[client] = listen(t, c, mcp.Metadata{Revision: legacyRev, Session: client}, mcp.Filter{Session: true})
		}
		arrive("another")
		makeTaskOf(t, c, "another")
		arrive("a")
		for range session.MaxTasksPerClient + 1 {
			makeTaskOf(t, c, "a")
		}
		if n := c.Tasks(); n != session.MaxTasksPerClient+1 {
			t.Errorf("%d tasks are known", n)
		}
		get := func(client, id string, code int) {
			t.Helper()
			if _, err := c.Handle(t.Context(), of(client, mcp.MethodGetTask, `{"taskId":"`+id+`"}`), mcp.NoCaller{}); codeOf(err) != code {
				t.Errorf("task %s: %v", id, err)
			}
		}
		get("a", "2", jsonrpc.CodeInvalidParams)
		get("a", "3", 0)
		for i := range session.MaxTasks - session.MaxTasksPerClient - 1 {
			client := fmt.Sprint("client", i%100)
			if here[client] == nil {
				arrive(client)
			}
			makeTaskOf(t, c, client)
		}
		late := func() error {
			_, err := c.Handle(t.Context(), of("late", mcp.MethodCallTool, `{"name":"x","task":{}}`), mcp.NoCaller{})
			return err
		}
		calls := len(w.all(mcp.MethodCallTool))
		if err := late(); err == nil || !strings.Contains(err.Error(), "MaxTasks") || len(w.all(mcp.MethodCallTool)) != calls {
			t.Errorf("got %v", err)
		}
		// The first of client0 is the oldest of those that are not there any more.
		for _, client := range []string{"client0", "client1"} {
			here[client].stop()
		}
		if err := late(); err != nil {
			t.Error(err)
		}
		arrive("late")
		first := session.MaxTasksPerClient + 3
		get("client0", fmt.Sprint(first), jsonrpc.CodeInvalidParams)
		get("client0", fmt.Sprint(first+100), 0)
		get("client1", fmt.Sprint(first+1), 0)
		get("another", "1", 0)
		for client := range here {
			if client != "client0" && client != "client1" {
				here[client].stop()
			}
		}
		time.Sleep(time.Hour)
		if err := late(); err != nil {
			t.Error(err)
		}
		if n := c.Tasks(); n != 1 {
			t.Errorf("%d tasks are known", n)
		}
	})
}

// TestAwaitedTaskIsNotForgotten, however many tasks its client makes, and however soon its
// time to live is over.
func TestAwaitedTaskIsNotForgotten_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowTask()
		w.arrived = make(chan struct{}, 3*session.MaxTasks)
		c := toTasks(t, w.wire)
		r := handle(t, c, toolNamed(modernRev, "must", ""), answering("its client"))
		answer(<-w.creating, made) // it lives for a minute
		waiting := <-w.waiting
		time.Sleep(2 * time.Minute)
		for i := range session.MaxTasks + 10 {
			client := "a"
			if i >= session.MaxTasksPerClient {
				client = fmt.Sprint("client", i%100)
			}
			other := handle(t, c, of(client, mcp.MethodCallTool, `{"name":"x","task":{}}`), mcp.NoCaller{})
			answer(<-w.creating, fmt.Sprintf(`{"task":{"taskId":"%d","ttl":1}}`, i))
			<-other.done
		}
		c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{`+related+`}}`), nil)
		synctest.Wait()
		if got := w.all("reply"); !slices.Equal(got, []string{`reply 1 {"from":"its client",` + related + `}`}) {
			t.Errorf("answered %q", got)
		}
		answer(waiting, final)
		<-r.done
	})
}

// TestMethodsOfTasksThatAServerHasNot are not of tasks that it has not.
func TestMethodsOfTasksThatAServerHasNot(t *testing.T) {
	w := newWire(func(call *inflight.Call, _, _ string) { refuse(call, jsonrpc.CodeMethodNotFound) })
	c := connected(t, w, asksEverything)
	for _, client := range []string{"a", "b", "a"} {
		if _, err := c.Handle(t.Context(), of(client, mcp.MethodGetTask, `{"taskId":"x"}`), mcp.NoCaller{}); codeOf(err) != jsonrpc.CodeMethodNotFound {
			t.Errorf("%s got %v", client, err)
		}
	}
}

// TestClientsTellOfTheirOwnTasks, and a server hears nothing of them from another client.
func TestClientsTellOfTheirOwnTasks_TG2(t *testing.T) {
	w := newSlowTask()
	c := toTasks(t, w.wire)
	caller := newListener()
	caller.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult([]byte(`{"task":{"taskId":"of a"}}`)), nil
	}
	r := handle(t, c, of("a", mcp.MethodCallTool, `{"name":"x"}`), caller)
	call := receive(t, "the call", w.creating)
	c.Asked(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"task":{}}}`), call)
	w.await(t, 1, "reply")
	answer(call, "{}")
	<-r.done
	for _, client := range []string{"b", "a"} {
		for _, id := range []string{"of a", "unknown"} {
			n := of(client, mcp.NotificationTaskStatus, `{"taskId":"`+id+`","by":"`+client+`"}`)
			n.Notification = true
			if _, err := c.Handle(t.Context(), n, mcp.NoCaller{}); err != nil {
				t.Error(err)
			}
		}
	}
	want := []string{`notifications/tasks/status {"taskId":"unknown","by":"b"}`, `notifications/tasks/status {"taskId":"of a","by":"a"}`, `notifications/tasks/status {"taskId":"unknown","by":"a"}`}
	if got := w.all(mcp.NotificationTaskStatus); !slices.Equal(got, want) {
		t.Errorf("the server was told %q", got)
	}
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
