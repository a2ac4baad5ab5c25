package mcp

// What revisions up to 2025-11-25 can say and the modern one cannot. Modern
// edges drop these or answer CodeMethodNotFound; they never write them.
const (
	MethodInitialize  = "initialize"
	MethodPing        = "ping"
	MethodSetLevel    = "logging/setLevel"
	MethodSubscribe   = "resources/subscribe"
	MethodUnsubscribe = "resources/unsubscribe"
	MethodListTasks   = "tasks/list"
	MethodTaskResult  = "tasks/result"

	NotificationInitialized         = "notifications/initialized"
	NotificationRootsListChanged    = "notifications/roots/list_changed"
	NotificationElicitationComplete = "notifications/elicitation/complete"
	NotificationTaskStatus          = "notifications/tasks/status"
)

// MetaRelatedTask is the key of _meta under which a message of 2025-11-25 names the
// task that it belongs to.
const MetaRelatedTask = "io.modelcontextprotocol/related-task"

// filterSession is the member of a listen filter that asks for what a legacy
// server sends outside calls: log messages, questions, and
// notifications/elicitation/complete.
const filterSession = "session"

// IsLegacyOnly reports whether a method has no place on a modern wire.
func IsLegacyOnly(method string) bool {
	switch method {
	case MethodInitialize, MethodPing, MethodSetLevel, MethodSubscribe, MethodUnsubscribe,
		MethodListTasks, MethodTaskResult,
		NotificationInitialized, NotificationRootsListChanged, NotificationElicitationComplete, NotificationTaskStatus:
		return true
	}
	return false
}

// IsLegacyOnly reports whether a request has no place on a modern wire, be it for
// its method or because it is about a task of 2025-11-25.
func (r *Request) IsLegacyOnly() bool {
	return IsLegacyOnly(r.Method) ||
		isTaskMethod(r.Method) && r.Meta.Revision.Era() == Legacy && !r.Meta.TakesTasks
}

// IsModernOnly reports whether a request has no place on a legacy wire: it is about
// a task of the extension.
func (r *Request) IsModernOnly() bool {
	return isTaskMethod(r.Method) && (r.Meta.Revision.Era() == Modern || r.Meta.TakesTasks)
}
