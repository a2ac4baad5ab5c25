package mcp

// ElicitParams are the params of elicitation/create: a form, or a URL to open
// (2026-07-28, client/elicitation).
type ElicitParams struct {
	Mode            string `json:"mode,omitzero"` // ElicitForm or ElicitURL; empty stands for ElicitForm
	Message         string `json:"message"`
	RequestedSchema JSON   `json:"requestedSchema,omitzero"` // of a form: an object of primitive properties
	URL             string `json:"url,omitzero"`
	ElicitationID   string `json:"elicitationId,omitzero"` // with a URL, in 2025-11-25
	Meta            Object `json:"_meta,omitzero"`
	Extra           Object `json:",embed"` // other members
}

// The modes of elicitation.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)

// ElicitResult is the answer to elicitation/create.
type ElicitResult struct {
	Action  ElicitAction `json:"action"`
	Content JSON         `json:"content,omitzero"` // of an accepted form: an object
	Meta    Object       `json:"_meta,omitzero"`
	Extra   Object       `json:",embed"` // other members
}

// An ElicitAction is what a user did with a question.
type ElicitAction string

// The actions.
const (
	Accept  ElicitAction = "accept"
	Decline ElicitAction = "decline"
	Cancel  ElicitAction = "cancel" // dismissed without a choice
)
