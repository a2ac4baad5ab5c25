package cli

import (
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A schema is a JSON Schema as far as a command line needs it: to show what a
// tool takes, and to read what it is given. It checks nothing for the server.
type schema struct {
	whole *jsonrpc.Value // that references point into
	value jsonrpc.Value
}

// maxRefs bounds the references that are followed one after the other.
const maxRefs = 8

func newSchema(raw mcp.JSON) schema {
	v := jsonrpc.Trusted(raw)
	return schema{&v, v}.resolved()
}

// sub returns a schema within this one.
func (s schema) sub(raw []byte) schema { return schema{s.whole, jsonrpc.Trusted(raw)}.resolved() }

// resolved returns what a reference within the document refers to.
func (s schema) resolved() schema {
	for range maxRefs {
		ref, ok := s.value.LookupString("$ref")
		path, local := strings.CutPrefix(ref, "#/")
		if !ok || !local {
			break
		}
		target := *s.whole
		for name := range strings.SplitSeq(path, "/") {
			target = target.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		}
		if !target.IsObject() {
			break
		}
		s.value = target
	}
	return s
}

// types are the types that a value may have, none if the schema does not say.
func (s schema) types() []string {
	raw, ok := s.value.Lookup("type")
	if !ok {
		return s.unionTypes()
	}
	if name, ok := jsonrpc.Unquote(raw); ok {
		return []string{name}
	}
	var types []string
	for _, item := range jsonrpc.Elements(raw) {
		if name, ok := jsonrpc.Unquote(item); ok {
			types = append(types, name)
		}
	}
	return types
}

func (s schema) unionTypes() []string {
	var types []string
	for _, part := range s.union() {
		found := part.types()
		if len(found) == 0 {
			return nil
		}
		types = append(types, found...)
	}
	return types
}

// maxUnion bounds the schemas of a union that are looked at.
const maxUnion = 16

// union are the schemas of which a value must fit one. Unions within unions are
// left out: they may refer to themselves.
func (s schema) union() []schema {
	var parts []schema
	for _, name := range []string{"anyOf", "oneOf"} {
		raw, _ := s.value.Lookup(name)
		for _, item := range jsonrpc.Elements(raw) {
			part := s.sub(item)
			_, any := part.value.Lookup("anyOf")
			_, one := part.value.Lookup("oneOf")
			if !any && !one && len(parts) < maxUnion {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// may reports whether a value may be of a type.
func (s schema) may(kind string) bool { return slices.Contains(s.types(), kind) }

// enum are the values that are allowed, as JSON; none if the schema lists none.
func (s schema) enum() [][]byte {
	if raw, ok := s.value.Lookup("const"); ok {
		return [][]byte{raw}
	}
	raw, _ := s.value.Lookup("enum")
	return jsonrpc.Elements(raw)
}

// items is the schema of the elements of an array.
func (s schema) items() schema {
	raw, _ := s.value.Lookup("items")
	return s.sub(raw)
}

// A property is one of an object.
type property struct {
	name     string
	schema   schema
	required bool
}

// properties are those of an object, the required ones first, otherwise in the
// order of the schema.
func (s schema) properties() []property {
	required := make(map[string]bool)
	raw, _ := s.value.Lookup("required")
	for _, item := range jsonrpc.Elements(raw) {
		name, _ := jsonrpc.Unquote(item)
		required[name] = true
	}
	var all []property
	members := s.value.Get("properties")
	for name, raw := range members.Members() {
		all = append(all, property{name, s.sub(raw), required[name]})
		delete(required, name)
	}
	for _, item := range jsonrpc.Elements(raw) { // that are required without a schema
		if name, _ := jsonrpc.Unquote(item); required[name] {
			all = append(all, property{name, s.sub(nil), true})
			delete(required, name)
		}
	}
	slices.SortStableFunc(all, func(a, b property) int {
		switch {
		case a.required == b.required:
			return 0
		case a.required:
			return -1
		}
		return 1
	})
	return all
}

// closed reports whether an object is not meant to have other properties than
// those that are listed.
func (s schema) closed() bool {
	for _, name := range []string{"patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref", "dependentSchemas"} {
		if _, ok := s.value.Lookup(name); ok {
			return false
		}
	}
	raw, ok := s.value.Lookup("additionalProperties")
	properties := s.value.Get("properties")
	return ok && string(raw) == "false" || !ok && properties.Len() > 0
}
