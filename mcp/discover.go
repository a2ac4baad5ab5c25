package mcp

import (
	"github.com/mcpsplice/mcpsplice/jsonrpc"

	json "github.com/go-json-experiment/json"
)

// An Implementation is the name and version of a client or server.
type Implementation struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitzero"`
	Version     string `json:"version"`
	Description string `json:"description,omitzero"`
	WebsiteURL  string `json:"websiteUrl,omitzero"`
	Icons       []Icon `json:"icons,omitzero"`
	Extra       Object `json:",embed"` // other members
}

// JSON returns the implementation as a JSON object.
func (i Implementation) JSON() []byte {
	raw, err := marshal(i)
	if err != nil { // a name that is not UTF-8
		return []byte(`{"name":"unknown","version":"0"}`)
	}
	return raw
}

// DiscoverFromInitialize returns the DiscoverResult that says what a legacy
// server's InitializeResult says.
func DiscoverFromInitialize(init *jsonrpc.Value) Result {
	edits := []jsonrpc.Edit{
		{Name: "resultType", Value: []byte(`"complete"`)},
		{Name: "supportedVersions", Value: []byte("[]")},
		{Name: "capabilities", Value: emptyObject},
	}
	if raw, ok := init.Lookup("protocolVersion"); ok {
		edits[1].Value = append(append([]byte{'['}, raw...), ']')
	}
	if raw, ok := objectIn(init, "capabilities"); ok {
		edits[2].Value = raw
	}
	if raw, ok := init.Lookup("instructions"); ok {
		edits = append(edits, jsonrpc.Edit{Name: "instructions", Value: raw})
	}
	meta := init.Get(metaName)
	if !meta.IsObject() {
		meta = jsonrpc.Value{}
	}
	if info, ok := objectIn(init, "serverInfo"); ok {
		meta = jsonrpc.Edited(&meta, jsonrpc.Edit{Name: MetaServerInfo, Value: info})
	}
	if meta.IsObject() {
		edits = append(edits, jsonrpc.Edit{Name: metaName, Value: meta.Raw()})
	}
	return Result{jsonrpc.Edited(&jsonrpc.Value{}, withOthers(edits, init)...)}
}

// InitializeFromDiscover returns the InitializeResult, for a revision, that says
// what a DiscoverResult says. Fallback stands in for a server that does not name
// itself.
func InitializeFromDiscover(discover *Result, revision Revision, fallback Implementation) Result {
	info := ServerInfo(discover)
	if info == nil {
		info = fallback.JSON()
	}
	if !revision.HasTasks() {
		without := WithoutLegacyTasks(*discover)
		discover = &without
	}
	capabilities, ok := objectIn(&discover.Value, "capabilities")
	if !ok {
		capabilities = emptyObject
	}
	capabilities = withoutExtensionTasks(capabilities)
	edits := []jsonrpc.Edit{
		{Name: "protocolVersion", Value: jsonrpc.AppendString(nil, string(revision))},
		{Name: "capabilities", Value: capabilities},
		{Name: "serverInfo", Value: info},
	}
	if raw, ok := discover.Lookup("instructions"); ok {
		edits = append(edits, jsonrpc.Edit{Name: "instructions", Value: raw})
	}
	meta := discover.Get(metaName)
	if rest := jsonrpc.Edited(&meta, jsonrpc.Edit{Name: MetaServerInfo}); rest.IsObject() && string(rest.Raw()) != "{}" {
		edits = append(edits, jsonrpc.Edit{Name: metaName, Value: rest.Raw()})
	}
	return Result{jsonrpc.Edited(&jsonrpc.Value{}, withOthers(edits, &discover.Value)...)}
}

// withOthers adds to edits the members that neither of the two results knows.
func withOthers(edits []jsonrpc.Edit, result *jsonrpc.Value) []jsonrpc.Edit {
	for name, raw := range result.Members() {
		switch name {
		case "protocolVersion", "serverInfo", "supportedVersions", "capabilities", "instructions", metaName, "resultType", "ttlMs", "cacheScope":
		default:
			edits = append(edits, jsonrpc.Edit{Name: name, Value: raw})
		}
	}
	return edits
}

// ServerInfo returns the Implementation of the server in a DiscoverResult as
// JSON, nil if it does not name itself.
func ServerInfo(discover *Result) []byte {
	meta := discover.Get(metaName)
	info, ok := objectIn(&meta, MetaServerInfo)
	if !ok {
		return nil
	}
	return info
}

// SupportedVersions returns the revisions that a DiscoverResult lists.
func SupportedVersions(discover *Result) []Revision {
	raw, _ := discover.Lookup("supportedVersions")
	return readRevisions(raw)
}

// WithSupportedVersions returns a DiscoverResult that lists revisions: what a
// listener serves, whatever the server behind it does.
func WithSupportedVersions(discover *Result, revisions []Revision) Result {
	raw, err := json.Marshal(revisions)
	if err != nil {
		return *discover
	}
	return Result{jsonrpc.Edited(&discover.Value, jsonrpc.Edit{Name: "supportedVersions", Value: raw})}
}

// ServerCapabilities are the parts of a server's capabilities that edges act
// on.
type ServerCapabilities struct {
	Logging   *struct{}      `json:"logging"`
	Tools     listCapability `json:"tools"`
	Prompts   listCapability `json:"prompts"`
	Resources struct {
		listCapability
		Subscribe bool `json:"subscribe"`
	} `json:"resources"`
	// TaskTools says that tools can be called as tasks of 2025-11-25.
	TaskTools bool `json:"-"`
}

type listCapability struct {
	ListChanged bool `json:"listChanged"`
}

// ReadServerCapabilities returns the capabilities in an InitializeResult or
// DiscoverResult. What is malformed counts as not declared, and does not touch
// the rest.
func ReadServerCapabilities(result *jsonrpc.Value) ServerCapabilities {
	var c ServerCapabilities
	declared := result.Get("capabilities")
	if _, ok := objectIn(&declared, "logging"); ok {
		c.Logging = &struct{}{}
	}
	c.Tools.ListChanged = declares(&declared, "tools", "listChanged")
	c.Prompts.ListChanged = declares(&declared, "prompts", "listChanged")
	c.Resources.ListChanged = declares(&declared, "resources", "listChanged")
	c.Resources.Subscribe = declares(&declared, "resources", "subscribe")
	tasks := declared.Get("tasks")
	requests := tasks.Get("requests")
	tools := requests.Get("tools")
	_, c.TaskTools = objectIn(&tools, "call")
	return c
}

// declares reports whether a member of a capability is true.
func declares(capabilities *jsonrpc.Value, capability, member string) bool {
	v := capabilities.Get(capability)
	raw, _ := v.Lookup(member)
	return string(raw) == "true"
}

// ListFilter returns the filter of what a server with these capabilities
// promises to tell about its lists.
func (c *ServerCapabilities) ListFilter() Filter {
	return Filter{
		ToolsListChanged:     c.Tools.ListChanged,
		PromptsListChanged:   c.Prompts.ListChanged,
		ResourcesListChanged: c.Resources.ListChanged,
	}
}

// NeedsUser reports whether a client with these capabilities can be asked
// something, so that whom a question belongs to matters.
func NeedsUser(clientCapabilities []byte) bool {
	v := jsonrpc.Trusted(clientCapabilities)
	return has(&v, "elicitation") || has(&v, "sampling") || has(&v, "roots")
}
