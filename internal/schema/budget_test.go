package schema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/schema"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// TestCheckingIsBounded: what makes the library of schemas work for long is
// refused before it begins.
func TestCheckingIsBounded_TJ2_TK1_TK4_B164_R34_R35(t *testing.T) {
	const steps, values = "limit MaxValidationSteps", "limit MaxCheckedValues"
	steep := make([]string, 40)
	for i := range steep {
		steep[i] = fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	doubling := `"$defs":{"d0":{"type":"string"},` + strings.Join(steep, ",")
	numbers := func(n int) string { return `[` + strings.Repeat("1,", n-1) + `1]` }
	objects := func(n int) string { return `[` + strings.Repeat("{},", n-1) + `{}]` }
	text := func(n int) string { return `"` + strings.Repeat("ab", n/2) + `"` }
	tests := []struct{ name, schema, value, want string }{
		{"as many values as may be", `{"anyOf":[{"type":"array"}]}`, numbers(schema.MaxCheckedValues - 1), ""},
		{"one more", `{"anyOf":[{"type":"array"}]}`, numbers(schema.MaxCheckedValues), values},
		{"a bomb of elements", `{"anyOf":[{"type":"array"}]}`, numbers(2 << 20), values},
		{"a bomb of objects", `{"anyOf":[{"type":"array"}]}`, objects(1 << 20), values},
		{"a bomb in a text", `{"anyOf":[{"type":"string"}]}`, `"` + strings.Repeat(`\"[{:,`, 100_000) + `"`, ""},
		{"a bomb of the usual keywords", `{"items":{"type":"integer"}}`, numbers(1 << 19), ""},
		{"a long enumeration of items", `{"items":{"enum":[` + strings.Repeat(`3,`, 19_000) + `1]}}`, numbers(1 << 18), ""},
		{"the same for the library", `{"anyOf":[{"items":{"enum":[` + strings.Repeat(`3,`, 5000) + `1]}}]}`, numbers(1000), steps},
		{"many properties", `{"anyOf":[{"items":{"properties":{` + repeated(5000, `"p%d":{}`, ",") + `}}}]}`, objects(1000), steps},
		{"many required", `{"anyOf":[{"items":{"required":[` + repeated(5000, `"p%d"`, ",") + `]}}]}`, objects(1000), steps},
		{"many dependencies", `{"items":{"dependentRequired":{` + repeated(2000, `"p%d":["a","b"]`, ",") + `}}}`, objects(1000), steps},
		{"names by references that double", `{` + doubling + `},"propertyNames":{"$ref":"#/$defs/d40"}}`, `{"a":1}`, steps},
		{"names that are many", `{` + doubling + `},"propertyNames":{"$ref":"#/$defs/d10"}}`, hugeObject(5000), steps},
		{"names that are few", `{` + doubling + `},"propertyNames":{"$ref":"#/$defs/d10"}}`, hugeObject(5), ""},
		{"many patterns of names", `{"patternProperties":{` + repeated(5000, `"^p%d(a|b)?":{}`, ",") + `}}`, hugeObject(1000), steps},
		{"a long text in many errors", `{"anyOf":[` + strings.Repeat(`{"type":"null"},`, 240) + `false]}`, text(1 << 20), steps},
		{"a long text that may be absent", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":` + text(9<<20) + `}`, ""},
		{"a pattern over a long name", `{"patternProperties":{"` + strings.Repeat("(a|b)?", 300) + `c":{}}}`, `{` + text(1<<20) + `:1}`, steps},
		{"a pattern over a long text", `{"pattern":"` + strings.Repeat("(a|b)?", 300) + `c"}`, text(1 << 20), steps},
		{"a pattern over many texts", `{"items":{"pattern":"` + strings.Repeat("(a|b)?", 300) + `c?"}}`, `[` + strings.Repeat(text(200)+",", 5000) + `""]`, steps},
		{"the same for the library", `{"anyOf":[{"items":{"pattern":"` + strings.Repeat("(a|b)?", 300) + `c?"}}]}`, `[` + strings.Repeat(text(200)+",", 5000) + `""]`, steps},
		{"a small pattern over a long text", `{"pattern":"^[a-z]+$"}`, text(1 << 20), ""},
		{"properties by many parts", `{"allOf":[` + repeated(3000, `{"properties":{"m%d":{}}}`, ",") + `]}`, hugeObject(5000), steps},
		{"a tree of many parts", `{"anyOf":[` + strings.Repeat(`{},`, 9000) + `{"properties":{"a":{"$ref":"#"}}}]}`, nested(900, `{"a":`, `1`, `}`), steps},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			err := schema.Check([]byte(test.schema), []byte(test.value))
			if took := time.Since(start); took > 10*time.Second { // much less, on a machine that does nothing else
				t.Errorf("it took %v", took)
			}
			if test.want == "" && err != nil {
				t.Errorf("it does not fit: %.300v", err)
			}
			if test.want != "" && !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("%.300v does not say %q", err, test.want)
			}
		})
	}
}

func FuzzChecking(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"items":{"$ref":"#"},"uniqueItems":true}}}`, `[[1],[[]]]`},
		{`{"patternProperties":{"^a+$":{"not":{"minimum":2}}},"propertyNames":{"maxLength":3}}`, `{"aa":1,"b":2}`},
		{`{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}},"unevaluatedProperties":false}`, `{"a":{"a":{}}}`},
		{`{"if":{"const":1},"then":{"multipleOf":2},"dependentRequired":{"a":["b"]}}`, `{"a":1}`},
		{`{"definitions":{"x":{"$id":"#y"}},"items":[{"$ref":"#y"}],"additionalItems":false}`, `[1,2]`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		if _, err := jsonrpc.ParseValue([]byte(value)); err != nil {
			return
		}
		start := time.Now()
		_ = schema.Check([]byte(text), []byte(strings.TrimSpace(value)))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// repeated returns n times a text with its number, between separators.
func repeated(n int, format, separator string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, separator)
}
