package mcp

import (
	"bytes"
	"errors"

	json "github.com/go-json-experiment/json"
)

// JSON is a JSON value as it came or as it is to be sent: schemas, structured
// content, members that this library does not know. Nil stands for an absent
// one.
type JSON []byte

// MarshalJSON returns the value, and null for an absent one.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == nil {
		return []byte("null"), nil
	}
	return j, nil
}

// UnmarshalJSON keeps a copy of data.
func (j *JSON) UnmarshalJSON(data []byte) error {
	*j = bytes.Clone(data)
	return nil
}

// IsZero reports whether the value is absent.
func (j JSON) IsZero() bool { return j == nil }

// NewJSON encodes v by encoding/json's rules.
func NewJSON(v any) (JSON, error) { return json.Marshal(v, json.Deterministic(true)) }

// Decode decodes the value into v, a pointer. Names are compared exactly.
func (j JSON) Decode(v any) error {
	if j == nil {
		return errors.New("the value is absent")
	}
	return json.Unmarshal(j, v)
}

// An Object is a JSON object whose members are kept as they are: a _meta, or the
// members of a value that the specification's revision at hand does not name.
type Object map[string]JSON
