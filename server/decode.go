package server

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"

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

// Bounds of numbers that are to be integers: none of Go's has as many digits.
const (
	maxExponent = 30
	maxLiteral  = 100
)

// integers lets integers be written with a fraction of zero or an exponent, as
// schemas do: for them 1.0 is of type integer.
var integers = json.JoinOptions(durations, json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v any) error {
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	to = to.Elem()
	signed := to.CanInt()
	if !signed && !to.CanUint() {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	number, ok := exactly(string(raw))
	switch {
	case ok && signed && number.IsInt64() && !to.OverflowInt(number.Int64()):
		to.SetInt(number.Int64())
	case ok && !signed && number.IsUint64() && !to.OverflowUint(number.Uint64()):
		to.SetUint(number.Uint64())
	default:
		return fmt.Errorf("%.40s is out of range", raw)
	}
	return nil
})))

// exactly returns the integer that a JSON number is.
func exactly(literal string) (*big.Int, bool) {
	if len(literal) > maxLiteral {
		return nil, false
	}
	if at := strings.IndexAny(literal, "eE"); at >= 0 {
		var exponent int
		if _, err := fmt.Sscan(strings.TrimPrefix(literal[at+1:], "+"), &exponent); err != nil || exponent > maxExponent || exponent < -maxExponent {
			return nil, false
		}
	}
	number, ok := new(big.Rat).SetString(literal)
	if !ok || !number.IsInt() {
		return nil, false
	}
	return number.Num(), true
}
