package gateway

import "github.com/mcpsplice/mcpsplice/mcp"

// A kind is something that backends are asked for and that is kept: one of their lists,
// or what they can do.
type kind uint8

const (
	tools kind = iota
	prompts
	resources
	templates
	lists             // how many kinds of lists there are
	discovery = lists // no list
	kinds     = lists + 1
)

// methods are those by which backends are asked.
var methods = [kinds]string{
	mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates, mcp.MethodDiscover,
}

// members hold the items of a list, and keys are the items' names.
var (
	members = [lists]string{"tools", "prompts", "resources", "resourceTemplates"}
	keys    = [lists]string{"name", "name", "uri", "uriTemplate"}
)

// isNamed reports whether the items of a list have names that are shown in another
// form.
func (k kind) isNamed() bool { return k == tools || k == prompts }

// changes are lists that have changed.
type changes uint8

const (
	toolsChanged changes = 1 << iota
	promptsChanged
	resourcesChanged
	allChanged = toolsChanged | promptsChanged | resourcesChanged
)

// changedBy says what a change of a list is told as.
var changedBy = [lists]changes{toolsChanged, promptsChanged, resourcesChanged, resourcesChanged}

// changeNotifications are sent in this order.
var changeNotifications = []struct {
	list   changes
	method string
}{
	{toolsChanged, mcp.NotificationToolsListChanged},
	{promptsChanged, mcp.NotificationPromptsListChanged},
	{resourcesChanged, mcp.NotificationResourcesListChanged},
}

// changesOf returns what a notification says has changed, 0 if no list.
func changesOf(method string) changes {
	for _, n := range changeNotifications {
		if n.method == method {
			return n.list
		}
	}
	return 0
}

// wanted returns the lists of whose changes a filter wants to hear.
func wanted(f *mcp.Filter) (c changes) {
	if f.ToolsListChanged {
		c |= toolsChanged
	}
	if f.PromptsListChanged {
		c |= promptsChanged
	}
	if f.ResourcesListChanged {
		c |= resourcesChanged
	}
	return c
}
