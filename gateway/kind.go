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

const allChanged = mcp.ToolsChanged | mcp.PromptsChanged | mcp.ResourcesChanged

// changedBy says what a change of a list is told as.
var changedBy = [lists]mcp.Changes{mcp.ToolsChanged, mcp.PromptsChanged, mcp.ResourcesChanged, mcp.ResourcesChanged}
