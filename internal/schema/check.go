package schema

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A mismatch is why a value is not as a schema has it. What it says of the value
// is for a model to do better.
type mismatch struct {
	reason string
	steps  []string // to where in the value it is, the last one first
}

func wrong(format string, args ...any) *mismatch {
	return &mismatch{reason: fmt.Sprintf(format, args...)}
}

// in returns the mismatch of what a step leads to.
func (m *mismatch) in(step string) *mismatch {
	m.steps = append(m.steps, step)
	return m
}

// Error says where the mismatch is, as a JSON Pointer, and what it is.
func (m *mismatch) Error() string {
	if len(m.steps) == 0 {
		return "the value " + m.reason
	}
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, step := range slices.Backward(m.steps) {
		b.WriteString("/" + escape.Replace(shortened(step, maxShownName)))
	}
	return b.String() + " " + m.reason
}

// check returns why raw, a valid JSON value, is not as the schema has it; nil if
// it is. Only patterns and divisors take from the budget: all else takes no longer than
// passing over the value.
func (c *checker) check(raw []byte, b *budget) *mismatch {
	if m := c.checkKind(raw); m != nil {
		return m
	}
	switch raw[0] {
	case '{':
		object := jsonrpc.Trusted(raw)
		return c.object(&object, b)
	case '[':
		return c.array(raw, b)
	case '"':
		return c.text(raw, b)
	case 't', 'f', 'n':
		return nil
	}
	return c.number(raw, b)
}

// checkObject is check for an object that may have an index.
func (c *checker) checkObject(object *jsonrpc.Value, b *budget) *mismatch {
	if m := c.checkKind(object.Raw()); m != nil {
		return m
	}
	return c.object(object, b)
}

// checkKind checks what is asked of values of all types.
func (c *checker) checkKind(raw []byte) *mismatch {
	if c.never {
		return wrong("is not allowed")
	}
	if c.types != 0 && c.types&kindOf(raw) == 0 {
		return wrong("must be of type %s", c.types)
	}
	if c.values != nil && !c.among(raw) {
		return wrong("must be one of %s", shown(c.values))
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
	if isInteger(raw) {
		return typeInteger | typeNumber
	}
	return typeNumber
}

// isInteger reports whether a number has no fraction, however it is written.
func isInteger(literal []byte) bool {
	if bytes.IndexByte(literal, 'e') >= 0 || bytes.IndexByte(literal, 'E') >= 0 {
		return newDecimal(literal).isInteger()
	}
	point := bytes.IndexByte(literal, '.')
	return point < 0 || len(bytes.TrimRight(literal[point+1:], "0")) == 0
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

func (c *checker) object(object *jsonrpc.Value, b *budget) *mismatch {
	if c.properties == nil && c.additional == nil && c.minProperties == 0 && c.maxProperties == math.MaxInt {
		return nil
	}
	var seen [maxRequired]bool
	found, n := 0, 0
	for name, value := range object.Members() {
		n++
		inner := c.additional
		if p := c.properties[name]; p != nil {
			if i := p.required; i > 0 && !seen[i-1] {
				seen[i-1] = true
				found++
			}
			if p.checker != nil {
				inner = p.checker
			}
		}
		if inner == nil {
			continue
		}
		if m := inner.check(value, b); m != nil {
			return m.in(name)
		}
	}
	if found < len(c.required) {
		return wrong("lacks the member %q", c.required[slices.Index(seen[:], false)])
	}
	return counted(n, "members", c.minProperties, c.maxProperties)
}

// counted returns the mismatch of a value that holds too few or too many of
// something, nil if it does not.
func counted(n int, what string, least, most int) *mismatch {
	switch {
	case n < least:
		return wrong("has %d %s and must have at least %d", n, what, least)
	case n > most:
		return wrong("has %d %s and must have at most %d", n, what, most)
	}
	return nil
}

func (c *checker) array(raw []byte, b *budget) *mismatch {
	if c.items == nil && c.minItems == 0 && c.maxItems == math.MaxInt {
		return nil
	}
	n := 0
	for item := range jsonrpc.Items(raw) {
		if c.items != nil {
			if m := c.items.check(item, b); m != nil {
				return m.in(strconv.Itoa(n))
			}
		}
		n++
	}
	return counted(n, "items", c.minItems, c.maxItems)
}

func (c *checker) text(raw []byte, b *budget) *mismatch {
	if c.pattern == nil && c.minLength == 0 && c.maxLength == math.MaxInt {
		return nil
	}
	text, _ := jsonrpc.Unquote(raw)
	if m := counted(utf8.RuneCountInString(text), "characters", c.minLength, c.maxLength); m != nil {
		return m
	}
	if c.pattern == nil {
		return nil
	}
	if !b.take(c.patternSize * len(text) / matchesPerStep) {
		return &mismatch{reason: tooManySteps}
	}
	if !c.pattern.MatchString(text) {
		return wrong("does not match the pattern %s", c.pattern)
	}
	return nil
}

func (c *checker) number(raw []byte, b *budget) *mismatch {
	if c.bounds != 0 {
		if m := c.inBounds(raw); m != nil {
			return m
		}
	}
	if c.multipleOf == nil {
		return nil
	}
	exact := newDecimal(raw)
	if !b.take(c.multipleOf.steps(exact)) {
		return &mismatch{reason: tooManySteps}
	}
	if !c.multipleOf.divides(exact) {
		return wrong("must be a multiple of %s", c.multipleOf.text)
	}
	return nil
}

func (c *checker) inBounds(raw []byte) *mismatch {
	number, _ := strconv.ParseFloat(string(raw), 64) // beyond all numbers it is infinite
	for side := range c.limits {
		if c.bounds&(1<<side) == 0 {
			continue
		}
		bound := &c.limits[side]
		order := bound.order(number, raw)
		switch side {
		case atLeast:
			if order < 0 {
				return wrong("must not be less than %s", bound.text())
			}
		case moreThan:
			if order <= 0 {
				return wrong("must be more than %s", bound.text())
			}
		case atMost:
			if order > 0 {
				return wrong("must not be more than %s", bound.text())
			}
		case lessThan:
			if order >= 0 {
				return wrong("must be less than %s", bound.text())
			}
		}
	}
	return nil
}

// order returns less than 0 if a number is less than the bound, more if it is more. The
// number as it is written decides only between numbers that a float64 does not.
func (b *bound) order(number float64, raw []byte) int {
	switch {
	case number < b.value:
		return -1
	case number > b.value:
		return 1
	case b.exact == nil && isShort(raw):
		return 0
	case b.exact == nil:
		return newDecimal(raw).compare(decimalOf(b.value))
	}
	return newDecimal(raw).compare(*b.exact)
}

// among reports whether a value is one of the enumeration's.
func (c *checker) among(raw []byte) bool {
	var value any
	switch raw[0] {
	case '{', '[':
		return false
	case 'n':
	case 't', 'f':
		value = raw[0] == 't'
	case '"':
		value, _ = jsonrpc.Unquote(raw)
	default:
		number, _ := strconv.ParseFloat(string(raw), 64)
		if exact := inexact(raw); exact != nil {
			_, there := slices.BinarySearchFunc(c.inexact[number], *exact, decimal.compare)
			return there
		}
		value = number
	}
	_, there := c.set[value]
	return there
}

// maxShownValues is how many values of an enumeration an error lists.
const maxShownValues = 100

func shown(values []any) string {
	var b []byte
	for i, value := range values {
		if i > 0 {
			b = append(b, ", "...)
		}
		if i == maxShownValues {
			return string(append(b, "…"...))
		}
		text, err := mcp.NewJSON(value)
		if err != nil {
			text = mcp.JSON(fmt.Sprint(value))
		}
		b = append(b, text...)
	}
	return string(b)
}
