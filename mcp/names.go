package mcp

import (
	"slices"
	"strings"
)

// Methods of requests from a client.
const (
	MethodDiscover              = "server/discover"
	MethodListen                = "subscriptions/listen"
	MethodListTools             = "tools/list"
	MethodCallTool              = "tools/call"
	MethodListResources         = "resources/list"
	MethodListResourceTemplates = "resources/templates/list"
	MethodReadResource          = "resources/read"
	MethodListPrompts           = "prompts/list"
	MethodGetPrompt             = "prompts/get"
	MethodComplete              = "completion/complete"
)

// Methods of questions, which only a client can answer.
const (
	MethodElicit        = "elicitation/create"
	MethodCreateMessage = "sampling/createMessage"
	MethodListRoots     = "roots/list"
)

// Methods of notifications.
const (
	NotificationCancelled            = "notifications/cancelled"
	NotificationProgress             = "notifications/progress"
	NotificationMessage              = "notifications/message"
	NotificationAcknowledged         = "notifications/subscriptions/acknowledged"
	NotificationToolsListChanged     = "notifications/tools/list_changed"
	NotificationPromptsListChanged   = "notifications/prompts/list_changed"
	NotificationResourcesListChanged = "notifications/resources/list_changed"
	NotificationResourceUpdated      = "notifications/resources/updated"
)

// Reserved keys of _meta (2026-07-28, basic, _meta).
const (
	MetaProgressToken      = "progressToken"
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
)

// methods are the names that requests and notifications mostly have.
var methods = func() map[string]string {
	names := []string{
		MethodDiscover, MethodListen, MethodListTools, MethodCallTool, MethodListResources,
		MethodListResourceTemplates, MethodReadResource, MethodListPrompts, MethodGetPrompt, MethodComplete,
		MethodElicit, MethodCreateMessage, MethodListRoots,
		NotificationCancelled, NotificationProgress, NotificationMessage, NotificationAcknowledged,
		NotificationToolsListChanged, NotificationPromptsListChanged, NotificationResourcesListChanged,
		NotificationResourceUpdated,
		MethodInitialize, MethodPing, MethodSetLevel, MethodSubscribe, MethodUnsubscribe,
		NotificationInitialized, NotificationRootsListChanged, NotificationElicitationComplete,
		MethodGetTask, MethodUpdateTask, MethodCancelTask, NotificationTask,
		MethodListTasks, MethodTaskResult, NotificationTaskStatus,
	}
	m := make(map[string]string, len(names))
	for _, name := range names {
		m[name] = name
	}
	return m
}()

// MethodName returns b as a string, without allocating for the protocol's names.
func MethodName(b []byte) string {
	if name, ok := methods[string(b)]; ok {
		return name
	}
	return string(b)
}

// IsNotificationName reports whether a method is named like a notification.
func IsNotificationName(method string) bool { return strings.HasPrefix(method, "notifications/") }

// MayNeedInput reports whether a server can ask something within a request of
// this method (2026-07-28, patterns/mrtr, Supported Requests).
func MayNeedInput(method string) bool {
	return method == MethodCallTool || method == MethodGetPrompt || method == MethodReadResource
}

// IsCacheable reports whether a result of the method must carry caching hints
// (2026-07-28, server/utilities/caching).
func IsCacheable(method string) bool {
	switch method {
	case MethodDiscover, MethodListTools, MethodListPrompts, MethodListResources,
		MethodListResourceTemplates, MethodReadResource:
		return true
	}
	return false
}

// NameParam returns which member of the params the header Mcp-Name mirrors for
// requests of the method, and false if none (2026-07-28, streamable-http,
// Standard Request Headers).
func NameParam(method string) (string, bool) {
	switch method {
	case MethodCallTool, MethodGetPrompt:
		return "name", true
	case MethodReadResource:
		return "uri", true
	case MethodGetTask, MethodUpdateTask, MethodCancelTask: // extension tasks, Routing Headers
		return "taskId", true
	}
	return "", false
}

// MustHaveName reports whether a request without the header Mcp-Name is to be
// refused. The tasks extension wants clients to send it and does not say that
// servers have to insist.
func MustHaveName(method string) bool {
	_, named := NameParam(method)
	return named && !isTaskMethod(method)
}

// A Level is the severity of a log message (RFC 5424).
type Level string

// levels in rising severity.
var levels = []Level{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Valid reports whether l is one of the eight levels.
func (l Level) Valid() bool { return slices.Contains(levels, l) }

// Includes reports whether somebody who wants l wants a message of the given
// level. An empty l wants none; a message of an unknown level is wanted by all
// others.
func (l Level) Includes(message Level) bool {
	if l == "" {
		return false
	}
	m := slices.Index(levels, message)
	return m < 0 || m >= slices.Index(levels, l)
}
