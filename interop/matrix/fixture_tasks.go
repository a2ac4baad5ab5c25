package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// workTool is a task wherever the protocol has one: of the extension if the client takes
// it, of 2025-11-25 always. Else it takes its time.
const workTool = "work"

// Kinds of work.
const (
	workAtOnce = "at-once"
	workSteps  = "steps"  // tells how it is, as often as workStates says
	workAsking = "asking" // asks the client's model
	workHeld   = "held"   // ends when it is cancelled
)

// workStates are what work says of itself.
var workStates = []string{"begun", "step 1", "step 2"}

// work are the arguments of the tool.
type work struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Members of a task that do not change.
const (
	extensionTask = `"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000,"pollIntervalMs":100,"vendor":1.0`
	legacyTask    = `"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":60000,"pollInterval":100,"vendor":1.0`
)

// tasks are those that a fixture has made.
type tasks struct {
	events *events
	era    mcp.Era

	mu  sync.Mutex
	all map[string]*task // by id; guarded by mu
}

type task struct {
	id    string
	work  work
	token jsonrpc.ID    // for progress
	over  chan struct{} // closed when it is cancelled

	// Guarded by tasks.mu.
	looks  int
	answer string
}

func newTasks(e *events, era mcp.Era) *tasks {
	return &tasks{events: e, era: era, all: make(map[string]*task)}
}

// declared adds to a server's capabilities what the client's revision has of tasks.
func (s *tasks) declared(discover mcp.Result, client mcp.Revision) mcp.Result {
	edit := jsonrpc.Edit{Name: "extensions", Value: []byte(`{"` + mcp.ExtensionTasks + `":{}}`)}
	if s.era == mcp.Legacy {
		edit = jsonrpc.Edit{Name: "tasks", Value: []byte(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)}
		if !client.HasTasks() {
			return discover
		}
	}
	capabilities := discover.Get("capabilities")
	capabilities = jsonrpc.Edited(&capabilities, edit)
	return mcp.Result{Value: jsonrpc.Edited(&discover.Value, jsonrpc.Edit{Name: "capabilities", Value: capabilities.Raw()})}
}

// call calls the tool.
func (s *tasks) call(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	arguments, _ := req.Params.Lookup("arguments")
	var w work
	if err := mcp.JSON(arguments).Decode(&w); err != nil {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	if s.era == mcp.Modern {
		if !s.taken(req) {
			return s.inTheCall(ctx, w, req.Meta.ProgressToken, caller)
		}
		return mcp.RawResult([]byte(`{"resultType":"task",` + s.create(req, w).state(extensionTask, mcp.TaskWorking, workStates[0]) + `}`)), nil
	}
	if !req.Meta.Revision.HasTasks() {
		return s.inTheCall(ctx, w, req.Meta.ProgressToken, caller)
	}
	if augmented := req.Params.Get("task"); !augmented.IsObject() {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s must be called as a task", workTool)
	}
	return mcp.RawResult([]byte(`{"task":{` + s.create(req, w).state(legacyTask, mcp.TaskWorking, workStates[0]) + `}}`)), nil
}

// taken reports whether a client has declared the extension, or somebody without a wire
// between takes tasks for it.
func (s *tasks) taken(req *mcp.Request) bool {
	declared := jsonrpc.Trusted(req.Meta.Capabilities)
	extensions := declared.Get("extensions")
	_, ok := extensions.Lookup(mcp.ExtensionTasks)
	return ok || req.Meta.TakesTasks
}

// create makes a task, whose id is not easy to carry in a header.
func (s *tasks) create(req *mcp.Request, w work) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &task{id: fmt.Sprintf("tâsk \"%d\"", len(s.all)+1), work: w, over: make(chan struct{})}
	t.token, _ = jsonrpc.RawID([]byte(string(req.Meta.ProgressToken.Raw())))
	s.all[t.id] = t
	if w.Kind == workHeld {
		s.events.happen("held " + w.Text)
	}
	return t
}

// state returns the members of a task.
func (t *task) state(constant, status, message string) string {
	return fmt.Sprintf(`"taskId":%s,"status":%q,"statusMessage":%q,%s`, jsonrpc.AppendString(nil, t.id), status, message, constant)
}

// handle serves a request about a task.
func (s *tasks) handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	switch {
	case s.era == mcp.Modern && req.IsLegacyOnly(): // which is on no wire
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	case s.era == mcp.Modern && !s.taken(req):
		return mcp.Result{}, &jsonrpc.Error{
			Code: jsonrpc.CodeMissingCapability, Message: "Missing required client capability",
			Data: jsonrpc.Trusted([]byte(`{"requiredCapabilities":{"extensions":{"` + mcp.ExtensionTasks + `":{}}}}`)),
		}
	case s.era == mcp.Legacy && !req.Meta.Revision.HasTasks():
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	case s.era == mcp.Legacy && req.Method == mcp.MethodListTasks:
		return s.list(), nil
	}
	s.mu.Lock()
	t := s.all[mcp.TaskID(&req.Params)]
	s.mu.Unlock()
	if t == nil {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Failed to retrieve task: Task not found")
	}
	switch {
	case req.Method == mcp.MethodCancelTask:
		return s.cancel(t), nil
	case s.era == mcp.Modern && req.Method == mcp.MethodGetTask:
		return s.get(t)
	case s.era == mcp.Modern && req.Method == mcp.MethodUpdateTask:
		return s.update(t, &req.Params)
	case s.era == mcp.Legacy && req.Method == mcp.MethodGetTask:
		status, _ := s.status(t)
		return mcp.RawResult([]byte(`{` + t.state(legacyTask, status, workStates[0]) + `}`)), nil
	case s.era == mcp.Legacy && req.Method == mcp.MethodTaskResult:
		return s.result(ctx, t, caller)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
}

func (s *tasks) list() mcp.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, t := range s.all {
		all = append(all, `{`+t.state(legacyTask, mcp.TaskWorking, workStates[0])+`}`)
	}
	return mcp.RawResult([]byte(`{"tasks":[` + strings.Join(all, ",") + `]}`))
}

// cancel cancels a task. Each kind of tasks has an answer of its own.
func (s *tasks) cancel(t *task) mcp.Result {
	s.mu.Lock()
	select {
	case <-t.over:
	default:
		close(t.over)
	}
	s.mu.Unlock()
	s.events.happen("released " + t.work.Text)
	if s.era == mcp.Legacy {
		return mcp.RawResult([]byte(`{` + t.state(legacyTask, mcp.TaskCancelled, "") + `}`))
	}
	return mcp.RawResult([]byte(`{"resultType":"complete"}`))
}

// status returns how a task is that is looked at, and how often it was before.
func (s *tasks) status(t *task) (status string, looks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-t.over:
		return mcp.TaskCancelled, t.looks
	default:
	}
	t.looks++
	return mcp.TaskWorking, t.looks - 1
}

// get is tasks/get of the extension: each look at a task moves it on.
func (s *tasks) get(t *task) (mcp.Result, error) {
	status, looks := s.status(t)
	s.mu.Lock()
	answer := t.answer
	s.mu.Unlock()
	var more string
	message := workStates[min(looks+1, len(workStates)-1)]
	switch kind := t.work.Kind; {
	case status == mcp.TaskCancelled, kind == workHeld, kind == workSteps && looks+1 < len(workStates):
	case kind == workAsking && answer == "":
		question, err := mcp.NewJSON(map[string]mcp.InputRequest{"q": server.SampleRequest(sampling(t.work.Text))})
		if err != nil {
			return mcp.Result{}, err
		}
		status, more = mcp.InputRequired, `,"inputRequests":`+string(question)
	default:
		result, err := workResult(t.work, answer)
		if err != nil {
			return mcp.Result{}, err
		}
		message = workStates[len(workStates)-1]
		status, more = mcp.TaskCompleted, `,"result":`+string(result.Raw())
	}
	return mcp.RawResult([]byte(`{"resultType":"complete",` + t.state(extensionTask, status, message) + more + `}`)), nil
}

// update takes the client's answer.
func (s *tasks) update(t *task, params *jsonrpc.Value) (mcp.Result, error) {
	responses := params.Get("inputResponses")
	raw, _ := responses.Lookup("q")
	answer, err := saidRaw(raw)
	if err != nil {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	s.mu.Lock()
	t.answer = answer
	s.mu.Unlock()
	return mcp.RawResult([]byte(`{"resultType":"complete"}`)), nil
}

// saidRaw is said for what came on the wire.
func saidRaw(raw []byte) (string, error) {
	var answer mcp.CreateMessageResult
	if err := mcp.JSON(raw).Decode(&answer); err != nil {
		return "", err
	}
	return said(&answer)
}

// result is tasks/result of 2025-11-25: the client is told and asked by it.
func (s *tasks) result(ctx context.Context, t *task, caller mcp.Caller) (mcp.Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-t.over:
			stop(jsonrpc.Errorf(jsonrpc.CodeInternalError, "the task was cancelled"))
		case <-ctx.Done():
		}
	}()
	result, err := s.run(ctx, t.work, t.id, t.token, caller)
	if err != nil {
		return mcp.Result{}, err
	}
	return mcp.Result{Value: mcp.WithRelatedTask(&result.Value, t.id)}, nil
}

// inTheCall does the work for a client that has no tasks.
func (s *tasks) inTheCall(ctx context.Context, w work, token jsonrpc.ID, caller mcp.Caller) (mcp.Result, error) {
	if w.Kind == workHeld {
		s.events.happen("held " + w.Text)
		defer s.events.happen("released " + w.Text)
	}
	return s.run(ctx, w, "", token, caller)
}

// run does the work while a client waits, for a task of 2025-11-25 if id is not empty.
func (s *tasks) run(ctx context.Context, w work, id string, token jsonrpc.ID, caller mcp.Caller) (mcp.Result, error) {
	var answer string
	switch w.Kind {
	case workHeld:
		<-ctx.Done()
		return mcp.Result{}, context.Cause(ctx)
	case workSteps:
		for i, state := range workStates {
			params := fmt.Sprintf(`{"progressToken":%s,"progress":%d,"message":%q}`, token.Raw(), i+1, state)
			if err := caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(params))}); err != nil {
				return mcp.Result{}, err
			}
		}
	case workAsking:
		question := server.SampleRequest(sampling(w.Text))
		params := jsonrpc.Trusted(question.Params)
		if id != "" {
			params = mcp.WithRelatedTask(&params, id)
		}
		result, err := caller.Ask(ctx, &mcp.Request{Method: question.Method, Params: params})
		if err != nil {
			return mcp.Result{}, err
		}
		if of := mcp.RelatedTask(&result.Value); of != "" && of != id {
			return mcp.Result{}, fmt.Errorf("an answer about %q came for %q", of, id)
		}
		if answer, err = saidRaw(result.Raw()); err != nil {
			return mcp.Result{}, err
		}
	}
	return workResult(w, answer)
}

// workResult is the result of work, given what the client's model has said.
func workResult(w work, answer string) (mcp.Result, error) {
	text := w.Text + " is done"
	if w.Kind == workAsking {
		text = answer
	}
	return mcp.NewResult(&mcp.CallToolResult{Content: mcp.Contents{&mcp.Text{Text: text}}})
}
