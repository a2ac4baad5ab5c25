package mcp

import (
	"bytes"

	json "github.com/go-json-experiment/json"
)

// CreateMessageParams are the params of sampling/createMessage (2026-07-28,
// client/sampling).
type CreateMessageParams struct {
	Messages         []SamplingMessage `json:"messages"`
	MaxTokens        int               `json:"maxTokens"`
	SystemPrompt     string            `json:"systemPrompt,omitzero"`
	ModelPreferences *ModelPreferences `json:"modelPreferences,omitzero"`
	Temperature      *float64          `json:"temperature,omitzero"`
	StopSequences    []string          `json:"stopSequences,omitzero"`
	IncludeContext   string            `json:"includeContext,omitzero"` // "none", "thisServer" or "allServers"
	Tools            []Tool            `json:"tools,omitzero"`
	ToolChoice       *ToolChoice       `json:"toolChoice,omitzero"`
	Metadata         JSON              `json:"metadata,omitzero"` // an object for the model's provider
	Meta             Object            `json:"_meta,omitzero"`
	Extra            Object            `json:",embed"` // other members
}

// ModelPreferences say which model a server would like. Priorities are 0 to 1.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitzero"`
	CostPriority         *float64    `json:"costPriority,omitzero"`
	SpeedPriority        *float64    `json:"speedPriority,omitzero"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitzero"`
	Extra                Object      `json:",embed"` // other members
}

// A ModelHint is a part of a model's name.
type ModelHint struct {
	Name  string `json:"name,omitzero"`
	Extra Object `json:",embed"` // other members
}

// A ToolChoice says whether a model must use tools: "auto", "required" or
// "none".
type ToolChoice struct {
	Mode  string `json:"mode,omitzero"`
	Extra Object `json:",embed"` // other members
}

// CreateMessageResult is the answer to sampling/createMessage.
type CreateMessageResult struct {
	Role       Role
	Content    Contents
	Model      string
	StopReason string // such as "endTurn", "maxTokens" or "toolUse"; may be empty
	Meta       Object
	Extra      Object // other members

	array bool // the content came as an array
}

// A SamplingMessage is one message of a conversation with a model.
type SamplingMessage struct {
	Role    Role
	Content Contents
	Meta    Object
	Extra   Object // other members

	array bool // the content came as an array
}

type wireSamplingMessage struct {
	Role    Role   `json:"role"`
	Content JSON   `json:"content"`
	Meta    Object `json:"_meta,omitzero"`
	Extra   Object `json:",embed"`
}

type wireCreateMessageResult struct {
	Role       Role   `json:"role"`
	Content    JSON   `json:"content"`
	Model      string `json:"model"`
	StopReason string `json:"stopReason,omitzero"`
	Meta       Object `json:"_meta,omitzero"`
	Extra      Object `json:",embed"`
}

// MarshalJSON implements json.Marshaler. A single block is encoded without an
// array, as revisions before 2025-11-25 have it.
func (m SamplingMessage) MarshalJSON() ([]byte, error) {
	content, err := encodeSampled(m.Content, m.array)
	if err != nil {
		return nil, err
	}
	return NewJSON(wireSamplingMessage{m.Role, content, m.Meta, m.Extra})
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *SamplingMessage) UnmarshalJSON(data []byte) error {
	var wire wireSamplingMessage
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	content, array, err := decodeSampled(wire.Content)
	*m = SamplingMessage{Role: wire.Role, Content: content, Meta: wire.Meta, Extra: wire.Extra, array: array}
	return err
}

// MarshalJSON implements json.Marshaler. A single block is encoded without an
// array, as revisions before 2025-11-25 have it.
func (r CreateMessageResult) MarshalJSON() ([]byte, error) {
	content, err := encodeSampled(r.Content, r.array)
	if err != nil {
		return nil, err
	}
	return NewJSON(wireCreateMessageResult{r.Role, content, r.Model, r.StopReason, r.Meta, r.Extra})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *CreateMessageResult) UnmarshalJSON(data []byte) error {
	var wire wireCreateMessageResult
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	content, array, err := decodeSampled(wire.Content)
	*r = CreateMessageResult{
		Role: wire.Role, Content: content, Model: wire.Model, StopReason: wire.StopReason,
		Meta: wire.Meta, Extra: wire.Extra, array: array,
	}
	return err
}

func encodeSampled(content Contents, array bool) ([]byte, error) {
	if len(content) == 1 && !array {
		return appendContent(nil, content[0])
	}
	return content.MarshalJSON()
}

func decodeSampled(data JSON) (content Contents, array bool, err error) {
	if bytes.HasPrefix(data, []byte{'['}) {
		err = content.UnmarshalJSON(data)
		return content, true, err
	}
	block, err := readContent(data)
	return Contents{block}, false, err
}
