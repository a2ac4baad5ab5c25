package mcp

import (
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// How many resources, and how many tasks, one listen filter may name.
const (
	MaxResourceSubscriptions = 1000
	MaxTaskSubscriptions     = 1000
)

// A Filter says what a subscriptions/listen request wants to hear of
// (2026-07-28, patterns/subscriptions, Notification Filter).
type Filter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitzero"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitzero"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitzero"`
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitempty"`
	TaskIDs               []string `json:"taskIds,omitempty"` // of ExtensionTasks
	// Session asks for what a legacy server sends outside calls. It never goes
	// on a modern wire.
	Session bool `json:"session,omitzero"`
}

// ReadFilter returns the filter in the params of a listen request. The error is
// a *jsonrpc.Error of CodeInvalidParams.
func ReadFilter(params *jsonrpc.Value) (Filter, error) {
	var f Filter
	raw, ok := params.Lookup("notifications")
	if !ok || string(raw) == "null" {
		return f, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: notifications is missing")
	}
	// What is in the members of others is nobody's business here.
	filter := params.Get("notifications")
	err := json.Unmarshal(raw, &f, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil || !filter.IsDistinct() {
		return f, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: notifications is no filter")
	}
	if n := len(f.ResourceSubscriptions); n > MaxResourceSubscriptions {
		return f, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"Invalid params: %d resourceSubscriptions are over the limit MaxResourceSubscriptions of %d", n, MaxResourceSubscriptions)
	}
	if n := len(f.TaskIDs); n > MaxTaskSubscriptions {
		return f, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"Invalid params: %d taskIds are over the limit MaxTaskSubscriptions of %d", n, MaxTaskSubscriptions)
	}
	return f, nil
}

// Params returns the params of a listen request, or of its acknowledgement,
// with this filter.
func (f Filter) Params() jsonrpc.Value {
	raw, err := marshal(struct {
		Notifications Filter `json:"notifications"`
	}{f})
	if err != nil { // a string that is not UTF-8 cannot come from JSON
		return jsonrpc.Trusted([]byte(`{"notifications":{}}`))
	}
	return jsonrpc.Trusted(raw)
}

// WithoutSession returns params without the filter's legacy member.
func WithoutSession(params *jsonrpc.Value) jsonrpc.Value {
	filter := params.Get("notifications")
	if _, ok := filter.Lookup(filterSession); !ok {
		return *params
	}
	filter = jsonrpc.Edited(&filter, jsonrpc.Edit{Name: filterSession})
	return jsonrpc.Edited(params, jsonrpc.Edit{Name: "notifications", Value: filter.Raw()})
}

// Empty reports whether the filter asks for nothing that a modern server has.
func (f *Filter) Empty() bool {
	return f.Changes() == 0 && len(f.ResourceSubscriptions) == 0 && len(f.TaskIDs) == 0
}

// Wants reports whether the filter lets a notification through. An acknowledgement
// passes always.
func (f *Filter) Wants(n *Notification) bool {
	switch n.Method {
	case NotificationAcknowledged:
		return true
	case NotificationToolsListChanged, NotificationPromptsListChanged, NotificationResourcesListChanged:
		return f.Changes()&ChangesOf(n.Method) != 0
	case NotificationTask:
		return slices.Contains(f.TaskIDs, TaskID(&n.Params))
	case NotificationResourceUpdated:
		uri, _ := n.Params.LookupString("uri")
		return slices.Contains(f.ResourceSubscriptions, uri) || slices.ContainsFunc(f.ResourceSubscriptions, func(of string) bool { return isPart(uri, of) })
	}
	return f.Session
}

// isPart reports whether uri is the resource of or a part of it: an update "might
// be [of] a sub-resource of the one that the client actually subscribed to"
// (2025-11-25 and 2026-07-28, schema, ResourceUpdatedNotificationParams).
func isPart(uri, of string) bool {
	rest, ok := strings.CutPrefix(uri, strings.TrimSuffix(of, "/"))
	return uri == of || ok && of != "" && rest != "" && strings.ContainsRune("/?#", rune(rest[0]))
}

// Acknowledge returns the notification that confirms the filter.
func (f Filter) Acknowledge() *Notification {
	f.Session = false
	return &Notification{Method: NotificationAcknowledged, Params: f.Params()}
}
