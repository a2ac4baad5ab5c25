package server

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of schemas and of what is checked against them, so that no arguments
// take a processor for long.
const (
	// MaxSchemaBytes is how long a schema may be, MaxSchemaNodes how many JSON
	// values it may hold, and MaxSchemaDepth how deep these may be nested.
	MaxSchemaBytes = 1 << 20
	MaxSchemaNodes = 20_000
	MaxSchemaDepth = 128
	// MaxValidationSteps is how many steps checking one value may take: each time
	// that a part of the schema is applied to a part of the value is one, and
	// one more for each 256 bytes of that; comparing the items of an array with
	// each other takes the square of their number unless they are simple.
	MaxValidationSteps = 5_000_000
)

// A schema checks values. It is safe for concurrent use.
type schema struct {
	fast *checker // nil if the schema says more than that can check
	slow *jsonschema.Resolved
	root *part // of slow
}

// dialects are the values of $schema that can be checked.
var dialects = []string{
	"", "https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#",
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
	nodes, depth := measure(tree)
	if nodes > MaxSchemaNodes {
		return nil, fmt.Errorf("schema of %d values is over the limit MaxSchemaNodes of %d", nodes, MaxSchemaNodes)
	}
	if depth > MaxSchemaDepth {
		return nil, fmt.Errorf("schema of %d levels is over the limit MaxSchemaDepth of %d", depth, MaxSchemaDepth)
	}
	if object, ok := tree.(map[string]any); ok {
		if dialect, told := object["$schema"].(string); told && !slices.Contains(dialects, dialect) {
			return nil, fmt.Errorf("schema: its dialect %.100q is neither 2020-12 nor draft-07", dialect)
		}
	}
	if fast := compile(tree); fast != nil {
		return &schema{fast: fast}, nil
	}
	return newSlow(raw)
}

// newSlow returns a schema for what a checker does not know.
func newSlow(raw mcp.JSON) (*schema, error) {
	var parsed jsonschema.Schema
	if err := stdjson.Unmarshal(raw, &parsed); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	graph, err := newGraph(&parsed)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	slow, err := parsed.Resolve(&jsonschema.ResolveOptions{}) // without a loader nothing is fetched
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &schema{slow: slow, root: graph.parts[&parsed]}, nil
}

// maxShownReason is how much is told of why a value does not fit, in characters:
// the library of schemas shows the whole value.
const maxShownReason = 1000

// checkObject is check for an object that may have an index.
func (s *schema) checkObject(object *jsonrpc.Value) error {
	if s.fast == nil {
		return s.check(object.Raw())
	}
	if m := s.fast.checkObject(object); m != nil {
		return m
	}
	return nil
}

// check returns why raw, valid JSON, is not as the schema has it.
func (s *schema) check(raw []byte) error {
	if s.fast != nil {
		if m := s.fast.check(raw); m != nil {
			return m
		}
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return plainly(err)
	}
	b := budget{left: MaxValidationSteps}
	if !b.spend(weigh(v), newVisits(map[*part]int{s.root: 1})) {
		return fmt.Errorf("checking it would take more steps than the limit MaxValidationSteps of %d", MaxValidationSteps)
	}
	if err := s.slow.Validate(v); err != nil {
		return errors.New(shortened(err.Error(), maxShownReason))
	}
	return nil
}

// measure returns how many JSON values v is made of, and how deep they are nested.
func measure(v any) (nodes, depth int) {
	inner := func(v any) {
		n, d := measure(v)
		nodes, depth = nodes+n, max(depth, d)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			inner(member)
		}
	case []any:
		for _, item := range v {
			inner(item)
		}
	}
	return nodes + 1, depth + 1
}
