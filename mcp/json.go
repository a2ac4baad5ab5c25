package mcp

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// encoding is how this library encodes Go values. A JSON that these hold keeps its
// tokens; only white space between them goes.
var encoding = json.JoinOptions(
	json.Deterministic(true),
	jsontext.PreserveRawStrings(true),
	durations, // there is no other form of them
	json.WithMarshalers(json.MarshalToFunc(encodeNumber)),
)

// encodeNumber encodes a number that was decoded with UseNumber as one. To the
// encoder it is a string.
func encodeNumber(enc *jsontext.Encoder, n stdjson.Number) error {
	if kind, length := enc.StackIndex(enc.StackDepth()); kind == '{' && length%2 == 0 {
		return errors.ErrUnsupported // as the name of a member it stays a string
	}
	if n == "" {
		n = "0"
	}
	if jsontext.Value(n).Kind() != '0' {
		return fmt.Errorf("%.80q is no number", string(n))
	}
	return enc.WriteValue(jsontext.Value(n))
}

// NewJSON encodes v by encoding/json's rules, with the members of maps in the
// order of their names. A JSON within v keeps its tokens. Bytes of Go strings
// that are not UTF-8 become U+FFFD.
func NewJSON(v any) (JSON, error) {
	raw, err := marshal(v)
	if err == nil {
		return raw, nil
	}
	mended, again := json.Marshal(v, mending)
	if again != nil {
		return nil, err
	}
	return mended, nil
}

// mending is encoding that replaces what is not UTF-8. It is not used at once,
// because with PreserveRawStrings it would let such bytes pass where a JSON holds
// them.
var mending = json.JoinOptions(encoding, jsontext.PreserveRawStrings(false), jsontext.AllowInvalidUTF8(true))

// AppendJSON appends to dst what NewJSON encodes. After an error dst is as it
// was.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	err := json.MarshalWrite(b, v, encoding)
	if err == nil {
		return b.Bytes(), nil
	}
	b.Truncate(len(dst))
	if json.MarshalWrite(b, v, mending) != nil {
		return dst, err
	}
	return b.Bytes(), nil
}

// Decode decodes the value into v, a pointer, as [Result.Decode] does. Names are
// compared exactly.
func (j JSON) Decode(v any) error {
	if j == nil {
		return errors.New("the value is absent")
	}
	return decode(j, v)
}

// marshal is NewJSON that refuses what is not UTF-8.
func marshal(v any) ([]byte, error) { return json.Marshal(v, encoding) }

// An Object is a JSON object whose members are kept as they are: a _meta, or the
// members of a value that the specification's revision at hand does not name.
type Object map[string]JSON
