package schema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/schema"
)

// nested returns depth times open, the kernel, and depth times end.
func nested(depth int, open, kernel, end string) string {
	return strings.Repeat(open, depth) + kernel + strings.Repeat(end, depth)
}

func TestHostileValuesAreBounded_B164(t *testing.T) {
	// Two ways down at every level, as in a tree whose nodes are of one of two kinds.
	tree := `{"oneOf":[{"properties":{"kind":{"const":"a"},"child":{"$ref":"#"}}},{"properties":{"kind":{"const":"b"},"child":{"$ref":"#"}}}]}`
	const steps = "limit MaxValidationSteps"
	pairs := make([]string, 20_000)
	for i := range pairs {
		pairs[i] = fmt.Sprintf(`[%d]`, i)
	}
	tests := []struct{ name, schema, value, want string }{
		{"references that double", doubling(), `{"a":"x"}`, steps},
		{"references that are not met", doubling(), `{"b":"x"}`, ""},
		{"a deep tree of two kinds", tree, nested(200, `{"kind":"a","child":`, `{}`, `}`), steps},
		{"many arrays that must differ", `{"uniqueItems":true}`, `[` + strings.Join(pairs, ",") + `]`, steps},
		{"many numbers that must differ", `{"uniqueItems":true}`, `[` + strings.NewReplacer("[", "", "]", "").Replace(strings.Join(pairs, ",")) + `]`, ""},
		{"much shown in many errors", `{"anyOf":[` + strings.Repeat(`{"type":"null"},`, 19_000/2) + `false]}`, `"` + strings.Repeat("x", 4<<20) + `"`, steps},
		{"deep arrays", `{"items":{"items":{"type":"string"}}}`, nested(900, `[`, `1`, `]`), `/0/0 must be of type string`},
		{"deep arrays for the library", `{"anyOf":[{"items":{"$ref":"#"}}]}`, nested(900, `[`, `1`, `]`), ""},
		{"a long number", `{"type":"integer","maximum":5}`, strings.Repeat("9", 1<<20), `must not be more than 5`},
		{"a number beyond all", `{"anyOf":[{"type":"number"}]}`, `1e400`, `out of range`},
		{"a huge array", `{"items":{"type":"integer"},"maxItems":10}`, `[` + strings.Repeat("1,", 1<<20) + `1]`, `has 1048577 items`},
		{"a huge object", `{"required":["z"],"additionalProperties":{"type":"integer"}}`, hugeObject(50_000), `lacks the member "z"`},
		{"a long string for the library", `{"anyOf":[{"maxLength":5}]}`, `"` + strings.Repeat("ä", 1<<20) + `"`, `anyOf`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			err := schema.Check([]byte(test.schema), []byte(test.value))
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if test.want == "" && err != nil {
				t.Errorf("it does not fit: %.300v", err)
			}
			if test.want != "" && !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("%.300v does not say %q", err, test.want)
			}
			if n := len(fmt.Sprint(err)); n > 8000 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
}

func hugeObject(n int) string {
	var b strings.Builder
	b.WriteString(`{"a":1`)
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":%d`, i, i)
	}
	return b.String() + "}"
}

// doubling returns a schema in which every reference leads to two others.
func doubling() string {
	var b strings.Builder
	b.WriteString(`{"type":"object","$defs":{"d0":{"type":"string"}`)
	for i := range 40 {
		fmt.Fprintf(&b, `,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	return b.String() + `},"properties":{"a":{"$ref":"#/$defs/d40"}}}`
}
