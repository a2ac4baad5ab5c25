// Package lenient decodes JSON that others have written into Go values whose types
// take less than JSON Schema does: for that 1.0 is an integer.
package lenient

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of numbers that are to be integers: none of Go's has as many digits.
const (
	maxExponent = 30
	maxLiteral  = 100
)

// Integers lets integers be written with a fraction of zero or an exponent, as
// schemas do.
var Integers = json.WithUnmarshalers(json.UnmarshalFromFunc(readInteger))

// usual are Integers, and empty objects as languages write them that do not tell
// these from empty arrays.
var usual = json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(readInteger), json.UnmarshalFromFunc(readEmpty),
))

// Unmarshal decodes raw into v, a pointer: as it is written or, if v does not take
// that, leniently. The error is that of the first attempt.
func Unmarshal(raw []byte, v any, opts ...json.Options) error {
	err := json.Unmarshal(raw, v, opts...)
	if _, semantic := errors.AsType[*json.SemanticError](err); !semantic {
		return err
	}
	if json.Unmarshal(raw, v, json.JoinOptions(opts...), usual) == nil {
		return nil
	}
	return err
}

func readInteger(dec *jsontext.Decoder, v any) error {
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
	number, ok := Integer(string(raw))
	switch {
	case ok && signed && number.IsInt64() && !to.OverflowInt(number.Int64()):
		to.SetInt(number.Int64())
	case ok && !signed && number.IsUint64() && !to.OverflowUint(number.Uint64()):
		to.SetUint(number.Uint64())
	default:
		return fmt.Errorf("%.40s is out of range", raw)
	}
	return nil
}

// readEmpty takes an empty array as an empty object.
func readEmpty(dec *jsontext.Decoder, v any) error {
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || dec.PeekKind() != '[' {
		return errors.ErrUnsupported
	}
	to = to.Elem()
	if kind := to.Kind(); kind != reflect.Struct && kind != reflect.Map {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if strings.Trim(string(raw[1:len(raw)-1]), " \t\r\n") != "" {
		return errors.New("an array is no object")
	}
	to.SetZero()
	if to.Kind() == reflect.Map {
		to.Set(reflect.MakeMap(to.Type()))
	}
	return nil
}

// Integer returns the integer that a JSON number is, false for one with a fraction or
// one that no integer of Go's could hold.
func Integer(literal string) (*big.Int, bool) {
	if len(literal) > maxLiteral {
		return nil, false
	}
	if at := strings.IndexAny(literal, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(literal[at+1:])
		if err != nil || exponent > maxExponent || exponent < -maxExponent {
			return nil, false
		}
	}
	number, ok := new(big.Rat).SetString(literal)
	if !ok || !number.IsInt() {
		return nil, false
	}
	return number.Num(), true
}
