package server

import (
	"reflect"
	"strings"

	"github.com/mcpsplice/mcpsplice/internal/longtext"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// longTextsOf returns the strings of t that are taken past the JSON decoder, which
// passes over a text once more to see whether it is one.
func longTextsOf(t reflect.Type) []longtext.Field {
	list, _ := longtext.Fields(t, "UnmarshalJSON", "UnmarshalJSONFrom", "UnmarshalText")
	return list
}

// takeLongTexts fills the long texts of into, a struct, and returns the arguments
// that are left to decode.
func takeLongTexts(texts []longtext.Field, args *jsonrpc.Value, into reflect.Value) []byte {
	if len(args.Raw()) < longtext.Bytes {
		return args.Raw()
	}
	var taken []jsonrpc.Edit
	for _, t := range texts {
		raw, _ := args.Lookup(t.Name)
		if len(raw) < longtext.Bytes || raw[0] != '"' || hasTwice(args, t.Name) {
			continue
		}
		text, _ := jsonrpc.Unquote(raw)
		if strings.Contains(text, "\ufffd") {
			continue // perhaps half of a character, which decoding refuses
		}
		into.Field(t.Index).SetString(text)
		taken = append(taken, jsonrpc.Edit{Name: t.Name})
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
