package schema

import (
	"bytes"
	stdjson "encoding/json"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode returns the value that raw is. Numbers that a float64 only comes near stay as
// they are written.
func decode(raw []byte) (any, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil || !mayHoldLong(raw) {
		return v, err
	}
	return decodeLong(jsontext.NewDecoder(bytes.NewBuffer(raw)))
}

// mayHoldLong reports whether there may be a number in raw that is not exact as float64.
func mayHoldLong(raw []byte) bool {
	digits := 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case '0' <= c && c <= '9':
			if digits++; digits > exactDigits {
				return true
			}
		case c == '.':
		case c == '"':
			digits = 0
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case (c == 'e' || c == 'E') && digits > 0:
			return true
		default:
			digits = 0
		}
	}
	return false
}

func decodeLong(dec *jsontext.Decoder) (any, error) {
	switch dec.PeekKind() {
	case '0':
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		return numberOf(raw)
	case '[':
		return decodeItems(dec)
	case '{':
		return decodeMembers(dec)
	}
	var v any
	err := json.UnmarshalDecode(dec, &v)
	return v, err
}

// numberOf returns a float64, or a [stdjson.Number] if that is not exact.
func numberOf(raw []byte) (any, error) {
	number := stdjson.Number(raw)
	if inexact(raw) != nil {
		return number, nil
	}
	return number.Float64()
}

func decodeItems(dec *jsontext.Decoder) (any, error) {
	items := []any{}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for dec.PeekKind() != ']' {
		item, err := decodeLong(dec)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := dec.ReadToken()
	return items, err
}

func decodeMembers(dec *jsontext.Decoder) (any, error) {
	members := map[string]any{}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String()
		if members[text], err = decodeLong(dec); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return members, err
}
