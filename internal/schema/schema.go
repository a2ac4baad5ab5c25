package schema

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of schemas and of what is checked against them, so that no value takes a
// processor for long. Package server documents them.
const (
	MaxSchemaBytes      = 1 << 20
	MaxSchemaNodes      = 20_000
	MaxSubschemas       = 10_000
	MaxSchemaDepth      = 64
	MaxSchemaReferences = 10_000
	MaxValidationSteps  = 1_000_000
	MaxCheckedValues    = 250_000
)

// A Schema checks values. It is safe for concurrent use.
type Schema struct {
	fast *checker // nil if the schema says more than that can check
	slow *jsonschema.Resolved
	root *part // of slow
}

// dialects are the values of $schema that can be checked.
var dialects = []string{
	"", "https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#",
}

// New returns the schema that raw is. References are followed inside it
// only; nothing is ever fetched.
func New(raw mcp.JSON) (*Schema, error) {
	if len(raw) > MaxSchemaBytes {
		return nil, fmt.Errorf("schema of %d bytes is over the limit MaxSchemaBytes of %d", len(raw), MaxSchemaBytes)
	}
	tree, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var size extent
	if size.count(tree); size.values > MaxSchemaNodes {
		return nil, fmt.Errorf("schema of %d values is over the limit MaxSchemaNodes of %d", size.values, MaxSchemaNodes)
	}
	if err := size.schema(tree, 0); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if object, ok := tree.(map[string]any); ok {
		if dialect, told := object["$schema"].(string); told && !slices.Contains(dialects, dialect) {
			return nil, fmt.Errorf("schema: its dialect %.100q is neither 2020-12 nor draft-07", dialect)
		}
	}
	if fast := compile(tree); fast != nil {
		return &Schema{fast: fast}, nil
	}
	return newSlow(raw, tree)
}

// newSlow returns a schema for what a checker does not know. Tree is what raw was decoded
// as.
func newSlow(raw mcp.JSON, tree any) (*Schema, error) {
	var parsed jsonschema.Schema
	if err := stdjson.Unmarshal(raw, &parsed); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if mayHoldLong(raw) {
		giveExact(&parsed, forLibrary(tree))
	}
	graph, err := newGraph(&parsed)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	slow, err := parsed.Resolve(&jsonschema.ResolveOptions{}) // without a loader nothing is fetched
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &Schema{slow: slow, root: graph.parts[&parsed]}, nil
}

// CheckObject is Check for an object that may have an index.
func (s *Schema) CheckObject(object *jsonrpc.Value) error {
	if s.fast == nil {
		return s.Check(object.Raw())
	}
	if m := s.fast.checkObject(object, newBudget()); m != nil {
		return m
	}
	return nil
}

// Check returns why raw, valid JSON, is not as the schema has it.
func (s *Schema) Check(raw []byte) error {
	if s.fast != nil {
		if m := s.fast.check(raw, newBudget()); m != nil {
			return m
		}
		return nil
	}
	if n := mostValues(raw); n > MaxCheckedValues {
		return fmt.Errorf("about %d JSON values are over the limit MaxCheckedValues of %d", n, MaxCheckedValues)
	}
	v, err := decode(raw)
	if err != nil {
		return Plainly(err)
	}
	if mayHoldLong(raw) {
		v = forLibrary(v)
	}
	if !newBudget().spend(weigh(v), newVisits(map[*part]int{s.root: 1})) {
		return errors.New("checking it " + tooManySteps)
	}
	if err := s.slow.Validate(v); err != nil {
		return errors.New(shortened(err.Error(), maxShownReason))
	}
	return nil
}

var tooManySteps = fmt.Sprintf("would take more steps than the limit MaxValidationSteps of %d", MaxValidationSteps)

// mostValues returns how many JSON values raw may be made of: names of members
// count, too. It is found out before any of them is made.
func mostValues(raw []byte) int {
	n := 1
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '[', '{', ',', ':':
			n++
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}
