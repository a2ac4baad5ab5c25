package server

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of schemas and of what is checked against them, so that no arguments
// take a processor for long.
const (
	// MaxSchemaBytes is how long a schema may be, and MaxSchemaNodes how many
	// JSON values it may hold.
	MaxSchemaBytes = 1 << 20
	MaxSchemaNodes = 20_000
	// MaxValidationSteps is how many steps checking one value may take: the
	// values that it holds times those of the schema, and the square of the
	// longest array where items must be unique.
	MaxValidationSteps = 50_000_000
)

// A schema checks values. It is safe for concurrent use.
type schema struct {
	raw  mcp.JSON
	fast *checker // nil if the schema says more than that can check
	slow *jsonschema.Resolved

	nodes  int
	unique bool // some items must be unique
}

// newSchema returns the schema that raw is. References are followed inside it
// only; nothing is ever fetched.
func newSchema(raw mcp.JSON) (*schema, error) {
	if len(raw) > MaxSchemaBytes {
		return nil, fmt.Errorf("schema of %d bytes is over the limit MaxSchemaBytes of %d", len(raw), MaxSchemaBytes)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s := &schema{raw: raw, nodes: countValues(tree), unique: mentions(tree, "uniqueItems")}
	if s.nodes > MaxSchemaNodes {
		return nil, fmt.Errorf("schema of %d values is over the limit MaxSchemaNodes of %d", s.nodes, MaxSchemaNodes)
	}
	if s.fast = compile(tree); s.fast != nil {
		return s, nil
	}
	var parsed jsonschema.Schema
	if err := stdjson.Unmarshal(raw, &parsed); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var err error
	s.slow, err = parsed.Resolve(&jsonschema.ResolveOptions{}) // without a loader nothing is fetched
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// check returns why raw, valid JSON, is not as the schema has it.
func (s *schema) check(raw []byte) error {
	value := jsonrpc.Trusted(raw)
	return s.checkValue(&value)
}

// checkValue is check for a value that may have an index.
func (s *schema) checkValue(value *jsonrpc.Value) error {
	if s.fast != nil {
		return s.fast.check(value, nil)
	}
	var v any
	if err := json.Unmarshal(value.Raw(), &v); err != nil {
		return err
	}
	steps := countValues(v) * s.nodes
	if s.unique {
		longest := longestArray(v)
		steps = max(steps, longest*longest)
	}
	if steps > MaxValidationSteps {
		return fmt.Errorf("checking it would take %d steps, over the limit MaxValidationSteps of %d", steps, MaxValidationSteps)
	}
	return s.slow.Validate(v)
}

// countValues returns how many JSON values v is made of.
func countValues(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			n += countValues(member)
		}
	case []any:
		for _, item := range v {
			n += countValues(item)
		}
	}
	return n
}

func longestArray(v any) int {
	longest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			longest = max(longest, longestArray(member))
		}
	case []any:
		longest = len(v)
		for _, item := range v {
			longest = max(longest, longestArray(item))
		}
	}
	return longest
}

// mentions reports whether v holds an object with a member of that name.
func mentions(v any, name string) bool {
	switch v := v.(type) {
	case map[string]any:
		if _, there := v[name]; there {
			return true
		}
		for _, member := range v {
			if mentions(member, name) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if mentions(item, name) {
				return true
			}
		}
	}
	return false
}

// schemasOfTypes are the schemas of types that encode in a way of their own.
var schemasOfTypes = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[[]byte]():     {Type: "string", ContentEncoding: "base64"},
	reflect.TypeFor[mcp.JSON]():   {},
	reflect.TypeFor[mcp.Object](): {Type: "object"},
}

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
	inferred, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: schemasOfTypes})
	if err != nil {
		return nil, err
	}
	return stdjson.Marshal(inferred)
}

// isObjectSchema reports whether a schema is for objects only, as the input of a
// tool must be.
func isObjectSchema(raw mcp.JSON) bool {
	var head struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(raw, &head) == nil && head.Type == "object"
}

// defaultsOf returns an object of the defaults that the properties of a schema
// have, nil if there are none.
func defaultsOf(raw mcp.JSON) mcp.JSON {
	var s struct {
		Properties map[string]mcp.JSON `json:"properties"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	defaults := make(mcp.Object)
	for name, property := range s.Properties {
		var p struct {
			Default mcp.JSON `json:"default"`
		}
		if json.Unmarshal(property, &p) == nil && p.Default != nil {
			defaults[name] = p.Default
		}
	}
	if len(defaults) == 0 {
		return nil
	}
	encoded, err := mcp.NewJSON(defaults)
	if err != nil {
		return nil
	}
	return encoded
}

var errNotObject = errors.New("its type must be object")
