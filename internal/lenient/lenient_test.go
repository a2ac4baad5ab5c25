package lenient_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/internal/lenient"
)

func TestIntegersAreExact_B017(t *testing.T) {
	for literal, want := range map[string]string{
		"0": "0", "-0": "0", "42": "42", "-7": "-7", "42.0": "42", "42.000": "42", "1e2": "100", "1E+2": "100", "10e-1": "1",
		"1e08": "100000000", "1e+08": "100000000", "-12.50e1": "-125", "9007199254740993.0": "9007199254740993",
		"18446744073709551615": "18446744073709551615", "1e30": "1000000000000000000000000000000",
		"1" + strings.Repeat("0", 30) + "e-30": "1",
		"1." + strings.Repeat("0", 98):         "1", "1." + strings.Repeat("0", 99): "",
		"1e31": "", "1e-31": "", "1e0999999": "", "1.5": "", "9007199254740991.4": "", "4503599627370497.3": "", "1e-400": "", "1e99999999999999999999": "",
	} {
		got, ok := lenient.Integer(literal)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %v, %t", literal, got, ok)
		}
	}
}

func TestLenientDecoding(t *testing.T) {
	type object struct {
		N    int               `json:"n,omitzero"`
		U    uint8             `json:"u,omitzero"`
		P    *int64            `json:"p,omitzero"`
		M    map[string]string `json:"m,omitzero"`
		O    *object           `json:"o,omitzero"`
		List []int             `json:"list,omitzero"`
		Any  any               `json:"any,omitzero"`
	}
	six := int64(60000)
	for _, tt := range []struct {
		raw  string
		want object
		bad  bool
	}{
		{`{"n":1,"list":[1,2]}`, object{N: 1, List: []int{1, 2}}, false},
		{`{"n":1.0,"u":2.55e2,"p":6e4,"list":[1.0,2]}`, object{N: 1, U: math.MaxUint8, P: &six, List: []int{1, 2}}, false},
		{`{"m":[],"o":[ ]}`, object{M: map[string]string{}, O: &object{}}, false},
		{`{"n":1.0,"list":[],"any":[]}`, object{N: 1, List: []int{}, Any: []any{}}, false},
		{`{"n":null,"u":1.0,"p":null,"m":null,"o":null,"list":null}`, object{U: 1}, false},
		{`{"n":1.5}`, object{}, true},
		{`{"u":256.0}`, object{}, true},
		{`{"u":-1.0}`, object{}, true},
		{`{"n":1e19}`, object{}, true},
		{`{"m":["a"]}`, object{}, true},
		{`{"o":[[]]}`, object{}, true},
		{`{"n":"1"}`, object{}, true},
		{`{"n":1.0,"n":1.0}`, object{}, true},
		{`{"n":1.0`, object{}, true},
	} {
		var got object
		err := lenient.Unmarshal([]byte(tt.raw), &got)
		if (err != nil) != tt.bad {
			t.Errorf("%s: %v", tt.raw, err)
		}
		if diff := cmp.Diff(tt.want, got); err == nil && diff != "" {
			t.Errorf("%s: %s", tt.raw, diff)
		}
	}
}
