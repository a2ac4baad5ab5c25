package mcp

// A Resource is an entry of resources/list (2026-07-28, server/resources).
type Resource struct {
	URI         string       `json:"uri"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitzero"`
	Description string       `json:"description,omitzero"`
	Icons       []Icon       `json:"icons,omitzero"`
	MIMEType    string       `json:"mimeType,omitzero"`
	Size        *int64       `json:"size,omitzero"` // in bytes
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Object       `json:"_meta,omitzero"`
	Extra       Object       `json:",embed"` // other members
}

// A ResourceTemplate is an entry of resources/templates/list.
type ResourceTemplate struct {
	URITemplate string       `json:"uriTemplate"` // RFC 6570
	Name        string       `json:"name"`
	Title       string       `json:"title,omitzero"`
	Description string       `json:"description,omitzero"`
	Icons       []Icon       `json:"icons,omitzero"`
	MIMEType    string       `json:"mimeType,omitzero"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Object       `json:"_meta,omitzero"`
	Extra       Object       `json:",embed"` // other members
}

// ResourceContents are what a resource holds: text, or bytes. Exactly one of
// Text and Blob is not nil.
type ResourceContents struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitzero"`
	Text     *string `json:"text,omitzero"`
	Blob     []byte  `json:"blob,omitzero"` // base64 on the wire
	Meta     Object  `json:"_meta,omitzero"`
	Extra    Object  `json:",embed"` // other members
}

// ReadResourceParams are the params of resources/read.
type ReadResourceParams struct {
	URI string `json:"uri"`
	RetryParams
}

// ReadResourceResult is the result of resources/read.
type ReadResourceResult struct {
	Contents []ResourceContents `json:"contents"`
	CacheHints
	ResultMembers
}

// ListResourcesResult is the result of resources/list.
type ListResourcesResult struct {
	Resources []Resource `json:"resources"`
	ListMembers
}

// ListResourceTemplatesResult is the result of resources/templates/list.
type ListResourceTemplatesResult struct {
	ResourceTemplates []ResourceTemplate `json:"resourceTemplates"`
	ListMembers
}

// ResourceUpdatedParams are the params of notifications/resources/updated.
type ResourceUpdatedParams struct {
	URI   string `json:"uri"`
	Meta  Object `json:"_meta,omitzero"`
	Extra Object `json:",embed"` // other members
}
