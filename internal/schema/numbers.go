package schema

import (
	"bytes"
	stdjson "encoding/json"
	"strconv"
	"strings"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
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

// forLibrary returns a decoded value as the library of schemas has it: it knows the exact
// integers of 64 bits, and else float64.
func forLibrary(v any) any {
	switch v := v.(type) {
	case stdjson.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return n
		}
		number, _ := v.Float64()
		return number
	case []any:
		for i, item := range v {
			v[i] = forLibrary(item)
		}
	case map[string]any:
		for name, member := range v {
			v[name] = forLibrary(member)
		}
	}
	return v
}

// giveExact gives a schema of the library, and those within it, their enumerations as
// tree has them, which they are read from.
func giveExact(s *jsonschema.Schema, tree any) {
	object, ok := tree.(map[string]any)
	if !ok {
		return
	}
	if values, ok := object["enum"].([]any); ok && s.Enum != nil {
		s.Enum = values
	}
	if value, ok := object["const"]; ok && s.Const != nil {
		s.Const = &value
	}
	for _, sub := range subschemas(s) {
		keyword, name, _ := strings.Cut(sub.path[1:], "/")
		inner := object[keyword]
		switch held := inner.(type) {
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i < len(held) {
				inner = held[i]
			}
		case map[string]any:
			if sub.path != "/"+keyword {
				inner = held[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
			}
		}
		giveExact(sub.schema, inner)
	}
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
