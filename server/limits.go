package server

import "github.com/mcpsplice/mcpsplice/internal/schema"

// Bounds of schemas and of what is checked against them, so that no arguments
// take a processor for long.
const (
	// MaxSchemaBytes is how long a schema may be, MaxSchemaNodes how many JSON
	// values it may hold, MaxSubschemas how many of these may be schemas, and
	// MaxSchemaDepth in how many others one of them may stand.
	MaxSchemaBytes = schema.MaxSchemaBytes
	MaxSchemaNodes = schema.MaxSchemaNodes
	MaxSubschemas  = schema.MaxSubschemas
	MaxSchemaDepth = schema.MaxSchemaDepth
	// MaxSchemaReferences is how many references a schema may hold. A dynamic
	// one counts for each schema that it may lead to.
	MaxSchemaReferences = schema.MaxSchemaReferences
	// MaxValidationSteps is how many steps checking one value may take. Each time
	// that a part of the schema is applied to a part of the value is one, with one
	// more for each 64 bytes of that and for each name or value that the part
	// lists. Comparing the items of an array with each other takes the square of
	// their number unless they are simple, and matching a pattern one step for 128
	// bytes times the pattern's size.
	MaxValidationSteps = schema.MaxValidationSteps
	// MaxCheckedValues is how many JSON values may be checked at once where they
	// must be decoded for it: with a schema of more than the usual keywords.
	MaxCheckedValues = schema.MaxCheckedValues
	// MaxPatternSize is how large a pattern of a schema may be, in about as many
	// instructions as package regexp makes of it: a character, a class of them or an
	// operator is one, as often as it is repeated.
	MaxPatternSize = schema.MaxPatternSize
)
