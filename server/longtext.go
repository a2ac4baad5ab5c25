package server

import (
	"reflect"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// longTextBytes is from how many bytes on a text is taken past the JSON decoder,
// which passes over it once more to see whether it is one.
const longTextBytes = 4 << 10

// A longText is a string of a struct that can be filled past the JSON decoder.
type longText struct {
	name  string // of the member
	field int
}

// longTextsOf returns the strings of t that lie directly in it and that JSON
// decoding does nothing to but unquote.
func longTextsOf(t reflect.Type) []longText {
	if t.Kind() != reflect.Struct || decodesItself(reflect.PointerTo(t)) {
		return nil
	}
	var list []longText
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Anonymous || f.Type != reflect.TypeFor[string]() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		plain := options == "" || options == "omitempty" || options == "omitzero"
		if plain && name != "-" && !strings.ContainsAny(name, `'"\`) {
			list = append(list, longText{name: name, field: i})
		}
	}
	return list
}

// decodesItself reports whether values of a type have a method that decodes them.
func decodesItself(t reflect.Type) bool {
	for _, method := range []string{"UnmarshalJSON", "UnmarshalJSONFrom", "UnmarshalText"} {
		if _, has := t.MethodByName(method); has {
			return true
		}
	}
	return false
}

// takeLongTexts fills the long texts of into, a struct, and returns the arguments
// that are left to decode.
func takeLongTexts(texts []longText, args *jsonrpc.Value, into reflect.Value) []byte {
	if len(args.Raw()) < longTextBytes {
		return args.Raw()
	}
	var taken []jsonrpc.Edit
	for _, t := range texts {
		raw, _ := args.Lookup(t.name)
		if len(raw) < longTextBytes || raw[0] != '"' || hasTwice(args, t.name) {
			continue
		}
		text, _ := jsonrpc.Unquote(raw)
		if strings.Contains(text, "\ufffd") {
			continue // perhaps half of a character, which decoding refuses
		}
		into.Field(t.field).SetString(text)
		taken = append(taken, jsonrpc.Edit{Name: t.name})
	}
	if taken == nil {
		return args.Raw()
	}
	return jsonrpc.AppendEdited(nil, args, taken...)
}

// hasTwice reports whether an object has several members of a name, which
// decoding refuses.
func hasTwice(v *jsonrpc.Value, name string) bool {
	n := 0
	for member := range v.Members() {
		if member == name {
			n++
		}
	}
	return n > 1
}
