package streamable_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A taskServer has a tool that must be called as a task: of the extension if it is
// modern, of 2025-11-25 if it is legacy. The task asks its client a name. That of the
// tool "ask" tells the name, that of the tool "slow" never ends.
type taskServer struct {
	era       mcp.Era
	started   chan string     // ids of tasks that wait for something
	cancelled chan string     // and were cancelled
	sessions  chan mcp.Caller // ways to legacy clients outside calls

	mu      sync.Mutex
	n       int
	tasks   map[string]*madeTask
	changed chan struct{} // closed and made anew at each change
}

type madeTask struct {
	tool   string
	answer string // empty before the client has answered
	over   bool   // cancelled
	asked  bool
}

func newTaskServer(era mcp.Era) *taskServer {
	return &taskServer{
		era: era, started: make(chan string, 100), cancelled: make(chan string, 100),
		sessions: make(chan mcp.Caller, 100),
		tasks:    make(map[string]*madeTask), changed: make(chan struct{}),
	}
}

const taskTimes = `,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"`

func (s *taskServer) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	switch {
	case req.Method == mcp.MethodDiscover && s.era == mcp.Modern:
		return raw(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{},"vendor/x":{}}}}`)
	case req.Method == mcp.MethodDiscover:
		return raw(`{"supportedVersions":["2025-11-25"],"capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}`)
	case req.Method == mcp.MethodListTools && s.era == mcp.Legacy:
		return raw(`{"tools":[{"name":"ask","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},` +
			`{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`)
	case req.Method == mcp.MethodListTools:
		return raw(`{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}`)
	case req.Method == mcp.MethodListen && s.era == mcp.Modern:
		return s.listen(ctx, req, caller)
	case req.Method == mcp.MethodListen:
		return s.keepSession(ctx, req, caller)
	case req.Notification:
		return mcp.Result{}, nil
	case s.era == mcp.Modern:
		return s.modern(req)
	}
	return s.legacy(ctx, req, caller)
}

// create makes a task, whose id is not easy to carry in a header.
func (s *taskServer) create(req *mcp.Request) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	id = fmt.Sprintf("tâsk \"%d\"", s.n)
	tool, _ := req.Params.LookupString("name")
	s.tasks[id] = &madeTask{tool: tool}
	return id
}

// change changes a task. It fails if there is none.
func (s *taskServer) change(req *mcp.Request, f func(*madeTask)) (id string, t madeTask, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id = mcp.TaskID(&req.Params)
	made := s.tasks[id]
	if made == nil {
		return id, t, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Failed to retrieve task: Task not found")
	}
	if f != nil {
		f(made)
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return id, *made, nil
}

func quoted(text string) string { return string(jsonrpc.AppendString(nil, text)) }

// modern serves the extension's methods.
func (s *taskServer) modern(req *mcp.Request) (mcp.Result, error) {
	capabilities := jsonrpc.Trusted(req.Meta.Capabilities)
	extensions := capabilities.Get("extensions")
	if _, declared := extensions.Lookup(mcp.ExtensionTasks); !declared {
		return mcp.Result{}, &jsonrpc.Error{
			Code: jsonrpc.CodeMissingCapability, Message: "Missing required client capability",
			Data: jsonrpc.Trusted([]byte(`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`)),
		}
	}
	if _, legacy := capabilities.Lookup("tasks"); legacy {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "a legacy capability came")
	}
	switch req.Method {
	case mcp.MethodCallTool:
		id := s.create(req)
		return raw(`{"resultType":"task","taskId":` + quoted(id) + taskTimes + `,"status":"working","ttlMs":60000,"pollIntervalMs":100,"vendor":1.0}`)
	case mcp.MethodGetTask:
		id, t, err := s.change(req, nil)
		if err != nil {
			return mcp.Result{}, err
		}
		if t.answer == "" {
			s.noteStart(id)
		}
		return raw(`{"resultType":"complete",` + taskState(id, &t) + `}`)
	case mcp.MethodUpdateTask:
		_, _, err := s.change(req, func(t *madeTask) {
			responses := req.Params.Get("inputResponses")
			name, _ := responses.Lookup("name")
			t.answer = string(name)
		})
		if err != nil {
			return mcp.Result{}, err
		}
		return raw(`{"resultType":"complete"}`)
	case mcp.MethodCancelTask:
		id, _, err := s.change(req, func(t *madeTask) { t.over = true })
		if err != nil {
			return mcp.Result{}, err
		}
		s.cancelled <- id
		return raw(`{"resultType":"complete"}`)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
}

// noteStart tells the test, once, that a task waits.
func (s *taskServer) noteStart(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[id]; !t.asked {
		t.asked = true
		s.started <- id
	}
}

// taskState returns the members of a modern task.
func taskState(id string, t *madeTask) string {
	state := `"taskId":` + quoted(id) + taskTimes + `,"ttlMs":60000,"pollIntervalMs":100`
	switch {
	case t.over:
		return state + `,"status":"cancelled"`
	case t.answer != "":
		return state + `,"status":"completed","result":{"content":[],"structuredContent":{"answer":` + t.answer + `}}`
	case t.tool == "ask":
		return state + `,"status":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":` + question + `}}`
	}
	return state + `,"status":"working","statusMessage":"on it"`
}

// listen tells of tasks.
func (s *taskServer) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	if err := caller.Notify(ctx, mcp.Filter{TaskIDs: filter.TaskIDs}.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return mcp.Result{}, ctx.Err()
		}
		s.mu.Lock()
		changed = s.changed
		var states []string
		for id, t := range s.tasks {
			states = append(states, taskState(id, t)) // also those that were not asked for
		}
		s.mu.Unlock()
		slices.Sort(states)
		for _, state := range states {
			n := &mcp.Notification{Method: mcp.NotificationTask, Params: jsonrpc.Trusted([]byte("{" + state + "}"))}
			if err := caller.Notify(ctx, n); err != nil {
				return mcp.Result{}, err
			}
		}
	}
}

// keepSession gives the way to a legacy client to the test.
func (s *taskServer) keepSession(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	if err := caller.Notify(ctx, filter.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	if filter.Session {
		s.sessions <- caller
	}
	<-ctx.Done()
	return mcp.Result{}, ctx.Err()
}

// legacy serves the tasks of 2025-11-25.
func (s *taskServer) legacy(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	switch req.Method {
	case mcp.MethodCallTool:
		if task := req.Params.Get("task"); !task.IsObject() {
			return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Tool requires task augmentation")
		}
		id := s.create(req)
		return raw(`{"task":{"taskId":` + quoted(id) + taskTimes + `,"status":"working","ttl":60000,"vendor":1.0}}`)
	case mcp.MethodGetTask, mcp.MethodCancelTask:
		id, t, err := s.change(req, func(t *madeTask) { t.over = t.over || req.Method == mcp.MethodCancelTask })
		if err != nil {
			return mcp.Result{}, err
		}
		status := "working"
		if t.over {
			status = "cancelled"
			s.cancelled <- id
		}
		return raw(`{"taskId":` + quoted(id) + taskTimes + `,"status":"` + status + `","ttl":60000}`)
	case mcp.MethodTaskResult:
		return s.result(ctx, req, caller)
	case mcp.MethodListTasks:
		s.mu.Lock()
		defer s.mu.Unlock()
		var all []string
		for id := range s.tasks {
			all = append(all, `{"taskId":`+quoted(id)+taskTimes+`,"status":"working","ttl":60000}`)
		}
		slices.Sort(all)
		return raw(`{"tasks":[` + strings.Join(all, ",") + `]}`)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
}

// result waits for a task, and asks meanwhile.
func (s *taskServer) result(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	id, t, err := s.change(req, nil)
	if err != nil {
		return mcp.Result{}, err
	}
	related := `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":` + quoted(id) + `}}`
	s.started <- id
	if t.tool == "slow" {
		<-ctx.Done()
		return mcp.Result{}, ctx.Err()
	}
	params := jsonrpc.Trusted([]byte(strings.TrimSuffix(question, "}") + "," + related + "}"))
	answer, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: params})
	if err != nil {
		return mcp.Result{}, err
	}
	if of := mcp.RelatedTask(&answer.Value); of != "" && of != id {
		return mcp.Result{}, fmt.Errorf("an answer about %q came for %q", of, id)
	}
	answer.Value = mcp.WithRelatedTask(&answer.Value, "")
	return raw(`{"content":[],"structuredContent":{"answer":` + string(answer.Raw()) + `},` + related + `}`)
}
