package mcp

import json "github.com/go-json-experiment/json"

// A Prompt is an entry of prompts/list (2026-07-28, server/prompts).
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitzero"`
	Description string           `json:"description,omitzero"`
	Icons       []Icon           `json:"icons,omitzero"`
	Arguments   []PromptArgument `json:"arguments,omitzero"`
	Meta        Object           `json:"_meta,omitzero"`
	Extra       Object           `json:",embed"` // other members
}

// A PromptArgument is an argument that a prompt takes, a string.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitzero"`
	Description string `json:"description,omitzero"`
	Required    bool   `json:"required,omitzero"`
	Extra       Object `json:",embed"` // other members
}

// A PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    Role
	Content Content
	Extra   Object // other members
}

// wirePromptMessage is a PromptMessage as it is encoded.
type wirePromptMessage struct {
	Role    Role   `json:"role"`
	Content JSON   `json:"content"`
	Extra   Object `json:",embed"`
}

// MarshalJSON implements json.Marshaler.
func (m PromptMessage) MarshalJSON() ([]byte, error) {
	content, err := appendContent(nil, m.Content)
	if err != nil {
		return nil, err
	}
	return NewJSON(wirePromptMessage{m.Role, content, m.Extra})
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *PromptMessage) UnmarshalJSON(data []byte) error {
	var wire wirePromptMessage
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	content, err := readContent(wire.Content)
	*m = PromptMessage{wire.Role, content, wire.Extra}
	return err
}

// GetPromptParams are the params of prompts/get.
type GetPromptParams struct {
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments,omitzero"`
	RetryParams
}

// GetPromptResult is the result of prompts/get.
type GetPromptResult struct {
	Description string          `json:"description,omitzero"`
	Messages    []PromptMessage `json:"messages"`
	ResultMembers
}

// ListPromptsResult is the result of prompts/list.
type ListPromptsResult struct {
	Prompts []Prompt `json:"prompts"`
	ListMembers
}
