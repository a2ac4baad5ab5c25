package mcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

func TestReadTask(t *testing.T) {
	long := strings.Repeat("x", mcp.MaxTaskID-1)
	for _, tt := range []struct {
		name, text string
		want       mcp.Task
		ok         bool
	}{
		{"of the extension", `{"taskId":"a\u0062","status":"working","statusMessage":"m","ttlMs":60000,"pollIntervalMs":1.5}`,
			mcp.Task{ID: "ab", Status: mcp.TaskWorking, Message: "m", Life: time.Minute, Poll: 1500 * time.Microsecond}, true},
		{"of 2025-11-25", `{"taskId":"a","status":"failed","ttl":1,"pollInterval":2}`,
			mcp.Task{ID: "a", Status: mcp.TaskFailed, Life: time.Millisecond, Poll: 2 * time.Millisecond}, true},
		{"for as long as it likes", `{"taskId":"a","ttlMs":null,"pollIntervalMs":"5"}`, mcp.Task{ID: "a"}, true},
		{"durations that are none", `{"taskId":"a","ttlMs":-1,"pollIntervalMs":0}`, mcp.Task{ID: "a"}, true},
		{"very long", `{"taskId":"a","ttlMs":1e300,"pollIntervalMs":1e999}`, mcp.Task{ID: "a", Life: 365 * 24 * time.Hour}, true},
		{"no id", `{"status":"working"}`, mcp.Task{}, false},
		{"no text", `{"taskId":1}`, mcp.Task{}, false},
		{"empty", `{"taskId":""}`, mcp.Task{}, false},
		{"too long", `{"taskId":"` + long + `"}`, mcp.Task{}, false},
		{"not too long", `{"taskId":"` + long[1:] + `"}`, mcp.Task{ID: long[1:]}, true},
		{"nothing", ``, mcp.Task{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := jsonrpc.Trusted([]byte(tt.text))
			got, ok := mcp.ReadTask(&v)
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
				t.Errorf("%t (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestTasksThatAreOver(t *testing.T) {
	for status, want := range map[string]bool{
		mcp.TaskWorking: false, mcp.InputRequired: false, "": false,
		mcp.TaskCompleted: true, mcp.TaskFailed: true, mcp.TaskCancelled: true,
	} {
		if got := (&mcp.Task{Status: status}).Over(); got != want {
			t.Errorf("%q is over: %t", status, got)
		}
	}
}

func TestRelatedTask(t *testing.T) {
	for text, want := range map[string]string{
		`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}`: "a",
		`{"_meta":{"io.modelcontextprotocol/related-task":"a"}}`:            "",
		`{"_meta":{}}`: "", `{"taskId":"a"}`: "", ``: "",
	} {
		v := jsonrpc.Trusted([]byte(text))
		if got := mcp.RelatedTask(&v); got != want {
			t.Errorf("%s is related to %q", text, got)
		}
	}
	for text, want := range map[string]string{
		`{"a":1.0,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}`:         `{"a":1.0}`,
		`{"a":1.0,"_meta":{"x":1.0,"io.modelcontextprotocol/related-task":{"taskId":"a"}}}`: `{"a":1.0,"_meta":{"x":1.0}}`,
		`{"a":1.0 ,"_meta":{}}`: `{"a":1.0 ,"_meta":{}}`,
	} {
		v := jsonrpc.Trusted([]byte(text))
		if got := mcp.WithRelatedTask(&v, ""); string(got.Raw()) != want {
			t.Errorf("%s became %s", text, got.Raw())
		}
		if got := mcp.WithRelatedTask(&v, `b"`); mcp.RelatedTask(&got) != `b"` {
			t.Errorf("%s became %s", text, got.Raw())
		}
	}
}

// TestCapabilitiesThatAModernServerIsTold: the extension is declared where tasks are
// awaited, and the tasks of 2025-11-25 are nowhere.
func TestCapabilitiesThatAModernServerIsTold(t *testing.T) {
	const tasks = mcp.ExtensionTasks
	for _, tt := range []struct {
		name, declared string
		revision       mcp.Revision
		takes          bool
		want           string
	}{
		{"nothing declared", "", mcp.Revision20251125, false, `{}`},
		{"awaited", "", mcp.Revision20251125, true, `{"extensions":{"` + tasks + `":{}}}`},
		{"awaited besides others", `{"tasks":{"list":{}},"x":1.0,"extensions":{"y":1.0}}`, mcp.Revision20251125, true, `{"x":1.0,"extensions":{"y":1.0,"` + tasks + `":{}}}`},
		{"declared already", `{"extensions":{"` + tasks + `":{"z":1}}}`, mcp.Revision20250618, true, `{"extensions":{"` + tasks + `":{"z":1}}}`},
		{"not awaited", `{"tasks":{"list":{}},"x":1.0}`, mcp.Revision20251125, false, `{"x":1.0}`},
		{"as they came", `{"x" : 1.0}`, mcp.Revision20251125, false, `{"x" : 1.0}`},
		{"made in this process", `{"tasks":{}}`, "", false, `{"tasks":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := &mcp.Request{Method: mcp.MethodCallTool, Meta: mcp.Metadata{Revision: tt.revision, TakesTasks: tt.takes}}
			if tt.declared != "" {
				req.Meta.Capabilities = []byte(tt.declared)
			}
			params := mcp.ForModern(req, mcp.Revision20260728, jsonrpc.ID{})
			meta := params.Get("_meta")
			if got, _ := meta.Lookup(mcp.MetaClientCapabilities); string(got) != tt.want {
				t.Errorf("told %s, want %s", got, tt.want)
			}
		})
	}
}

// TestRequestsAboutTasksHaveAnEra: both kinds of tasks call some methods alike.
func TestRequestsAboutTasksHaveAnEra(t *testing.T) {
	for _, tt := range []struct {
		method                 string
		revision               mcp.Revision
		takes                  bool
		legacyOnly, modernOnly bool
	}{
		{mcp.MethodGetTask, mcp.Revision20251125, false, true, false},
		{mcp.MethodGetTask, mcp.Revision20251125, true, false, true},
		{mcp.MethodGetTask, mcp.Revision20260728, false, false, true},
		{mcp.MethodGetTask, "", false, false, false},
		{mcp.MethodUpdateTask, mcp.Revision20260728, false, false, true},
		{mcp.MethodCancelTask, mcp.Revision20251125, false, true, false},
		{mcp.MethodTaskResult, mcp.Revision20251125, false, true, false},
		{mcp.MethodListTasks, mcp.Revision20260728, false, true, false},
		{mcp.MethodCallTool, mcp.Revision20251125, true, false, false},
	} {
		req := &mcp.Request{Method: tt.method, Meta: mcp.Metadata{Revision: tt.revision, TakesTasks: tt.takes}}
		if l, m := req.IsLegacyOnly(), req.IsModernOnly(); l != tt.legacyOnly || m != tt.modernOnly {
			t.Errorf("%s of %s, awaited %t: legacy only %t, modern only %t", tt.method, tt.revision, tt.takes, l, m)
		}
	}
}

func TestNamesOfRequestsAboutTasks(t *testing.T) {
	for _, method := range []string{mcp.MethodGetTask, mcp.MethodUpdateTask, mcp.MethodCancelTask} {
		if param, ok := mcp.NameParam(method); param != "taskId" || !ok || mcp.MustHaveName(method) {
			t.Errorf("%s is named by %q", method, param)
		}
	}
	if !mcp.MustHaveName(mcp.MethodCallTool) || mcp.MustHaveName(mcp.MethodListTools) {
		t.Error("a tool's call must have a name, and a list none")
	}
}

func TestFilterOfTasks(t *testing.T) {
	v := jsonrpc.Trusted([]byte(`{"notifications":{"taskIds":["a","b"]}}`))
	f, err := mcp.ReadFilter(&v)
	if err != nil || f.Empty() {
		t.Fatalf("%+v, %v", f, err)
	}
	for id, want := range map[string]bool{"a": true, "b": true, "c": false} {
		n := &mcp.Notification{Method: mcp.NotificationTask, Params: jsonrpc.Trusted([]byte(`{"taskId":"` + id + `"}`))}
		if got := f.Wants(n); got != want {
			t.Errorf("%s is wanted: %t", id, got)
		}
	}
	if got := f.Acknowledge(); string(got.Params.Raw()) != string(v.Raw()) {
		t.Errorf("acknowledged %s", got.Params.Raw())
	}
	v = jsonrpc.Trusted([]byte(`{"notifications":{"taskIds":["a"` + strings.Repeat(`,"a"`, mcp.MaxTaskSubscriptions) + `]}}`))
	if _, err := mcp.ReadFilter(&v); err == nil || !strings.Contains(err.Error(), "MaxTaskSubscriptions") {
		t.Errorf("got %v", err)
	}
}

// TestDeclaredTasks: what a client of the other era could not use is left out.
func TestDeclaredTasks(t *testing.T) {
	discover := mcp.RawResult([]byte(`{"supportedVersions":["x"],"capabilities":{"tasks":{"requests":{"tools":{"call":{}}}},"extensions":{"` + mcp.ExtensionTasks + `":{}},"x":1.0}}`))
	if c := mcp.ReadServerCapabilities(&discover.Value); !c.TaskTools {
		t.Error("tools cannot be tasks")
	}
	left := mcp.WithoutLegacyTasks(discover)
	if got := left.Get("capabilities"); string(got.Raw()) != `{"extensions":{"`+mcp.ExtensionTasks+`":{}},"x":1.0}` {
		t.Errorf("left is %s", got.Raw())
	}
	if c := mcp.ReadServerCapabilities(&left.Value); c.TaskTools {
		t.Error("tools can be tasks")
	}
	for revision, want := range map[mcp.Revision]string{
		mcp.Revision20251125: `{"tasks":{"requests":{"tools":{"call":{}}}},"x":1.0}`,
		mcp.Revision20250618: `{"x":1.0}`,
	} {
		init := mcp.InitializeFromDiscover(&discover, revision, mcp.Implementation{Name: "n", Version: "1"})
		if got := init.Get("capabilities"); string(got.Raw()) != want {
			t.Errorf("initialize tells a client of %s %s", revision, got.Raw())
		}
	}
	none := mcp.RawResult([]byte(`{"capabilities":{"x":1.0}}`))
	if got := mcp.WithoutLegacyTasks(none); string(got.Raw()) != string(none.Raw()) {
		t.Errorf("left is %s", got.Raw())
	}
}
