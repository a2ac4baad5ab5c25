package server

import (
	"errors"

	"github.com/mcpsplice/mcpsplice/internal/lenient"
	"github.com/mcpsplice/mcpsplice/internal/schema"
	"github.com/mcpsplice/mcpsplice/jsonrpc"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// decode decodes JSON that somebody else has written.
func decode[T any](raw []byte) (T, error) {
	var v T
	err := decodeInto(raw, &v)
	if err == nil {
		return v, nil
	}
	var again T
	if json.Unmarshal(raw, &again, integers) == nil {
		return again, nil
	}
	return v, schema.Plainly(err)
}

// decodeInto decodes raw into v, a pointer, as it is written.
func decodeInto(raw []byte, v any) error {
	if len(raw) < minLarge {
		return json.Unmarshal(raw, v, durations)
	}
	return json.Unmarshal(raw, v, longStrings)
}

// durations are decoded from what mcp.NewJSON encodes them as.
var durations = jsonv1.FormatDurationAsNano(true)

// minLarge is from how many bytes of arguments on longStrings is worth its while.
const minLarge = 32 << 10

// longStrings decodes strings with one copy instead of two.
var longStrings = json.JoinOptions(durations, json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, text *string) error {
	if dec.PeekKind() != '"' {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*text, _ = jsonrpc.Unquote(raw)
	return nil
})))

// integers lets integers be written with a fraction of zero or an exponent, as
// schemas do: for them 1.0 is of type integer.
var integers = json.JoinOptions(durations, lenient.Integers)
