package jsonrpc_test

import (
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// much is what a peer may put beside what it says.
var much = strings.Repeat(" ", 8<<10)

// TestMessageKeepsNothingLargeBesideIt: whoever keeps one counts its method and params,
// which must not hold the memory of what else came.
func TestMessageKeepsNothingLargeBesideIt_B140(t *testing.T) {
	const params = `{"a":[1,"é"],"_meta":{"x":{"y":1}},"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8}`
	for _, tt := range []struct {
		name, in string
		apart    bool
	}{
		{"ordinary", `{"jsonrpc":"2.0","id":"i","method":"m","params":` + params + `}`, false},
		{"a member", `{"jsonrpc":"2.0","id":"i","method":"m","params":` + params + `,"x":"` + much + `"}`, true},
		{"white space", much + `{"jsonrpc":"2.0","id":"i","method":"m","params":` + params + `}`, true},
		{"of a notification", `{"jsonrpc":"2.0","method":"m",` + much + `"params":` + params + `}`, true},
		{"as much as the params", `{"jsonrpc":"2.0","id":"i","method":"m","x":"` + much + `","params":{"t":"` + much + `",` + params[1:] + `}`, false},
		{"of a response", much + `{"jsonrpc":"2.0","id":"i","result":` + params + `}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := []byte(tt.in)
			var m jsonrpc.Message
			if err := jsonrpc.Scan(data, &m); err != nil {
				t.Fatal(err)
			}
			of := func() string {
				h, _ := m.Body.Lookup("h")
				a, _ := m.Body.Lookup("a")
				x, _ := m.Meta.Lookup("x")
				return strings.Join([]string{m.ID.String(), string(m.Method), string(a), string(h), string(x)}, " ")
			}
			before := of()
			if !strings.HasSuffix(before, `[1,"é"] 8 `) && !strings.HasSuffix(before, `[1,"é"] 8 {"y":1}`) {
				t.Fatalf("it is %s", before)
			}
			clear(data)
			if apart := of() == before; apart != tt.apart {
				t.Errorf("it has memory of its own: %t; it was %s and is %q", apart, before, of())
			}
		})
	}
}

// TestItemsKeepNothingLargeBesideThem: of a batch.
func TestItemsKeepNothingLargeBesideThem_B140(t *testing.T) {
	const small = `{"jsonrpc":"2.0","method":"m"}`
	for in, want := range map[string]bool{
		`[` + small + `,1]`:              false,
		`[` + small + `,"` + much + `"]`: true,
	} {
		data := []byte(in)
		items, err := jsonrpc.SplitBatch(data)
		if err != nil || len(items) != 2 {
			t.Fatalf("%d items, %v", len(items), err)
		}
		clear(data)
		if apart := string(items[0]) == small; apart != want {
			t.Errorf("%.50s has memory of its own: %t", small, apart)
		}
		if apart := items[1][0] != 0; apart {
			t.Errorf("what is most of a batch has memory of its own")
		}
	}
}
