// Package longtext finds the strings of Go structs that may be long and can be
// taken past a JSON library, which passes over a text several times.
package longtext

import (
	"reflect"
	"strings"
	"unicode/utf8"
)

// Bytes is from how many bytes on a text is taken past.
const Bytes = 4 << 10

// A Field is a string of a struct.
type Field struct {
	Name      string // of the member in JSON
	Index     int
	OmitEmpty bool // there is no member if the text is empty
}

// Fields returns the strings of t, a type of structs, that lie directly in it and
// that a JSON library does nothing to but quote or unquote. Types that have one of
// the methods see to themselves, and have none.
//
// All says that a JSON library sees no other fields.
func Fields(t reflect.Type, methods ...string) (list []Field, all bool) {
	if t.Kind() != reflect.Struct || hasMethod(reflect.PointerTo(t), methods) {
		return nil, false
	}
	all = true
	seen := make(map[string]bool)
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous && !tagged {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		plain := options == "" || options == "omitempty" || options == "omitzero"
		if !f.IsExported() || f.Anonymous || f.Type != reflect.TypeFor[string]() ||
			!plain || name == "-" || strings.ContainsAny(name, `'"\`) || !utf8.ValidString(name) {
			all = false
			continue
		}
		all = all && !seen[name]
		seen[name] = true
		list = append(list, Field{Name: name, Index: i, OmitEmpty: options != ""})
	}
	return list, all
}

func hasMethod(t reflect.Type, methods []string) bool {
	for _, method := range methods {
		if _, has := t.MethodByName(method); has {
			return true
		}
	}
	return false
}
