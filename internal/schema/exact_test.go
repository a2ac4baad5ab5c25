package schema_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpsplice/mcpsplice/internal/schema"
)

// Numbers are what they are written as (JSON Schema 2020-12, core, 4.2.1 and 4.2.2, and
// validation, 6.1 and 6.2), not what a float64 makes of them.
func TestNumbersAreComparedExactly(t *testing.T) {
	tests := []struct{ schema, fits, not string }{
		{`{"maximum":9007199254740992}`, `9007199254740992 9007199254740992.0 9.007199254740992e15`, `9007199254740993 9007199254740992.1 9007199254740992000001e-6`},
		{`{"maximum":9007199254740993}`, `9007199254740992 9007199254740993`, `9007199254740994 9007199254740993.01`},
		{`{"minimum":9007199254740993}`, `9007199254740993`, `9007199254740992 9007199254740992.9`},
		{`{"exclusiveMinimum":-9007199254740993}`, `-9007199254740992`, `-9007199254740993 -9007199254740993.5`},
		{`{"exclusiveMaximum":9007199254740993}`, `9007199254740992`, `9007199254740993`},
		{`{"maximum":0.1}`, `0.1 0.10 1e-1`, `0.1000000000000000000001`},
		{`{"minimum":0}`, `0 -0 0.0 -0e5 1e-999999999999999999999 1e999999999999999999999`, `-1e-400 -1e999`},
		{`{"maximum":1.5e300}`, `1.5e300 -1e400 1e-1000000000`, `15000000000000000000001e279 1e400 1e1000000000`},
		{`{"minimum":1,"exclusiveMinimum":1,"maximum":2,"exclusiveMaximum":2}`, `1.5`, `1 2`},
		{`{"minimum":1,"exclusiveMinimum":0}`, `1`, `0.5`},
		{`{"enum":[9007199254740993,"a",0.1]}`, `9007199254740993 9007199254740993.0 90071992547409930e-1 1e-1`, `9007199254740992 9007199254740994 0.10000000000000000001 0`},
		{`{"enum":[9007199254740992,9007199254740994,9007199254740993,9007199254740993]}`, `9007199254740992 9007199254740993 9007199254740994`, `9007199254740991 9007199254740992.5`},
		{`{"const":18446744073709551616}`, `18446744073709551616`, `18446744073709551615 18446744073709551617`},
		{`{"const":0}`, `0 -0.0 0e99999999999999999999`, `1e-400`},
		{`{"type":"integer"}`, `1e1000000000 1.50e1 0.0e-7 12345678901234567890`, `9007199254740993.5 0.1 15e-1 1e-1000000000`},
		{`{"multipleOf":0.1}`, `0.3 0 1 -0.7 1e1000000000`, `0.25 0.3000000000000000001 1e-1000000000`},
		{`{"multipleOf":3}`, `9007199254740993 -9 3e1000000000 0`, `9007199254740994 9007199254740992 1e1000000000 9007199254740993.3`},
		{`{"multipleOf":9007199254740993}`, `18014398509481986 0 9007199254740993e40`, `9007199254740992 18014398509481984`},
		{`{"multipleOf":18446744073709551615}`, `340282366920938463426481119284349108225`, `340282366920938463426481119284349108224`},
		{`{"multipleOf":100000000000000000000000000000007}`, `200000000000000000000000000000014 1000000000000000000000000000000070000`, `200000000000000000000000000000015 1e33`},
		{`{"multipleOf":1e-290}`, `1e-290 1`, `1e-291 1.5e-290`},
		{`{"multipleOf":1e300}`, `2e300 1e301`, `1e299`},
	}
	for _, test := range tests {
		t.Run(test.schema, func(t *testing.T) { wantFits(t, test.schema, test.fits, test.not) })
	}
}

// What the library of schemas checks is exact for integers of 64 bits, but for the bounds
// themselves.
func TestNumbersForTheLibraryAreExact(t *testing.T) {
	tests := []struct{ schema, fits, not string }{
		{`{"anyOf":[{"maximum":9007199254740992},{"type":"null"}]}`, `9007199254740992`, `9007199254740993`},
		{`{"anyOf":[{"type":"null"},{"enum":[9007199254740993,18446744073709551615]}]}`, `9007199254740993 18446744073709551615 null`, `9007199254740992 18446744073709551614`},
		{`{"prefixItems":[{"const":-9007199254740993}]}`, `[-9007199254740993]`, `[-9007199254740992]`},
		{`{"items":{"$ref":"#/$defs/a~1~0b"},"$defs":{"a/~b":{"const":9007199254740993}}}`, `[9007199254740993]`, `[9007199254740992]`},
		{`{"not":{"const":9007199254740993}}`, `9007199254740992`, `9007199254740993`},
		{`{"const":{"a":[9007199254740993]}}`, `{"a":[9007199254740993]}`, `{"a":[9007199254740992]}`},
		{`{"enum":[1,9007199254740993],"const":9007199254740993}`, `9007199254740993`, `1 9007199254740992`},
		{`{"uniqueItems":true}`, `[9007199254740992,9007199254740993]`, `[9007199254740993,9007199254740993]`},
		{`{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `9007199254740993`, `0.12345678901234567`},
	}
	for _, test := range tests {
		t.Run(test.schema, func(t *testing.T) { wantFits(t, test.schema, test.fits, test.not) })
	}
}

// literals generates numbers that are close to each other, as they may be written.
func literals() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		sign := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
		whole := rapid.SampledFrom([]string{"0", "1", "10", "900719925474099", "9007199254740992", "9007199254740993", "18446744073709551615", "18446744073709551616"}).Draw(t, "whole")
		fraction := rapid.SampledFrom([]string{"", ".0", ".5", ".50", ".05", ".000000000000000001"}).Draw(t, "fraction")
		power := rapid.SampledFrom([]string{"", "e0", "E1", "e-1", "e+2", "e-20", "e20"}).Draw(t, "power")
		return sign + whole + fraction + power
	})
}

func TestNumbersAreComparedAsFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other := literals().Draw(t, "one"), literals().Draw(t, "other")
		value, _ := new(big.Rat).SetString(one)
		bound, _ := new(big.Rat).SetString(other)
		order := value.Cmp(bound)
		want := map[string]bool{
			`{"minimum":` + other + `}`: order >= 0, `{"exclusiveMinimum":` + other + `}`: order > 0,
			`{"maximum":` + other + `}`: order <= 0, `{"exclusiveMaximum":` + other + `}`: order < 0,
			`{"const":` + other + `}`: order == 0, `{"type":"integer"}`: value.IsInt(),
		}
		if bound.Sign() > 0 {
			want[`{"multipleOf":`+other+`}`] = new(big.Rat).Quo(value, bound).IsInt()
		}
		for text, fits := range want {
			if err := schema.Check([]byte(text), []byte(one)); (err == nil) != fits {
				t.Fatalf("%s against %s: %v", one, text, err)
			}
		}
	})
}

// Large numbers, however they are written, take no more than passing over them.
func TestLargeNumbersAreBounded_B164(t *testing.T) {
	long := strings.Repeat("9", 1<<20)
	similar := `{"items":{"enum":[1` + repeated(15_000, `,9007199254740992.%05d7`, "") + `]}}`
	tests := []struct {
		name, schema, value string
		fits                bool
	}{
		{"many digits", `{"multipleOf":3}`, long, true},
		{"many digits by a long divisor", `{"multipleOf":1` + strings.Repeat("0", 98) + `7}`, long, false},
		{"a long divisor", `{"multipleOf":1` + strings.Repeat("7", 300) + `}`, `1e999999999`, false},
		{"a huge exponent", `{"multipleOf":7,"minimum":1,"type":"integer"}`, `7e` + long, true},
		{"a tiny one", `{"multipleOf":7}`, `7e-` + long, false},
		{"a divisor over the limit", `{"multipleOf":0.` + strings.Repeat("3", schema.MaxDivisorDigits+1) + `}`, `0`, false},
		{"one within a schema", `{"anyOf":[{"multipleOf":0.` + strings.Repeat("3", 1<<19) + `}]}`, `0`, false},
		{"a divisor at the limit", `{"multipleOf":0.` + strings.Repeat("3", schema.MaxDivisorDigits) + `}`, `0`, true},
		{"a long bound", `{"maximum":0.` + strings.Repeat("3", 1<<19) + `}`, `0.` + strings.Repeat("3", 1<<19) + `1`, false},
		{"similar values", similar, `[` + strings.Repeat("9007199254740992.000007,", 200_000) + `1]`, true},
		{"many small ones", `{"items":{"multipleOf":0.01}}`, `[` + strings.Repeat("0.5,", 1<<20) + `0]`, true},
		{"many long ones", `{"items":{"multipleOf":1` + strings.Repeat("7", 300) + `}}`, `[` + strings.Repeat("0,", 200_000) + `0]`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			if err := schema.Check([]byte(test.schema), []byte(test.value)); (err == nil) != test.fits {
				t.Errorf("%.300v", err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// wantFits checks which values fit a schema. Both lists are separated by spaces.
func wantFits(t *testing.T, text, fits, not string) {
	t.Helper()
	for value := range strings.FieldsSeq(fits) {
		if err := schema.Check([]byte(text), []byte(value)); err != nil {
			t.Errorf("%s does not fit: %v", value, err)
		}
	}
	for value := range strings.FieldsSeq(not) {
		if schema.Check([]byte(text), []byte(value)) == nil {
			t.Errorf("%s fits", value)
		}
	}
}
