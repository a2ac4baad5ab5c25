package server

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// A checker checks values against a schema of the keywords that tools mostly
// have, without decoding them: a call with large arguments is checked at the
// speed of passing over them. What it does not know is left to the library of
// schemas.
type checker struct {
	never bool // the schema false

	types      typeSet // 0 for any
	required   []string
	properties map[string]*checker
	additional *checker // of properties that are not named; nil for anything
	items      *checker // nil for anything
	values     []any    // enum and const; nil for anything
	pattern    *regexp.Regexp

	minLength, maxLength         int
	minItems, maxItems           int
	minProperties, maxProperties int
	minimum, maximum             bound
}

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
		return c
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
		text, isString := value.(string)
		pattern, err := regexp.Compile(text)
		c.pattern, ok = pattern, isString && err == nil
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
	c.properties = make(map[string]*checker, len(properties))
	for name, property := range properties {
		if c.properties[name] = compile(property); c.properties[name] == nil {
			return false
		}
	}
	return ok
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
	c.values = values
	return len(values) > 0
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

// A place says where in the value being checked a value is.
type place struct {
	in    *place // nil at the top
	name  string // of a member
	index int    // of an element, if name is empty
}

// String returns the place like "/items/3/name", empty for the whole.
func (p *place) String() string {
	if p == nil {
		return ""
	}
	step := p.name
	if step == "" {
		step = strconv.Itoa(p.index)
	}
	return p.in.String() + "/" + step
}

// wrong returns the error of a value. What it says of the value is for a model
// to do better.
func (p *place) wrong(format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if p == nil {
		return fmt.Errorf("the value %s", reason)
	}
	return fmt.Errorf("%s %s", p, reason)
}

// check returns why value, valid JSON, is not as the schema has it.
func (c *checker) check(value *jsonrpc.Value, at *place) error {
	if raw := value.Raw(); raw[0] != '{' {
		return c.checkRaw(raw, at)
	}
	if err := c.checkKind(value.Raw(), at); err != nil {
		return err
	}
	return c.object(value, at)
}

// checkRaw is check for a value that has no index.
func (c *checker) checkRaw(raw []byte, at *place) error {
	if err := c.checkKind(raw, at); err != nil {
		return err
	}
	switch raw[0] {
	case '{':
		object := jsonrpc.Trusted(raw)
		return c.object(&object, at)
	case '[':
		return c.array(raw, at)
	case '"':
		return c.text(raw, at)
	case 't', 'f', 'n':
		return nil
	}
	return c.number(raw, at)
}

// checkKind checks what is asked of values of all types.
func (c *checker) checkKind(raw []byte, at *place) error {
	if c.never {
		return at.wrong("is not allowed")
	}
	if c.types != 0 && c.types&kindOf(raw) == 0 {
		return at.wrong("must be of type %s", c.types)
	}
	if c.values != nil && !c.among(raw) {
		return at.wrong("must be one of %s", shown(c.values))
	}
	return nil
}

// kindOf returns the types that a value is of.
func kindOf(raw []byte) typeSet {
	switch raw[0] {
	case '{':
		return typeObject
	case '[':
		return typeArray
	case '"':
		return typeString
	case 't', 'f':
		return typeBoolean
	case 'n':
		return typeNull
	}
	if isInteger(string(raw)) {
		return typeInteger | typeNumber
	}
	return typeNumber
}

// isInteger reports whether a number has no fraction, however it is written.
func isInteger(literal string) bool {
	if !strings.ContainsAny(literal, ".eE") {
		return true
	}
	number, err := strconv.ParseFloat(literal, 64)
	return err == nil && number == math.Trunc(number)
}

// String lists the types.
func (t typeSet) String() string {
	var names []string
	for _, name := range []string{"null", "boolean", "integer", "number", "string", "array", "object"} {
		if t&typeNames[name] != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

func (c *checker) object(value *jsonrpc.Value, at *place) error {
	object := value.Indexed()
	for _, name := range c.required {
		if _, there := object.Lookup(name); !there {
			return at.wrong("lacks the member %q", name)
		}
	}
	if n := object.Len(); n < c.minProperties || n > c.maxProperties {
		return at.wrong("has %d members", n)
	}
	if c.properties == nil && c.additional == nil {
		return nil
	}
	for name, value := range object.Members() {
		inner := c.additional
		if property, named := c.properties[name]; named {
			inner = property
		}
		if inner == nil {
			continue
		}
		if err := inner.checkRaw(value, &place{in: at, name: name}); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) array(raw []byte, at *place) error {
	if c.items == nil && c.minItems == 0 && c.maxItems == math.MaxInt {
		return nil
	}
	items := jsonrpc.Elements(raw)
	if n := len(items); n < c.minItems || n > c.maxItems {
		return at.wrong("has %d items", n)
	}
	if c.items == nil {
		return nil
	}
	inner := place{in: at}
	for i, item := range items {
		inner.index = i
		if err := c.items.checkRaw(item, &inner); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) text(raw []byte, at *place) error {
	if c.pattern == nil && c.minLength == 0 && c.maxLength == math.MaxInt {
		return nil
	}
	text, _ := jsonrpc.Unquote(raw)
	if n := utf8.RuneCountInString(text); n < c.minLength || n > c.maxLength {
		return at.wrong("has %d characters", n)
	}
	if c.pattern != nil && !c.pattern.MatchString(text) {
		return at.wrong("does not match the pattern %s", c.pattern)
	}
	return nil
}

func (c *checker) number(raw []byte, at *place) error {
	if !c.minimum.set && !c.maximum.set {
		return nil
	}
	number, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return at.wrong("is out of range")
	}
	low, high := c.minimum, c.maximum
	if low.set && (number < low.value || low.exclusive && number == low.value) {
		return at.wrong("must not be less than %v", low.value)
	}
	if high.set && (number > high.value || high.exclusive && number == high.value) {
		return at.wrong("must not be more than %v", high.value)
	}
	return nil
}

// among reports whether a value is one of the enumeration's.
func (c *checker) among(raw []byte) bool {
	for _, value := range c.values {
		switch value := value.(type) {
		case nil:
			if string(raw) == "null" {
				return true
			}
		case bool:
			if string(raw) == strconv.FormatBool(value) {
				return true
			}
		case string:
			if text, ok := jsonrpc.Unquote(raw); ok && text == value {
				return true
			}
		case float64:
			if number, err := strconv.ParseFloat(string(raw), 64); err == nil && number == value {
				return true
			}
		}
	}
	return false
}

func shown(values []any) string {
	var b strings.Builder
	for i, value := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		if text, ok := value.(string); ok {
			b.WriteString(strconv.Quote(text))
		} else {
			fmt.Fprint(&b, value)
		}
	}
	return b.String()
}
