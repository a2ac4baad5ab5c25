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
	// values it may hold, MaxSubschemas how many of these may be schemas, and
	// MaxSchemaDepth in how many others one of them may stand.
	MaxSchemaBytes = 1 << 20
	MaxSchemaNodes = 20_000
	MaxSubschemas  = 10_000
	MaxSchemaDepth = 64
	// MaxSchemaReferences is how many references a schema may hold. A dynamic
	// one counts for each schema that it may lead to.
	MaxSchemaReferences = 10_000
	// MaxValidationSteps is how many steps checking one value may take. Each time
	// that a part of the schema is applied to a part of the value is one, with one
	// more for each 64 bytes of that and for each name or value that the part
	// lists. Comparing the items of an array with each other takes the square of
	// their number unless they are simple, and matching a pattern one step for 128
	// bytes times the pattern's size.
	MaxValidationSteps = 1_000_000
	// MaxCheckedValues is how many JSON values may be checked at once where they
	// must be decoded for it: with a schema of more than the usual keywords.
	MaxCheckedValues = 250_000
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
	if m := s.fast.checkObject(object, newBudget()); m != nil {
		return m
	}
	return nil
}

// check returns why raw, valid JSON, is not as the schema has it.
func (s *schema) check(raw []byte) error {
	if s.fast != nil {
		if m := s.fast.check(raw, newBudget()); m != nil {
			return m
		}
		return nil
	}
	if n := mostValues(raw); n > MaxCheckedValues {
		return fmt.Errorf("about %d JSON values are over the limit MaxCheckedValues of %d", n, MaxCheckedValues)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return plainly(err)
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
