package jsonrpc_test

import (
	"strconv"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"

	"github.com/google/go-cmp/cmp"
)

// What a Builder has put together is what a scan of its bytes finds.
func TestBuilderIndexesWhatItWrites(t *testing.T) {
	many := make([]string, 0, 2*jsonrpc.MaxMembers)
	for i := range jsonrpc.MaxMembers + 2 {
		many = append(many, "n"+strconv.Itoa(i), strconv.Itoa(i))
	}
	tests := []struct {
		name    string
		members []string // names and values
		want    string   // empty for whatever it is
	}{
		{name: "none", want: `{}`},
		{name: "one", members: []string{"a", `1`}, want: `{"a":1}`},
		{name: "a name with escapes", members: []string{"a\"\n", `1`, "b", `"x"`}, want: `{"a\"\n":1,"b":"x"}`},
		{name: "line breaks", members: []string{"a", "{\n\t\"b\":\r\n[]}"}, want: "{\"a\":{\t\"b\":[]}}"},
		{name: "more than are indexed in place", members: many[:40]},
		{name: "more than are indexed", members: many},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := jsonrpc.NewBuilder(16)
			for i := 0; i < len(test.members); i += 2 {
				b.AddRaw(test.members[i], []byte(test.members[i+1]))
			}
			built := b.Value()
			if got := string(built.Raw()); test.want != "" && got != test.want {
				t.Errorf("it wrote %s, not %s", got, test.want)
			}
			scanned, err := jsonrpc.ParseValue(built.Raw())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(membersOf(&scanned), membersOf(&built)); diff != "" {
				t.Errorf("its index is not a scan's (-scan +index):\n%s", diff)
			}
			if got := string(built.AppendTo(nil)); got != string(built.Raw()) {
				t.Errorf("in one line it is %s, not %s", got, built.Raw())
			}
		})
	}
}

func membersOf(v *jsonrpc.Value) (members []string) {
	for name, value := range v.Members() {
		got, _ := v.Lookup(name)
		members = append(members, name, string(value), string(got))
	}
	return members
}
