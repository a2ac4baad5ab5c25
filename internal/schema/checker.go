package schema

import (
	"math"
	"regexp"
)

// A checker checks values against a schema of the keywords that tools mostly
// have, without decoding them: a call with large arguments is checked at the
// speed of passing over them. What it does not know is left to the library of
// schemas.
type checker struct {
	never bool // the schema false

	types       typeSet // 0 for any
	properties  map[string]*property
	required    []string         // all of them properties
	additional  *checker         // of properties that are not named; nil for anything
	items       *checker         // nil for anything
	values      []any            // enum and const; nil for anything
	set         map[any]struct{} // of values
	pattern     *regexp.Regexp
	patternSize int

	minLength, maxLength         int
	minItems, maxItems           int
	minProperties, maxProperties int
	minimum, maximum             bound
}

// A property is what a schema says of a member of an object.
type property struct {
	checker  *checker // nil for what is additional
	required int      // counts the required ones from 1; 0 if it may be absent
}

// maxRequired is how many members a checker can require.
const maxRequired = 512

// A bound is the least or the greatest that a number may be.
type bound struct {
	set, exclusive bool
	value          float64
}

// A typeSet is a set of JSON types.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
)

var typeNames = map[string]typeSet{
	"null": typeNull, "boolean": typeBoolean, "integer": typeInteger, "number": typeNumber,
	"string": typeString, "array": typeArray, "object": typeObject,
}

// ignored are keywords that describe and do not restrict. A format does not, as
// in the library of schemas.
var ignored = map[string]bool{
	"$schema": true, "$comment": true, "title": true, "description": true, "default": true, "examples": true,
	"deprecated": true, "readOnly": true, "writeOnly": true, "format": true,
	"contentEncoding": true, "contentMediaType": true, "x-mcp-header": true,
}

// compile returns the checker of a schema, nil if it says more than a checker
// can check.
func compile(schema any) *checker {
	switch s := schema.(type) {
	case bool:
		return newChecker(!s)
	case map[string]any:
		c := newChecker(false)
		for keyword, value := range s {
			if !ignored[keyword] && !c.keyword(keyword, value) {
				return nil
			}
		}
		if c.require() {
			return c
		}
	}
	return nil
}

func newChecker(never bool) *checker {
	return &checker{never: never, maxLength: math.MaxInt, maxItems: math.MaxInt, maxProperties: math.MaxInt}
}

// keyword takes up one keyword and reports whether it can.
func (c *checker) keyword(name string, value any) bool {
	ok := false
	switch name {
	case "type":
		ok = c.takeTypes(value)
	case "properties":
		ok = c.takeProperties(value)
	case "required":
		c.required, ok = stringsIn(value)
	case "additionalProperties":
		c.additional = compile(value)
		ok = c.additional != nil
	case "items":
		c.items = compile(value)
		ok = c.items != nil
	case "enum":
		values, isArray := value.([]any)
		ok = isArray && c.takeValues(values)
	case "const":
		ok = c.takeValues([]any{value})
	case "not": // only the schema that lets nothing through
		rest, isObject := value.(map[string]any)
		c.never, ok = true, isObject && len(rest) == 0
	case "pattern":
		ok = c.takePattern(value)
	case "minLength":
		ok = count(value, &c.minLength)
	case "maxLength":
		ok = count(value, &c.maxLength)
	case "minItems":
		ok = count(value, &c.minItems)
	case "maxItems":
		ok = count(value, &c.maxItems)
	case "minProperties":
		ok = count(value, &c.minProperties)
	case "maxProperties":
		ok = count(value, &c.maxProperties)
	case "minimum":
		ok = c.minimum.take(value, false)
	case "maximum":
		ok = c.maximum.take(value, false)
	case "exclusiveMinimum":
		ok = c.minimum.take(value, true)
	case "exclusiveMaximum":
		ok = c.maximum.take(value, true)
	}
	return ok
}

func (c *checker) takeTypes(value any) bool {
	names, ok := stringsIn(value)
	if name, single := value.(string); single {
		names, ok = []string{name}, true
	}
	for _, name := range names {
		kind := typeNames[name]
		if kind == 0 {
			return false
		}
		c.types |= kind
	}
	return ok && c.types != 0
}

func (c *checker) takeProperties(value any) bool {
	properties, ok := value.(map[string]any)
	c.properties = make(map[string]*property, len(properties))
	for name, inner := range properties {
		p := &property{checker: compile(inner)}
		if p.checker == nil {
			return false
		}
		c.properties[name] = p
	}
	return ok
}

// require notes which properties are required, when all keywords have been taken
// up, and reports whether they are few enough for an array.
func (c *checker) require() bool {
	names := c.required
	c.required = nil
	for _, name := range names {
		p := c.properties[name]
		if p == nil {
			p = new(property)
			if c.properties == nil {
				c.properties = make(map[string]*property)
			}
			c.properties[name] = p
		}
		if p.required == 0 {
			c.required = append(c.required, name)
			p.required = len(c.required)
		}
	}
	return len(c.required) <= maxRequired
}

// takeValues takes up the values of an enumeration, and reports whether all are
// simple.
func (c *checker) takeValues(values []any) bool {
	if c.values != nil {
		return false // enum and const at once
	}
	for _, value := range values {
		switch value.(type) {
		case map[string]any, []any:
			return false
		}
	}
	c.values, c.set = values, make(map[any]struct{}, len(values))
	for _, value := range values {
		c.set[value] = struct{}{}
	}
	return len(values) > 0
}

// takePattern takes up a pattern. One that is none or too large is refused by the
// library of schemas, and before it.
func (c *checker) takePattern(value any) bool {
	text, ok := value.(string)
	size, err := patternSize(text)
	if !ok || err != nil {
		return false
	}
	c.pattern, err = regexp.Compile(text)
	c.patternSize = size
	return err == nil
}

// take takes up a bound, and reports whether it is the first one of its side.
func (b *bound) take(value any, exclusive bool) bool {
	number, ok := value.(float64)
	if !ok || b.set {
		return false
	}
	*b = bound{true, exclusive, number}
	return true
}

func count(value any, n *int) bool {
	number, ok := value.(float64)
	*n = int(number)
	return ok && number >= 0 && number == math.Trunc(number) && number < math.MaxInt32
}

func stringsIn(value any) ([]string, bool) {
	items, ok := value.([]any)
	list := make([]string, len(items))
	for i, item := range items {
		text, isString := item.(string)
		if !isString {
			return nil, false
		}
		list[i] = text
	}
	return list, ok
}
