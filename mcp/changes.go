package mcp

// Changes are lists that have changed, as a set.
type Changes uint8

// The lists whose changes are told. Resource templates belong to the resources.
const (
	ToolsChanged Changes = 1 << iota
	PromptsChanged
	ResourcesChanged
)

// listChanges are in the order in which they are told.
var listChanges = [...]struct {
	list   Changes
	method string
}{
	{ToolsChanged, NotificationToolsListChanged},
	{PromptsChanged, NotificationPromptsListChanged},
	{ResourcesChanged, NotificationResourcesListChanged},
}

// ChangesOf returns what a notification of the given method says has changed, 0 if no
// list has.
func ChangesOf(method string) Changes {
	for _, c := range listChanges {
		if c.method == method {
			return c.list
		}
	}
	return 0
}

// AppendNotifications appends the notifications that tell of the changes.
func (c Changes) AppendNotifications(dst []*Notification) []*Notification {
	for _, change := range listChanges {
		if c&change.list != 0 {
			dst = append(dst, &Notification{Method: change.method})
		}
	}
	return dst
}

// Changes returns the changes of lists that the filter lets through.
func (f *Filter) Changes() Changes {
	var c Changes
	if f.ToolsListChanged {
		c |= ToolsChanged
	}
	if f.PromptsListChanged {
		c |= PromptsChanged
	}
	if f.ResourcesListChanged {
		c |= ResourcesChanged
	}
	return c
}
