package schema_test

import (
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/schema"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// ordinary is a schema as tools have it.
const ordinary = `{"type":"object","properties":{
	"query":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":100},
	"ratio":{"type":"number","exclusiveMinimum":0},"level":{"enum":[1,2,3]},"kind":{"enum":["a","b"]}
},"required":["query"],"additionalProperties":false}`

var arguments = []byte(`{"query":"weather","limit":10,"ratio":12.5,"level":2,"kind":"b"}`)

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.New(mcp.JSON(ordinary)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, bench := range []struct {
		name, schema string
		value        []byte
	}{
		{"ordinary", ordinary, arguments},
		{"at the bounds", ordinary, []byte(`{"query":"weather","limit":100,"ratio":1,"level":3}`)},
		{"by the library", `{"anyOf":[` + ordinary + `]}`, arguments},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s, err := schema.New(mcp.JSON(bench.schema))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Check(bench.value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
