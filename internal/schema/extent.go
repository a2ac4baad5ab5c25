package schema

import "fmt"

// A holding is how a keyword holds schemas.
type holding uint8

const (
	holdsOne   holding = 1 << iota
	holdsList          // in an array
	holdsTable         // as the members of an object
)

// holdings are the keywords that hold schemas.
var holdings = map[string]holding{
	"$defs": holdsTable, "definitions": holdsTable, "dependencies": holdsTable, "dependentSchemas": holdsTable,
	"properties": holdsTable, "patternProperties": holdsTable,
	"prefixItems": holdsList, "items": holdsOne | holdsList, "allOf": holdsList, "anyOf": holdsList, "oneOf": holdsList,
	"additionalItems": holdsOne, "contains": holdsOne, "unevaluatedItems": holdsOne,
	"additionalProperties": holdsOne, "propertyNames": holdsOne, "unevaluatedProperties": holdsOne,
	"not": holdsOne, "if": holdsOne, "then": holdsOne, "else": holdsOne, "contentSchema": holdsOne,
}

// An extent is what has been counted of a schema: before anything is made of it,
// because that takes its size times its depth.
type extent struct {
	values, schemas int
}

// count counts v, which holds other values.
func (e *extent) count(v any) {
	e.values++
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			e.count(member)
		}
	case []any:
		for _, item := range v {
			e.count(item)
		}
	}
}

// schema counts a schema that stands in depth others. Limits that are met end it.
func (e *extent) schema(v any, depth int) error {
	e.schemas++
	switch {
	case depth > MaxSchemaDepth:
		return fmt.Errorf("schemas within schemas are over the limit MaxSchemaDepth of %d", MaxSchemaDepth)
	case e.schemas > MaxSubschemas:
		return fmt.Errorf("schemas within it are over the limit MaxSubschemas of %d", MaxSubschemas)
	}
	members, _ := v.(map[string]any)
	if by, ok := numberIn(members["multipleOf"]); ok && len(by.digits) > MaxDivisorDigits {
		return fmt.Errorf("multipleOf of %d digits is over the limit MaxDivisorDigits of %d", len(by.digits), MaxDivisorDigits)
	}
	for keyword, value := range members {
		if err := e.held(holdings[keyword], value, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// held counts the schemas that a keyword holds in a way.
func (e *extent) held(how holding, value any, depth int) error {
	switch value := value.(type) {
	case []any:
		if how&holdsList == 0 {
			return nil
		}
		for _, item := range value {
			if err := e.schema(item, depth); err != nil {
				return err
			}
		}
	case map[string]any:
		if how == holdsTable {
			for _, member := range value {
				if err := e.schema(member, depth); err != nil {
					return err
				}
			}
		} else if how&holdsOne != 0 {
			return e.schema(value, depth)
		}
	case bool:
		if how&holdsOne != 0 {
			return e.schema(value, depth)
		}
	}
	return nil
}
