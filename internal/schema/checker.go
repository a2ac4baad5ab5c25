package schema

import (
	stdjson "encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
)

// A checker checks values against a schema of the keywords that tools mostly
// have, without decoding them: a call with large arguments is checked at the
// speed of passing over them. What it does not know is left to the library of
// schemas.
type checker struct {
	never bool // the schema false

	types       typeSet // 0 for any
	properties  map[string]*property
	required    []string              // all of them properties
	additional  *checker              // of properties that are not named; nil for anything
	items       *checker              // nil for anything
	values      []any                 // enum and const; nil for anything
	set         map[any]struct{}      // of values
	inexact     map[float64][]decimal // of values that are not in set, by what they are read as, in order
	pattern     *regexp.Regexp
	patternSize int

	minLength, maxLength         int
	minItems, maxItems           int
	minProperties, maxProperties int

	bounds     uint8     // which of limits there are, a bit each
	limits     *[4]bound // by side
	multipleOf *divisor  // nil for anything
}

// The sides of a number.
const (
	atLeast = iota
	moreThan
	atMost
	lessThan
)

// A property is what a schema says of a member of an object.
type property struct {
	checker  *checker // nil for what is additional
	required int      // counts the required ones from 1; 0 if it may be absent
}

// maxRequired is how many members a checker can require.
const maxRequired = 512

// A bound is what a number may not be beyond.
type bound struct {
	value float64
	exact *decimal // nil if value is
	shown stdjson.Number
}

func (b *bound) text() string {
	if b.exact == nil {
		return fmt.Sprint(b.value)
	}
	return shortened(string(b.shown), maxShownName)
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
		ok = c.takeBound(value, atLeast)
	case "maximum":
		ok = c.takeBound(value, atMost)
	case "exclusiveMinimum":
		ok = c.takeBound(value, moreThan)
	case "exclusiveMaximum":
		ok = c.takeBound(value, lessThan)
	case "multipleOf":
		ok = c.takeDivisor(value)
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
		if literal, ok := value.(stdjson.Number); ok {
			c.takeInexact(literal)
			continue
		}
		c.set[value] = struct{}{}
	}
	for _, alike := range c.inexact {
		slices.SortFunc(alike, decimal.compare)
	}
	return len(values) > 0
}

// takeInexact takes up one value of an enumeration. One that is beyond all that a float64
// can be has not come here.
func (c *checker) takeInexact(literal stdjson.Number) {
	if c.inexact == nil {
		c.inexact = make(map[float64][]decimal)
	}
	read, _ := literal.Float64()
	c.inexact[read] = append(c.inexact[read], newDecimal([]byte(literal)))
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

// takeBound takes up the bound of a side.
func (c *checker) takeBound(value any, side int) bool {
	b := bound{}
	switch value := value.(type) {
	case float64:
		b.value = value
	case stdjson.Number:
		var err error
		if b.value, err = value.Float64(); err != nil {
			return false
		}
		b.exact, b.shown = inexact([]byte(value)), value
	default:
		return false
	}
	if c.limits == nil {
		c.limits = new([4]bound)
	}
	c.bounds |= 1 << side
	c.limits[side] = b
	return true
}

// takeDivisor takes up what numbers are multiples of. One that none is is left to the
// library of schemas.
func (c *checker) takeDivisor(value any) bool {
	by, ok := numberIn(value)
	if ok {
		c.multipleOf = newDivisor(by, shortened(fmt.Sprint(value), maxShownName))
	}
	return c.multipleOf != nil
}

// numberIn returns the number that a value of a schema is.
func numberIn(value any) (d decimal, ok bool) {
	switch value := value.(type) {
	case float64:
		return decimalOf(value), true
	case stdjson.Number:
		return newDecimal([]byte(value)), true
	}
	return decimal{}, false
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
