package mcp

// What revisions up to 2025-11-25 can say and the modern one cannot. Modern
// edges drop these or answer CodeMethodNotFound; they never write them.
const (
	MethodInitialize  = "initialize"
	MethodPing        = "ping"
	MethodSetLevel    = "logging/setLevel"
	MethodSubscribe   = "resources/subscribe"
	MethodUnsubscribe = "resources/unsubscribe"

	NotificationInitialized         = "notifications/initialized"
	NotificationRootsListChanged    = "notifications/roots/list_changed"
	NotificationElicitationComplete = "notifications/elicitation/complete"
)

// filterSession is the member of a listen filter that asks for what a legacy
// server sends outside calls: log messages, questions, and
// notifications/elicitation/complete.
const filterSession = "session"

// IsLegacyOnly reports whether a method has no place on a modern wire.
func IsLegacyOnly(method string) bool {
	switch method {
	case MethodInitialize, MethodPing, MethodSetLevel, MethodSubscribe, MethodUnsubscribe,
		NotificationInitialized, NotificationRootsListChanged, NotificationElicitationComplete:
		return true
	}
	return false
}
