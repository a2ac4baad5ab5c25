// Package longtext finds the strings of Go structs that may be long and can be
// taken past a JSON library, which passes over a text several times.
package longtext

import (
	"reflect"
	"strings"
)

// Bytes is from how many bytes on a text is taken past.
const Bytes = 4 << 10

// A Field is a string of a struct.
type Field struct {
	Name  string // of the member in JSON
	Index int
}

// Fields returns the strings of t, a type of structs, that lie directly in it and
// that a JSON library does nothing to but quote or unquote. Types that have one of
// the methods see to themselves, and have none.
func Fields(t reflect.Type, methods ...string) []Field {
	if t.Kind() != reflect.Struct || hasMethod(reflect.PointerTo(t), methods) {
		return nil
	}
	var list []Field
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
			list = append(list, Field{Name: name, Index: i})
		}
	}
	return list
}

func hasMethod(t reflect.Type, methods []string) bool {
	for _, method := range methods {
		if _, has := t.MethodByName(method); has {
			return true
		}
	}
	return false
}
