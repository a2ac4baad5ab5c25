package mcp

// A ServerCapabilitySet is what a server declares to have (2026-07-28, schema,
// ServerCapabilities). Nil stands for what it does not have.
type ServerCapabilitySet struct {
	Tools        *ListCapability     `json:"tools,omitzero"`
	Resources    *ResourceCapability `json:"resources,omitzero"`
	Prompts      *ListCapability     `json:"prompts,omitzero"`
	Completions  Object              `json:"completions,omitzero"`
	Logging      Object              `json:"logging,omitzero"`
	Extensions   Object              `json:"extensions,omitzero"`
	Experimental Object              `json:"experimental,omitzero"`
	Extra        Object              `json:",embed"` // other members
}

// A ListCapability says that a server has features of a kind.
type ListCapability struct {
	ListChanged bool   `json:"listChanged,omitzero"` // it tells when the list changes
	Extra       Object `json:",embed"`               // other members
}

// A ResourceCapability says that a server has resources.
type ResourceCapability struct {
	Subscribe   bool   `json:"subscribe,omitzero"` // it tells when a resource changes
	ListChanged bool   `json:"listChanged,omitzero"`
	Extra       Object `json:",embed"` // other members
}

// A ClientCapabilitySet is what a client declares to have (2026-07-28, schema,
// ClientCapabilities). Nil stands for what it does not have.
type ClientCapabilitySet struct {
	Elicitation  *ElicitationCapability `json:"elicitation,omitzero"`
	Sampling     *SamplingCapability    `json:"sampling,omitzero"`
	Roots        *ListCapability        `json:"roots,omitzero"`
	Extensions   Object                 `json:"extensions,omitzero"`
	Experimental Object                 `json:"experimental,omitzero"`
	Extra        Object                 `json:",embed"` // other members
}

// An ElicitationCapability says how a client can ask its user. With neither
// member it can show forms (2025-11-25 and 2026-07-28, client/elicitation).
type ElicitationCapability struct {
	Form  Object `json:"form,omitzero"`
	URL   Object `json:"url,omitzero"`
	Extra Object `json:",embed"` // other members
}

// A SamplingCapability says what a client can have a model do.
type SamplingCapability struct {
	Context Object `json:"context,omitzero"` // includeContext other than none
	Tools   Object `json:"tools,omitzero"`   // tools and toolChoice
	Extra   Object `json:",embed"`           // other members
}

// Forms reports whether a client with these capabilities shows forms.
func (c *ClientCapabilitySet) Forms() bool {
	e := c.Elicitation
	return e != nil && (e.Form != nil || e.URL == nil)
}

// URLs reports whether a client with these capabilities opens URLs for its user.
func (c *ClientCapabilitySet) URLs() bool { return c.Elicitation != nil && c.Elicitation.URL != nil }
