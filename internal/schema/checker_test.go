package schema_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpsplice/mcpsplice/internal/schema"
)

// object is a JSON object in the making.
type object = map[string]any

var memberNames = rapid.SampledFrom([]string{"a", "b", "é", "", "a/b", "A"})

// values generates JSON values that schemas have something to say about.
func values(depth int) *rapid.Generator[any] {
	simple := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.SampledFrom([]any{0, 1, -1, 2.5, json.Number("1.0"), json.Number("1e2"), json.Number("-0"), 1e15, json.Number("12345678901234567890")}),
		rapid.SampledFrom([]any{"", "a", "abc", "äöü", "\u0000", "\U0001F600x", "a\nb", `"\`}),
	}
	if depth == 0 {
		return rapid.OneOf(simple...)
	}
	return rapid.OneOf(append(simple,
		rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return values(depth - 1) }), 0, 4).AsAny(),
		rapid.MapOfN(memberNames, rapid.Deferred(func() *rapid.Generator[any] { return values(depth - 1) }), 0, 4).AsAny(),
	)...)
}

// schemas generates schemas of the keywords that the checker knows.
func schemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
			return rapid.Bool().Draw(t, "all")
		}
		s := object{}
		put := func(keyword string, value func() any) {
			if rapid.IntRange(0, 3).Draw(t, keyword+"?") == 0 {
				s[keyword] = value()
			}
		}
		small := func() any { return rapid.SampledFrom([]any{0, 1, 2, 3, json.Number("2.0")}).Draw(t, "small") }
		number := func() any { return rapid.SampledFrom([]any{-1, 0, 1, 2.5, 1e15}).Draw(t, "number") }
		put("type", func() any {
			kinds := rapid.SampledFrom([]string{"null", "boolean", "integer", "number", "string", "array", "object"})
			if rapid.Bool().Draw(t, "several") {
				return rapid.SliceOfNDistinct(kinds, 1, 3, rapid.ID[string]).Draw(t, "types")
			}
			return kinds.Draw(t, "type")
		})
		for _, keyword := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
			put(keyword, small)
		}
		for _, keyword := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
			put(keyword, number)
		}
		put("multipleOf", func() any { return rapid.SampledFrom([]any{1, 2, 0.5}).Draw(t, "divisor") })
		put("pattern", func() any { return rapid.SampledFrom([]string{"", "a", "^a$", "ö", "."}).Draw(t, "pattern") })
		if rapid.Bool().Draw(t, "const") {
			put("const", func() any { return values(0).Draw(t, "value") })
		} else {
			put("enum", func() any { return rapid.SliceOfN(values(0), 1, 3).Draw(t, "values") })
		}
		put("required", func() any { return rapid.SliceOfN(memberNames, 0, 3).Draw(t, "names") })
		put("title", func() any { return "a title" })
		if depth > 0 {
			inner := func() any { return schemas(depth-1).Draw(t, "inner") }
			put("properties", func() any { return rapid.MapOfN(memberNames, schemas(depth-1), 0, 3).Draw(t, "properties") })
			put("additionalProperties", inner)
			put("items", inner)
		}
		return s
	})
}

func TestCheckerAgreesWithTheLibrary(t *testing.T) {
	checked, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := encode(t, schemas(2).Draw(t, "schema"))
		value := encode(t, values(2).Draw(t, "value"))
		fast, slow, known := schema.CheckBoth(text, value)
		if !known {
			t.Fatalf("the checker does not know %s: %v", text, fast)
		}
		if (fast == nil) != (slow == nil) {
			t.Fatalf("%s against %s: the checker says %v, the library %v", value, text, fast, slow)
		}
		if checked++; fast != nil {
			refused++
		}
	})
	if refused == 0 || refused == checked {
		t.Errorf("of %d values %d do not fit", checked, refused)
	}
}

func encode(t interface{ Fatal(...any) }, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// What the checker does not know it must not pass over: each of these lets one
// value through and not the other.
func TestUnknownKeywordsAreLeftToTheLibrary(t *testing.T) {
	tests := []struct{ schema, fits, not string }{
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `null`, `1`},
		{`{"oneOf":[{"type":"string"},{"minLength":2}]}`, `"a"`, `"ab"`},
		{`{"allOf":[{"minimum":1},{"maximum":2}]}`, `1`, `3`},
		{`{"not":{"type":"string"}}`, `1`, `"a"`},
		{`{"not":true}`, ``, `1`},
		{`{"if":{"type":"string"},"then":{"minLength":1}}`, `"a"`, `""`},
		{`{"multipleOf":2}`, `4`, `3`},
		{`{"uniqueItems":true}`, `[1,2]`, `[1,1.0]`},
		{`{"contains":{"const":1}}`, `[0,1]`, `[0]`},
		{`{"prefixItems":[{"type":"string"}]}`, `["a"]`, `[1]`},
		{`{"patternProperties":{"^x":{"type":"string"}}}`, `{"xa":"a"}`, `{"xa":1}`},
		{`{"propertyNames":{"maxLength":1}}`, `{"a":1}`, `{"ab":1}`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1,"b":1}`, `{"a":1}`},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1,"b":1}`, `{"a":1}`},
		{`{"unevaluatedProperties":false,"properties":{"a":true}}`, `{"a":1}`, `{"b":1}`},
		{`{"enum":[{"a":1},[1]]}`, `{"a":1.0}`, `{"a":2}`},
		{`{"const":[1],"enum":[[1]]}`, `[1]`, `[2]`},
		{`{"enum":[1,2],"const":2}`, `2`, `1`},
		{`{"minimum":1,"exclusiveMinimum":1}`, `2`, `1`},
		{`{"$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s"}}}`, `{"a":"x"}`, `{"a":1}`},
		{`{"$defs":{"s":{"$anchor":"here","type":"string"}},"items":{"$ref":"#here"}}`, `["x"]`, `[1]`},
		{`{"$id":"https://example.com/a","$defs":{"s":{"$id":"b","type":"string"}},"items":{"$ref":"b"}}`, `["x"]`, `[1]`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, `["a"]`, `["a",1]`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"$id":"#here","type":"string"}},"properties":{"a":{"$ref":"#here"}}}`, `{"a":"x"}`, `{"a":1}`},
		{`{"$defs":{"a/b ~":{"type":"string"}},"items":{"$ref":"#/$defs/a~1b%20~0"}}`, `["x"]`, `[1]`},
		{`{"allOf":[{"$ref":"#/items"}],"items":{"prefixItems":[{"type":"string"}]}}`, `["x"]`, `[1]`},
		{`{"properties":{"child":{"$ref":"#"},"n":{"type":"integer"}}}`, `{"child":{"child":{"n":1}}}`, `{"child":{"child":{"n":"1"}}}`},
	}
	for _, test := range tests {
		t.Run(test.schema, func(t *testing.T) {
			if test.fits != "" {
				if err := schema.Check([]byte(test.schema), []byte(test.fits)); err != nil {
					t.Errorf("%s does not fit: %v", test.fits, err)
				}
			}
			if schema.Check([]byte(test.schema), []byte(test.not)) == nil {
				t.Errorf("%s fits", test.not)
			}
		})
	}
}

func TestMismatchesSayWhereAndWhat(t *testing.T) {
	long := strings.Repeat("n", 1000)
	many := make([]int, 150)
	tests := []struct{ schema, value, want string }{
		{`false`, `1`, `the value is not allowed`},
		{`{"type":["string","null"]}`, `1`, `the value must be of type null or string`},
		{`{"properties":{"a/b":{"items":{"type":"string"}}}}`, `{"a/b":["x",1]}`, `/a~1b/1 must be of type string`},
		{`{"properties":{"":{"type":"string"}}}`, `{"":1}`, `/ must be of type string`},
		{`{"additionalProperties":false}`, `{"` + long + `":1}`, `/` + long[:100] + `… is not allowed`},
		{`{"enum":["a",null,1.5,true]}`, `"b"`, `the value must be one of "a", null, 1.5, true`},
		{`{"enum":` + string(encode(t, many)) + `}`, `1`, `the value must be one of ` + strings.Repeat("0, ", 100) + `…`},
		{`{"minimum":2}`, `1`, `the value must not be less than 2`},
		{`{"exclusiveMinimum":2}`, `2`, `the value must be more than 2`},
		{`{"maximum":2}`, `3`, `the value must not be more than 2`},
		{`{"exclusiveMaximum":2}`, `2`, `the value must be less than 2`},
		{`{"maximum":2}`, `1e999`, `the value must not be more than 2`},
		{`{"minLength":2}`, `"ä"`, `the value has 1 characters and must have at least 2`},
		{`{"maxItems":1}`, `[1,2]`, `the value has 2 items and must have at most 1`},
		{`{"minProperties":1}`, `{}`, `the value has 0 members and must have at least 1`},
		{`{"required":["a","b"]}`, `{"a":1}`, `the value lacks the member "b"`},
		{`{"pattern":"^a"}`, `"b"`, `the value does not match the pattern ^a`},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			if err := schema.Check([]byte(test.schema), []byte(test.value)); fmt.Sprint(err) != test.want {
				t.Errorf("%s against %s: %v", test.value, test.schema, err)
			}
		})
	}
}

var inexactNumber = regexp.MustCompile(`[0-9.]{16}|[0-9][eE]`)

func FuzzCheckerAgreesWithTheLibrary(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":1.0}`},
		{`{"type":"array","items":{"enum":["a",1,null]},"maxItems":3}`, `["a",1.0,null]`},
		{`{"pattern":"é","minLength":1}`, `"\u00e9"`},
		{`{"minimum":-0.5,"exclusiveMaximum":1e3}`, `-5e-1`},
		{`{"additionalProperties":{"not":{}}}`, `{"\u0061":1}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, text, value []byte) {
		// Where the two readers of JSON differ the comparison says nothing.
		var decoded any
		if json.Unmarshal(value, &decoded) != nil || !json.Valid(text) || strings.Contains(string(value), `\ud`) {
			return
		}
		value = encode(t, decoded)
		// Where numbers are not exact as float64 the checker is right, not the library.
		if inexactNumber.Match(text) || inexactNumber.Match(value) || strings.Contains(string(text), "multipleOf") {
			return
		}
		fast, slow, known := schema.CheckBoth(text, value)
		if known && (fast == nil) != (slow == nil) {
			t.Errorf("%s against %s: the checker says %v, the library %v", value, text, fast, slow)
		}
	})
}
