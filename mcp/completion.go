package mcp

// MaxCompletions is how many values one completion may hold (2026-07-28,
// server/utilities/completion).
const MaxCompletions = 100

// A Reference names what an argument to be completed belongs to: a prompt by its
// name, or a resource template by its uriTemplate.
type Reference struct {
	Type  string `json:"type"` // RefPrompt or RefResource
	Name  string `json:"name,omitzero"`
	Title string `json:"title,omitzero"`
	URI   string `json:"uri,omitzero"`
	Extra Object `json:",embed"` // other members
}

// The types of references.
const (
	RefPrompt   = "ref/prompt"
	RefResource = "ref/resource"
)

// CompleteParams are the params of completion/complete.
type CompleteParams struct {
	Ref      Reference        `json:"ref"`
	Argument CompleteArgument `json:"argument"`
	Context  *CompleteContext `json:"context,omitzero"`
	Meta     Object           `json:"_meta,omitzero"`
	Extra    Object           `json:",embed"` // other members
}

// A CompleteArgument is an argument to be completed, with what was typed so far.
type CompleteArgument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Extra Object `json:",embed"` // other members
}

// A CompleteContext holds arguments that are settled already.
type CompleteContext struct {
	Arguments map[string]string `json:"arguments,omitzero"`
	Extra     Object            `json:",embed"` // other members
}

// CompleteResult is the result of completion/complete.
type CompleteResult struct {
	Completion Completion `json:"completion"`
	ResultMembers
}

// A Completion holds values that an argument may have, at most MaxCompletions.
type Completion struct {
	Values  []string `json:"values"`
	Total   *int     `json:"total,omitzero"`   // how many there are, also those not here
	HasMore *bool    `json:"hasMore,omitzero"` // nil stands for false
	Extra   Object   `json:",embed"`           // other members
}
