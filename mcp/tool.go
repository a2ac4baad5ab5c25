package mcp

// A Tool is an entry of tools/list (2026-07-28, server/tools).
type Tool struct {
	Name         string           `json:"name"`
	Title        string           `json:"title,omitzero"`
	Description  string           `json:"description,omitzero"`
	Icons        []Icon           `json:"icons,omitzero"`
	InputSchema  JSON             `json:"inputSchema"`           // a JSON Schema of type object
	OutputSchema JSON             `json:"outputSchema,omitzero"` // a JSON Schema; legacy revisions want type object
	Annotations  *ToolAnnotations `json:"annotations,omitzero"`
	Meta         Object           `json:"_meta,omitzero"`
	Extra        Object           `json:",embed"` // other members
}

// ToolAnnotations describe a tool's behaviour. They are hints, which a client
// must not trust unless it trusts the server.
type ToolAnnotations struct {
	Title           string `json:"title,omitzero"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitzero"`    // default false
	DestructiveHint *bool  `json:"destructiveHint,omitzero"` // default true
	IdempotentHint  *bool  `json:"idempotentHint,omitzero"`  // default false
	OpenWorldHint   *bool  `json:"openWorldHint,omitzero"`   // default true
	Extra           Object `json:",embed"`                   // other members
}

// An Icon is a picture of a feature or an implementation.
type Icon struct {
	Src      string   `json:"src"` // a https: or data: URI
	MIMEType string   `json:"mimeType,omitzero"`
	Sizes    []string `json:"sizes,omitzero"` // such as "48x48", or "any"
	Theme    string   `json:"theme,omitzero"` // "light" or "dark"
	Extra    Object   `json:",embed"`         // other members
}

// CallToolParams are the params of tools/call.
type CallToolParams struct {
	Name      string `json:"name"`
	Arguments JSON   `json:"arguments,omitzero"` // an object
	RetryParams
}

// CallToolResult is the result of tools/call.
type CallToolResult struct {
	Content           Contents `json:"content"`
	StructuredContent JSON     `json:"structuredContent,omitzero"`
	IsError           *bool    `json:"isError,omitzero"` // nil stands for false
	ResultMembers
}

// Failed reports whether the tool could not do what it was asked.
func (r *CallToolResult) Failed() bool { return r.IsError != nil && *r.IsError }

// ListToolsResult is the result of tools/list.
type ListToolsResult struct {
	Tools []Tool `json:"tools"`
	ListMembers
}
