package mcp

import (
	"strconv"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// ExtensionTasks is the extension of 2026-07-28 by which a call's result may be a
// task. Revision 2025-11-25 has tasks of another kind, as a capability; the methods
// that the two have in common are spelled alike and mean different things.
const ExtensionTasks = "io.modelcontextprotocol/tasks"

// Methods of tasks. The first three belong to the extension, and with other params
// and results to 2025-11-25; what only that one has is in legacy.go.
const (
	MethodGetTask    = "tasks/get"
	MethodUpdateTask = "tasks/update"
	MethodCancelTask = "tasks/cancel"

	NotificationTask = "notifications/tasks"
)

// TaskCreated is the result type ([Result.Type]) of a call that goes on as a task
// of the extension.
const TaskCreated = "task"

// The states of a task, besides [InputRequired].
const (
	TaskWorking   = "working"
	TaskCompleted = "completed"
	TaskFailed    = "failed"
	TaskCancelled = "cancelled"
)

// MaxTaskID is how long the id of a task may be, in bytes of JSON.
const MaxTaskID = 1024

// A Task is what a task of either kind says about itself.
type Task struct {
	ID      string
	Status  string
	Message string        // for people; empty if there is none
	Life    time.Duration // since it was made, 0 for as long as it likes
	Poll    time.Duration // how often it wants to be looked at, 0 if it does not say
}

// ReadTask returns the task that v is: a result or the params of a notification of
// the extension, or the member task of a 2025-11-25 result. It reports false if v
// has no id that can be used.
func ReadTask(v *jsonrpc.Value) (Task, bool) {
	var t Task
	raw, _ := v.Lookup("taskId")
	id, ok := jsonrpc.Unquote(raw)
	if !ok || id == "" || len(raw) > MaxTaskID {
		return t, false
	}
	t.ID = id
	t.Status, _ = v.LookupString("status")
	t.Message, _ = v.LookupString("statusMessage")
	t.Life = milliseconds(v, "ttlMs", "ttl")
	t.Poll = milliseconds(v, "pollIntervalMs", "pollInterval")
	return t, true
}

// Over reports whether the task has ended.
func (t *Task) Over() bool {
	return t.Status == TaskCompleted || t.Status == TaskFailed || t.Status == TaskCancelled
}

// maxMilliseconds bounds what is believed of a peer's durations.
const maxMilliseconds = 1000 * 60 * 60 * 24 * 365

// milliseconds returns the first of the members that is there as a duration, 0 if
// that is no positive number.
func milliseconds(v *jsonrpc.Value, names ...string) time.Duration {
	for _, name := range names {
		raw, ok := v.Lookup(name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || n <= 0 {
			return 0
		}
		return time.Duration(min(n, maxMilliseconds) * float64(time.Millisecond))
	}
	return 0
}

// TaskID returns the task that the params of a tasks/ request name, "" if none.
func TaskID(params *jsonrpc.Value) string {
	id, _ := params.LookupString("taskId")
	return id
}

// RelatedTask returns the task of 2025-11-25 that the _meta of params say they
// belong to, "" if they do not.
func RelatedTask(params *jsonrpc.Value) string {
	meta := params.Get(metaName)
	related := meta.Get(MetaRelatedTask)
	return TaskID(&related)
}

// WithRelatedTask returns params, or a result, that say which task of 2025-11-25 they
// belong to; an empty id has them say nothing of that.
func WithRelatedTask(v *jsonrpc.Value, id string) jsonrpc.Value {
	edit := jsonrpc.Edit{Name: MetaRelatedTask}
	if id != "" {
		edit.Value = append(jsonrpc.AppendString([]byte(`{"taskId":`), id), '}')
	} else if RelatedTask(v) == "" {
		return *v
	}
	return editMeta(v, edit)
}

// isTaskMethod reports whether a method is one of the extension's, most of which
// 2025-11-25 has under the same name.
func isTaskMethod(method string) bool {
	return method == MethodGetTask || method == MethodUpdateTask || method == MethodCancelTask
}

// modernCapabilities returns the capabilities of the client as a modern server is
// told them: without the tasks of 2025-11-25, and with the extension if whoever
// sends the request awaits tasks for its client.
func (m *Metadata) modernCapabilities() []byte {
	if m.Capabilities == nil && !m.TakesTasks {
		return emptyObject
	}
	declared := jsonrpc.Trusted(m.Capabilities)
	_, legacy := declared.Lookup("tasks")
	if legacy = legacy && m.Revision.Era() == Legacy; !legacy && !m.TakesTasks {
		return m.Capabilities
	}
	edits := make([]jsonrpc.Edit, 0, 2)
	if legacy {
		edits = append(edits, jsonrpc.Edit{Name: "tasks"})
	}
	if m.TakesTasks {
		edits = append(edits, jsonrpc.Edit{Name: "extensions", Value: withExtensionTasks(declared.Get("extensions"))})
	}
	edited := jsonrpc.Edited(&declared, edits...)
	return edited.Raw()
}

var onlyExtensionTasks = []byte(`{"` + ExtensionTasks + `":{}}`)

// withExtensionTasks returns extensions with that of tasks.
func withExtensionTasks(extensions jsonrpc.Value) []byte {
	if !extensions.IsObject() {
		return onlyExtensionTasks
	}
	if _, there := extensions.Lookup(ExtensionTasks); !there {
		extensions = jsonrpc.Edited(&extensions, jsonrpc.Edit{Name: ExtensionTasks, Value: emptyObject})
	}
	return extensions.Raw()
}

// WithoutLegacyTasks returns a DiscoverResult that declares no tasks of 2025-11-25,
// which clients of other revisions cannot use.
func WithoutLegacyTasks(discover Result) Result {
	capabilities := discover.Get("capabilities")
	if _, declared := capabilities.Lookup("tasks"); !declared {
		return discover
	}
	capabilities = jsonrpc.Edited(&capabilities, jsonrpc.Edit{Name: "tasks"})
	return Result{jsonrpc.Edited(&discover.Value, jsonrpc.Edit{Name: "capabilities", Value: capabilities.Raw()})}
}

// withoutExtensionTasks returns a server's capabilities without the extension, which
// is used for a legacy client and not by it.
func withoutExtensionTasks(capabilities []byte) []byte {
	declared := jsonrpc.Trusted(capabilities)
	extensions := declared.Get("extensions")
	if _, there := extensions.Lookup(ExtensionTasks); !there {
		return capabilities
	}
	extensions = jsonrpc.Edited(&extensions, jsonrpc.Edit{Name: ExtensionTasks})
	edit := jsonrpc.Edit{Name: "extensions", Value: extensions.Raw()}
	if extensions.Len() == 0 {
		edit.Value = nil
	}
	left := jsonrpc.Edited(&declared, edit)
	return left.Raw()
}
