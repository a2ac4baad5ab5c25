package server

import (
	"bytes"
	"encoding"
	stdjson "encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"reflect"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
)

var anyObject = mcp.JSON(`{"type":"object"}`)

// inferSchema returns the schema of the values that t takes, nil if they can be
// any.
func inferSchema(t reflect.Type) (mcp.JSON, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Interface:
		return nil, nil
	case t.Kind() == reflect.Struct && t.NumField() == 0:
		// Some hosts send made-up arguments to tools without any.
		return anyObject, nil
	}
	own := make(ownSchemas)
	own.find(t, false, make(map[reflect.Type]bool))
	if s := own[t]; s != nil && s.Type == "" {
		return nil, nil
	}
	inferred, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, err
	}
	return stdjson.Marshal(inferred)
}

// ownSchemas are the schemas of types that encode in a way of their own, which
// the library of schemas does not know.
type ownSchemas map[reflect.Type]*jsonschema.Schema

// find adds those among t and the types that it is made of. Pointed says that t
// is reached through a pointer.
func (o ownSchemas) find(t reflect.Type, pointed bool, seen map[reflect.Type]bool) {
	if s := ownSchema(t, pointed); s != nil && (o[t] == nil || pointed) {
		o[t] = s
		return
	}
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer:
		o.find(t.Elem(), true, seen)
	case reflect.Slice, reflect.Array, reflect.Map:
		o.find(t.Elem(), false, seen)
	case reflect.Struct:
		for field := range t.Fields() {
			o.find(field.Type, false, seen)
		}
	}
}

// anyTypes are the types of any value.
var anyTypes = []string{"null", "boolean", "number", "string", "array", "object"}

// ownSchema returns the schema of a type that encodes in a way of its own, nil for
// one that does not.
func ownSchema(t reflect.Type, pointed bool) *jsonschema.Schema {
	pointer := reflect.PointerTo(t)
	known := func(method reflect.Type) bool { return t.Implements(method) || pointer.Implements(method) }
	switch {
	case t == reflect.TypeFor[mcp.Object]():
		return &jsonschema.Schema{Type: "object"}
	case t == reflect.TypeFor[big.Int]():
		return &jsonschema.Schema{Type: "integer"}
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[slog.Level](), t.Kind() == reflect.Pointer:
		return nil // the library knows them
	case known(reflect.TypeFor[stdjson.Marshaler]()), known(reflect.TypeFor[json.MarshalerTo]()),
		t == reflect.TypeFor[stdjson.RawMessage]():
		if pointed { // to which the library would add null
			return &jsonschema.Schema{Types: anyTypes}
		}
		return &jsonschema.Schema{}
	case known(reflect.TypeFor[encoding.TextMarshaler]()):
		return &jsonschema.Schema{Type: "string"}
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() == reflect.Uint8:
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	}
	return nil
}

// isObjectSchema reports whether a schema is for objects only, as the input of a
// tool must be.
func isObjectSchema(raw mcp.JSON) bool {
	var head struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(raw, &head) == nil && head.Type == "object"
}

// A preset is the value that a property has if it is absent.
type preset struct {
	name  string
	value mcp.JSON
}

// presetsOf returns the defaults that a schema gives its properties, in their
// order.
func presetsOf(raw mcp.JSON) []preset {
	var presets []preset
	whole := jsonrpc.Trusted(raw)
	properties := whole.Get("properties")
	for name, inner := range properties.Members() {
		schema := jsonrpc.Trusted(inner)
		if value, ok := schema.Lookup("default"); ok {
			presets = append(presets, preset{name, bytes.Clone(value)})
		}
	}
	return presets
}

// withPresets returns arguments with the defaults of those that are absent.
func withPresets(object jsonrpc.Value, presets []preset) jsonrpc.Value {
	if len(presets) == 0 {
		return object
	}
	var edits []jsonrpc.Edit
	for _, p := range presets {
		if _, there := object.Lookup(p.name); !there {
			edits = append(edits, jsonrpc.Edit{Name: p.name, Value: p.value})
		}
	}
	if edits == nil {
		return object
	}
	object = jsonrpc.Edited(&object, edits...)
	return object.Indexed()
}

var errNotObject = errors.New("its type must be object")
