package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"

	"github.com/google/go-cmp/cmp"
)

// A taskBench is clients in front of a bridge in front of a taskServer.
type taskBench struct {
	server    *taskServer
	clientEra mcp.Era
	clients   []transport.Edge
}

// taskCapabilities are of a client that knows the tasks of its revision.
var taskCapabilities = map[mcp.Era]string{
	mcp.Modern: `{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`,
	mcp.Legacy: `{"elicitation":{"form":{}},"tasks":{"list":{},"cancel":{}}}`,
}

func newTaskBench(t *testing.T, client, server side, clients int, isolation transport.Isolation) *taskBench {
	t.Helper()
	b := &taskBench{server: newTaskServer(server.era), clientEra: client.era}
	dialServer := transports[server.kind](t, b.server, server.era)
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		return dialServer(ctx, transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities, Logger: logger})
	}, transport.PoolOptions{Logger: logger, Isolation: isolation})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Errorf("closing the pool: %v", err)
		}
	})
	dialBridge := transports[client.kind](t, pool, client.era)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range clients {
		c, err := dialBridge(ctx, transport.DialOptions{Capabilities: []byte(taskCapabilities[client.era]), Logger: logger})
		if err != nil {
			t.Fatalf("connecting to the bridge: %v", err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Errorf("closing the client: %v", err)
			}
		})
		b.clients = append(b.clients, c)
	}
	return b
}

func (b *taskBench) request(method, params string) *mcp.Request {
	return &mcp.Request{Method: method, Params: jsonrpc.Trusted([]byte(params)), Meta: mcp.Metadata{
		Client: []byte(`{"name":"tester","version":"1"}`), Capabilities: []byte(taskCapabilities[b.clientEra]),
	}}
}

func (b *taskBench) do(t *testing.T, client int, method, params string, caller mcp.Caller) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := b.clients[client].Handle(ctx, b.request(method, params), caller)
	return string(result.Raw()), err
}

const answered = `"structuredContent":{"answer":` + accepted + `}`

// TestTasksThroughABridge: whatever a client knows of tasks, it gets the result of a
// tool that is one, and is asked what that asks.
func TestTasksThroughABridge_B151(t *testing.T) {
	inAllCombinations(t, func(t *testing.T, client, server side) {
		b := newTaskBench(t, client, server, 1, transport.Automatic)
		if client.era == mcp.Modern && server.era == mcp.Modern {
			b.testExtension(t)
			return
		}
		r := newRecorder()
		got, err := b.do(t, 0, "tools/call", `{"name":"ask"}`, r)
		if err == nil && client.era == mcp.Modern {
			v := jsonrpc.Trusted([]byte(got))
			state, _ := v.Lookup("requestState")
			if asks := v.Get("inputRequests"); !strings.Contains(string(asks.Raw()), `"message":"who?"`) {
				t.Fatalf("the result is %s", got)
			}
			got, err = b.do(t, 0, "tools/call", `{"name":"ask","inputResponses":{"q1":`+accepted+`},"requestState":`+string(state)+`}`, r)
		}
		if err != nil || !strings.HasPrefix(got, `{"content":[],`+answered) || strings.Contains(got, "related-task") {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

// testExtension: the extension passes as it came.
func (b *taskBench) testExtension(t *testing.T) {
	want := func(method, params, want string) {
		t.Helper()
		got, err := b.do(t, 0, method, params, mcp.NoCaller{})
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", method, diff)
		}
	}
	info := b.clients[0].Server()
	if got := info.Discover.Get("capabilities"); !strings.Contains(string(got.Raw()), `"io.modelcontextprotocol/tasks":{}`) {
		t.Errorf("the bridge declares %s", got.Raw())
	}
	const task, id = `tâsk \"1\"`, `{"taskId":"tâsk \"1\""`
	want("tools/call", `{"name":"ask"}`, `{"resultType":"task","taskId":"`+task+`"`+taskTimes+`,"status":"working","ttlMs":60000,"pollIntervalMs":100,"vendor":1.0}`)
	state := func(more string) string {
		return `{"resultType":"complete","taskId":"` + task + `"` + taskTimes + `,"ttlMs":60000,"pollIntervalMs":100,` + more + `}`
	}
	want("tasks/get", id+`}`, state(`"status":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":`+question+`}}`))
	b.testNews(t, task)
	want("tasks/update", id+`,"inputResponses":{"name":`+accepted+`}}`, `{"resultType":"complete"}`)
	want("tasks/get", id+`}`, state(`"status":"completed","result":{"content":[],`+answered+`}`))
	want("tasks/cancel", id+`}`, `{"resultType":"complete"}`)
	if got := await(t, b.server.cancelled); quoted(got) != `"`+task+`"` {
		t.Errorf("%s was cancelled", got)
	}
	for _, method := range []string{mcp.MethodTaskResult, mcp.MethodListTasks} {
		if got, err := b.do(t, 0, method, id+`}`, mcp.NoCaller{}); !errors.Is(err, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "")) {
			t.Errorf("%s: %s, %v", method, got, err)
		}
	}
	if got, err := b.do(t, 0, "tasks/get", `{"taskId":"none"}`, mcp.NoCaller{}); !errors.Is(err, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "")) {
		t.Errorf("a task that there is not: %s, %v", got, err)
	}
	req := b.request("tasks/get", id+`}`)
	req.Meta.Capabilities = []byte("{}")
	_, err := b.clients[0].Handle(t.Context(), req, mcp.NoCaller{})
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != jsonrpc.CodeMissingCapability || string(e.Data.Raw()) != `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}` {
		t.Errorf("a client that has not declared the extension: %v", err)
	}
}

// testNews listens to one of two tasks.
func (b *taskBench) testNews(t *testing.T, task string) {
	if _, err := b.do(t, 0, "tools/call", `{"name":"slow"}`, mcp.NoCaller{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := newRecorder()
	ended := make(chan error, 1)
	go func() {
		_, err := b.clients[0].Handle(ctx, b.request("subscriptions/listen", `{"notifications":{"taskIds":["`+task+`"]}}`), r)
		ended <- err
	}()
	if got := await(t, r.signal); !strings.HasPrefix(got, `notifications/subscriptions/acknowledged {"notifications":{"taskIds":["`+task+`"]}`) {
		t.Errorf("acknowledged %s", got)
	}
	// Both change; it is told of one.
	if _, err := b.do(t, 0, "tasks/cancel", `{"taskId":"tâsk \"2\""}`, mcp.NoCaller{}); err != nil {
		t.Fatal(err)
	}
	await(t, b.server.cancelled)
	if got := await(t, r.signal); !strings.HasPrefix(got, `notifications/tasks {"taskId":"`+task+`"`) || !strings.Contains(got, `"status":"input_required"`) {
		t.Errorf("told %s", got)
	}
	cancel()
	await(t, ended)
}

// TestCancelReachesTheTask whose call ends, wherever that was made.
func TestCancelReachesTheTask_B136(t *testing.T) {
	inAllCombinations(t, func(t *testing.T, client, server side) {
		if client.era == mcp.Modern && server.era == mcp.Modern {
			return // its client has the task, and cancels it: testExtension
		}
		b := newTaskBench(t, client, server, 1, transport.Automatic)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req := b.request("tools/call", `{"name":"slow","_meta":{"progressToken":"p"}}`)
		req.Meta.ProgressToken = jsonrpc.StringID("p")
		r := newRecorder()
		ended := make(chan error, 1)
		go func() {
			_, err := b.clients[0].Handle(ctx, req, r)
			ended <- err
		}()
		id := await(t, b.server.started)
		if client.era == mcp.Legacy && server.era == mcp.Modern {
			for got := ""; !strings.Contains(got, `"message":"on it"`); {
				if got = await(t, r.signal); !strings.HasPrefix(got, "notifications/progress ") {
					t.Errorf("told %s", got)
				}
			}
		}
		cancel()
		if err := await(t, ended); err == nil {
			t.Error("the call succeeded")
		}
		if got := await(t, b.server.cancelled); got != id {
			t.Errorf("%s was cancelled, not %s", got, id)
		}
	})
}

// TestTasksOfTwoClients: on a connection that they share each has its own, and
// neither gets at the other's, which is as one that there is not.
func TestTasksOfTwoClients_TG2_SEC104(t *testing.T) {
	for _, client := range []side{{"stdio", mcp.Legacy}, {"http", mcp.Legacy}} {
		for _, server := range []side{{"stdio", mcp.Legacy}, {"http", mcp.Legacy}} {
			for _, isolation := range []transport.Isolation{transport.Shared, transport.PerClient} {
				t.Run(fmt.Sprint(client.kind, " to ", server.kind, " ", isolation), func(t *testing.T) {
					testTwoClients(t, newTaskBench(t, client, server, 2, isolation), isolation)
				})
			}
		}
	}
}

func testTwoClients(t *testing.T, b *taskBench, isolation transport.Isolation) {
	ids := make([]string, 2)
	for i := range ids {
		got, err := b.do(t, i, "tools/call", `{"name":"ask","task":{"ttl":60000}}`, mcp.NoCaller{})
		v := jsonrpc.Trusted([]byte(got))
		task := v.Get("task")
		raw, ok := task.Lookup("taskId")
		if err != nil || !ok || !strings.Contains(got, `"vendor":1.0`) {
			t.Fatalf("client %d: %s, %v", i, got, err)
		}
		ids[i] = string(raw)
	}
	if isolation == transport.Shared {
		for i := range ids {
			for _, method := range []string{mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask} {
				_, foreign := b.do(t, i, method, `{"taskId":`+ids[1-i]+`}`, newRecorder())
				_, none := b.do(t, i, method, `{"taskId":"none"}`, newRecorder())
				if foreign == nil || none == nil || foreign.Error() != none.Error() || !errors.Is(none, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "")) {
					t.Errorf("%s by client %d: %v, and of none %v", method, i, foreign, none)
				}
			}
		}
	}
	for i := range ids {
		// The server lists those of all, whatever connection they were made on.
		if got, err := b.do(t, i, mcp.MethodListTasks, `{}`, mcp.NoCaller{}); err != nil || !strings.Contains(got, ids[i]) || strings.Contains(got, ids[1-i]) {
			t.Errorf("the list of client %d: %s, %v", i, got, err)
		}
		if got, err := b.do(t, i, mcp.MethodGetTask, `{"taskId":`+ids[i]+`}`, mcp.NoCaller{}); err != nil || !strings.Contains(got, `"status":"working"`) {
			t.Errorf("client %d: %s, %v", i, got, err)
		}
	}
	// Both wait at once: each is asked about its own.
	results := make([]chan string, 2)
	for i := range ids {
		results[i] = make(chan string, 1)
		go func() {
			got, err := b.clients[i].Handle(t.Context(), b.request(mcp.MethodTaskResult, `{"taskId":`+ids[i]+`}`), &naming{name: fmt.Sprint("client ", i)})
			results[i] <- fmt.Sprint(string(got.Raw()), err)
		}()
	}
	for i := range ids {
		want := fmt.Sprintf(`{"content":[],"structuredContent":{"answer":{"action":"accept","content":{"name":"client %d"}}},`+
			`"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%s}}}<nil>`, i, ids[i])
		if got := await(t, results[i]); got != want {
			t.Errorf("client %d got %s", i, got)
		}
	}
}

// naming answers with a name.
type naming struct {
	mcp.NoCaller
	name string
}

func (n *naming) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return raw(`{"action":"accept","content":{"name":` + quoted(n.name) + `}}`)
}

// TestTasksOutsideCalls: what a legacy server says of a task reaches the session of a
// legacy client, and so does what it asks of a task that the client works on.
func TestTasksOutsideCalls(t *testing.T) {
	inAllCombinations(t, func(t *testing.T, client, server side) {
		if client.era != mcp.Legacy || server.era != mcp.Legacy {
			return // has no such things
		}
		b := newTaskBench(t, client, server, 1, transport.Automatic)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r := &working{newRecorder()}
		ended := make(chan error, 1)
		go func() {
			_, err := b.clients[0].Handle(ctx, b.request("subscriptions/listen", `{"notifications":{"session":true}}`), r)
			ended <- err
		}()
		await(t, r.signal) // the acknowledgement
		toClient := await(t, b.server.sessions)
		got, err := b.do(t, 0, "tools/call", `{"name":"ask","task":{}}`, mcp.NoCaller{})
		v := jsonrpc.Trusted([]byte(got))
		task := v.Get("task")
		if err != nil || mcp.TaskID(&task) == "" {
			t.Fatalf("got %s, %v", got, err)
		}
		status := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "taskId", Value: []byte(quoted(mcp.TaskID(&task)))},
			jsonrpc.Edit{Name: "status", Value: []byte(`"working"`)}, jsonrpc.Edit{Name: "vendor", Value: []byte("1.0")})
		if err := toClient.Notify(ctx, &mcp.Notification{Method: mcp.NotificationTaskStatus, Params: status}); err != nil {
			t.Fatal(err)
		}
		if got := await(t, r.signal); got != mcp.NotificationTaskStatus+" "+string(status.Raw()) {
			t.Errorf("told %s", got)
		}
		for _, q := range []struct{ method, params, want string }{
			{mcp.MethodElicit, strings.TrimSuffix(question, "}") + `,"task":{"ttl":60000}}`, `{"task":{"taskId":"theirs","status":"working","vendor":1.0}}`},
			{mcp.MethodGetTask, `{"taskId":"theirs"}`, `{"taskId":"theirs","status":"working","by":"tasks/get"}`},
			{mcp.MethodTaskResult, `{"taskId":"theirs"}`, `{"taskId":"theirs","status":"working","by":"tasks/result"}`},
			{mcp.MethodCancelTask, `{"taskId":"theirs"}`, `{"taskId":"theirs","status":"working","by":"tasks/cancel"}`},
			{mcp.MethodListTasks, `{}`, `{"taskId":"theirs","status":"working","by":"tasks/list"}`},
		} {
			answer, err := toClient.Ask(ctx, &mcp.Request{Method: q.method, Params: jsonrpc.Trusted([]byte(q.params))})
			if err != nil || string(answer.Raw()) != q.want {
				t.Errorf("%s: %s, %v", q.method, answer.Raw(), err)
			}
		}
		cancel()
		await(t, ended)
	})
}

// working is a client that answers as a task.
type working struct{ *recorder }

func (w *working) Ask(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	if task := req.Params.Get("task"); task.IsObject() {
		return raw(`{"task":{"taskId":"theirs","status":"working","vendor":1.0}}`)
	}
	return raw(`{"taskId":"theirs","status":"working","by":"` + req.Method + `"}`)
}

// TestTasksAreDeclaredAsEachEraCan: a client is not told of tasks that it cannot use
// there, and a server not of those that its client cannot.
func TestTasksAreDeclaredAsEachEraCan(t *testing.T) {
	inAllCombinations(t, func(t *testing.T, client, server side) {
		b := newTaskBench(t, client, server, 1, transport.Automatic)
		info := b.clients[0].Server()
		declared := info.Discover.Get("capabilities")
		want := map[[2]mcp.Era]string{
			{mcp.Modern, mcp.Modern}: `{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{},"vendor/x":{}}}`,
			{mcp.Legacy, mcp.Modern}: `{"tools":{},"extensions":{"vendor/x":{}}}`,
			{mcp.Modern, mcp.Legacy}: `{"tools":{}}`,
			{mcp.Legacy, mcp.Legacy}: `{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`,
		}[[2]mcp.Era{client.era, server.era}]
		if got := string(declared.Raw()); got != want {
			t.Errorf("the bridge declares %s, want %s", got, want)
		}
		if client.era == server.era {
			return
		}
		// Methods of the client's kind of tasks lead nowhere.
		for _, method := range []string{mcp.MethodGetTask, mcp.MethodCancelTask, mcp.MethodUpdateTask, mcp.MethodTaskResult, mcp.MethodListTasks} {
			if got, err := b.do(t, 0, method, `{"taskId":"x"}`, mcp.NoCaller{}); !errors.Is(err, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "")) {
				t.Errorf("%s: %s, %v", method, got, err)
			}
		}
	})
}

// TestHeadersOfTasks: the name of a request about a task is the task's id (extension
// tasks, Routing Headers). Who leaves it out is served.
func TestHeadersOfTasks_B118(t *testing.T) {
	s := newTaskServer(mcp.Modern)
	b := serving(t, s, strictServer(t))
	call := modernRequest("1", "tools/call", `"name":"ask"`)
	capable := func(body string) string {
		return strings.Replace(body, `clientCapabilities":{`, `clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}`, 1)
	}
	if r := b.do(t, http.MethodPost, capable(call), modernHeader(t, call)); r.code(t) != 0 {
		t.Fatal(r)
	}
	for _, method := range []string{mcp.MethodGetTask, mcp.MethodUpdateTask, mcp.MethodCancelTask} {
		body := capable(modernRequest("2", method, `"taskId":"tâsk \"1\""`))
		for name, tt := range map[string]struct {
			values []string
			code   int
		}{
			"as it belongs":  {[]string{sentinel(`tâsk "1"`)}, 0},
			"none":           {nil, 0},
			"another":        {[]string{"x"}, jsonrpc.CodeHeaderMismatch},
			"twice":          {[]string{sentinel(`tâsk "1"`), sentinel(`tâsk "1"`)}, jsonrpc.CodeHeaderMismatch},
			"another method": {[]string{sentinel(`tâsk "1"`)}, jsonrpc.CodeHeaderMismatch},
		} {
			h := modernHeader(t, body)
			delete(h, "Mcp-Name")
			if tt.values != nil {
				h["Mcp-Name"] = tt.values
			}
			if name == "another method" {
				h.Set("Mcp-Method", "tools/call")
			}
			if r := b.do(t, http.MethodPost, body, h); r.code(t) != tt.code {
				t.Errorf("%s, %s: %s", method, name, r)
			}
		}
	}
	// Our own requests have it.
	upstream := newPeer(t, modernPeer(func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) { writeResult(w, m, `{}`) }))
	c := dial(t, upstream.url, nil)
	for _, method := range []string{mcp.MethodGetTask, mcp.MethodUpdateTask, mcp.MethodCancelTask} {
		req := &mcp.Request{Method: method, Params: jsonrpc.Trusted([]byte(`{"taskId":"tâsk \"1\""}`))}
		if _, err := c.Handle(t.Context(), req, mcp.NoCaller{}); err != nil {
			t.Fatal(err)
		}
		if got := upstream.seen(method); len(got) != 1 || !slices.Equal(got[0].header["Mcp-Name"], []string{sentinel(`tâsk "1"`)}) {
			t.Errorf("%s was sent with %v", method, got)
		}
	}
}
