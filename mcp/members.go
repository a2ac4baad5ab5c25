package mcp

// RetryParams are what the params of requests have in common within which a
// server may ask something: the answers that it asked for, and its own state
// (2026-07-28, patterns/mrtr).
type RetryParams struct {
	InputResponses map[string]JSON `json:"inputResponses,omitzero"` // answers by the keys of the questions
	RequestState   string          `json:"requestState,omitzero"`   // as the server sent it
	Meta           Object          `json:"_meta,omitzero"`
	Extra          Object          `json:",embed"` // other members
}

// PageParams are the params of requests for lists, and of others that have no
// params of their own.
type PageParams struct {
	Cursor string `json:"cursor,omitzero"` // of the page; empty for the first one
	Meta   Object `json:"_meta,omitzero"`
	Extra  Object `json:",embed"` // other members
}

// ResultMembers are what all results have in common.
type ResultMembers struct {
	ResultType string `json:"resultType,omitzero"` // empty stands for Complete
	Meta       Object `json:"_meta,omitzero"`
	Extra      Object `json:",embed"` // other members
}

// ListMembers are what all pages of lists have in common.
type ListMembers struct {
	NextCursor string `json:"nextCursor,omitzero"` // empty on the last page
	CacheHints
	ResultMembers
}

// CacheHints say how long a result may be kept, and for whom (2026-07-28,
// server/utilities/caching).
type CacheHints struct {
	TTLMs      *int64     `json:"ttlMs,omitzero"` // milliseconds; nil if not told
	CacheScope CacheScope `json:"cacheScope,omitzero"`
}

// A CacheScope says who may be given a result that was kept.
type CacheScope string

// The cache scopes.
const (
	Private CacheScope = "private" // whoever asked for it
	Public  CacheScope = "public"  // everybody
)

// An InputRequiredResult says that a request needs answers of the client before
// it can be completed (2026-07-28, patterns/mrtr, InputRequiredResult).
type InputRequiredResult struct {
	InputRequests map[string]InputRequest `json:"inputRequests,omitzero"` // questions by key
	RequestState  string                  `json:"requestState,omitzero"`
	ResultMembers
}

// An InputRequest is a question within an [InputRequiredResult].
type InputRequest struct {
	Method string `json:"method"`
	Params JSON   `json:"params,omitzero"`
	Extra  Object `json:",embed"` // other members
}

// DiscoverResult is the result of server/discover.
type DiscoverResult struct {
	SupportedVersions []Revision          `json:"supportedVersions"`
	Capabilities      ServerCapabilitySet `json:"capabilities"`
	Instructions      string              `json:"instructions,omitzero"`
	CacheHints
	ResultMembers
}

// ListenParams are the params of subscriptions/listen.
type ListenParams struct {
	Notifications Filter `json:"notifications"`
	Meta          Object `json:"_meta,omitzero"`
	Extra         Object `json:",embed"` // other members
}
