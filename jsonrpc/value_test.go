package jsonrpc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

func parse(t testing.TB, raw string) jsonrpc.Value {
	t.Helper()
	v, err := jsonrpc.ParseValue([]byte(raw))
	if err != nil {
		t.Fatalf("%.60q: %v", raw, err)
	}
	return v
}

// allWays gives a value that was indexed when it came, one without an index, and
// one indexed later.
func allWays(t testing.TB, raw string) map[string]jsonrpc.Value {
	trusted := jsonrpc.Trusted([]byte(raw))
	return map[string]jsonrpc.Value{"parsed": parse(t, raw), "trusted": trusted, "indexed": trusted.Indexed()}
}

func TestLookupMatchesExactlyAfterUnescaping(t *testing.T) {
	const raw = ` {"a":1,"\u0062":"x\ny","c\"":[1, 2] ,"d":{"a":2},"A":3,"a\u0000":4,"é":5,"\ud83d\ude00":6,"":7,"dup":1,"\u0064up":2,"ninth":"\ud800"}` + "\n"
	for how, v := range allWays(t, raw) {
		for name, want := range map[string]string{
			"a": `1`, "b": `"x\ny"`, `c"`: `[1, 2]`, "d": `{"a":2}`, "A": `3`, "a\x00": `4`, "é": `5`, "😀": `6`, "": `7`, "dup": `2`,
			"ninth": `"\ud800"`, "missing": ``, "c": ``, "aa": ``, `\u0062`: ``, `c\"`: ``,
		} {
			got, ok := v.Lookup(name)
			if string(got) != want || ok != (want != "") {
				t.Errorf("%s: %q is %s, %v, want %s", how, name, got, ok, want)
			}
			if member := v.Get(name); string(member.Raw()) != want || member.IsZero() == ok {
				t.Errorf("%s: Get %q is %s", how, name, member.Raw())
			}
		}
		if got, ok := v.LookupString("b"); got != "x\ny" || !ok {
			t.Errorf("%s: b is %q, %v", how, got, ok)
		}
		if got, ok := v.LookupString("ninth"); got != "\ufffd" || !ok {
			t.Errorf("%s: ninth is %q, %v", how, got, ok)
		}
		if got, ok := v.LookupString("a"); got != "" || ok {
			t.Errorf("%s: a is %q, %v", how, got, ok)
		}
		if v.Len() != 12 || !v.IsObject() {
			t.Errorf("%s: %d members", how, v.Len())
		}
		var names []string
		for name, value := range v.Members() {
			if name == "d" {
				name += string(value)
			}
			names = append(names, name)
			if len(names) == 11 {
				break
			}
		}
		want := []string{"a", "b", `c"`, `d{"a":2}`, "A", "a\x00", "é", "😀", "", "dup", "dup"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: members (-want +got):\n%s", how, diff)
		}
		i := 0
		for name := range v.RawMembers() {
			if got, ok := jsonrpc.Unquote(name); i < len(want) && (!ok || !strings.HasPrefix(want[i], got)) {
				t.Errorf("%s: member %d is called %s", how, i, name)
			}
			i++
		}
		if i != v.Len() {
			t.Errorf("%s: %d members", how, i)
		}
	}
}

func TestRawMembersKeepTheirNames(t *testing.T) {
	for how, v := range allWays(t, `{"\u0061" : 1,"\ud800":2 , "é":3}`) {
		var got []string
		for name, value := range v.RawMembers() {
			_ = append(name, "overwritten"...)
			if got = append(got, string(name)+string(value)); len(got) == 3 {
				break
			}
		}
		if diff := cmp.Diff([]string{`"\u0061"1`, `"\ud800"2`, `"é"3`}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
}

func TestLookupInWhatIsNoObject(t *testing.T) {
	for _, raw := range []string{`null`, `1`, `"{\"a\":1}"`, `[{"a":1}]`, `{}`, ` { } `} {
		for how, v := range allWays(t, raw) {
			if _, ok := v.Lookup("a"); ok || v.Len() != 0 || v.IsZero() {
				t.Errorf("%s: %s has a member", how, raw)
			}
			if v.IsNull() != (raw == "null") || v.IsObject() != (strings.TrimSpace(raw)[0] == '{') {
				t.Errorf("%s: %s is null %v, object %v", how, raw, v.IsNull(), v.IsObject())
			}
		}
	}
	var absent jsonrpc.Value
	if _, ok := absent.Lookup("a"); ok || !absent.IsZero() || absent.IsObject() || absent.IsNull() || absent.Raw() != nil {
		t.Error("an absent value is something")
	}
	for range absent.Members() {
		t.Error("an absent value has members")
	}
}

// An object of more members than are indexed is read all the same.
func TestLargeObjectsAreReadWithoutAnIndex(t *testing.T) {
	for _, n := range []int{8, 9, jsonrpc.MaxMembers, jsonrpc.MaxMembers + 1, 2 * jsonrpc.MaxMembers} {
		v := parse(t, strings.Replace(editedBy(n), `"e0":7`, `"e0":1`, 1))
		name := fmt.Sprintf("e%d", n-1)
		first, _ := v.Lookup("e0")
		last, _ := v.Lookup(name)
		if v.Len() != n || string(first) != "1" || string(last) != "7" {
			t.Errorf("%d members: Len %d, the first is %s, the last is %s", n, v.Len(), first, last)
		}
		edited := jsonrpc.Edited(&v, jsonrpc.Edit{Name: "e0", Value: []byte("7")})
		if string(edited.Raw()) != editedBy(n) {
			t.Errorf("%d members: edited to %.60s", n, edited.Raw())
		}
	}
}

// What a member's bytes are appended to is not the rest of the object.
func TestMembersCanBeAppendedTo(t *testing.T) {
	const raw = `{"a":1,"b":2}`
	for how, v := range allWays(t, raw) {
		a, _ := v.Lookup("a")
		_ = append(a, "overwritten"...)
		for _, value := range v.Members() {
			_ = append(value, "overwritten"...)
		}
		if string(v.Raw()) != raw {
			t.Errorf("%s: the value is %s", how, v.Raw())
		}
	}
	list := []byte(`[1,2]`)
	for _, item := range jsonrpc.Elements(list) {
		_ = append(item, "overwritten"...)
	}
	if string(list) != `[1,2]` {
		t.Errorf("the list is %s", list)
	}
}

func TestElements(t *testing.T) {
	for raw, want := range map[string][]string{
		`[]`: nil, ` [ ] `: nil, `{"a":[1]}`: nil, `1`: nil, ``: nil, `null`: nil,
		`[1]`: {`1`},
		` [ 1 , "a,]\"" ,[2,[3]], {"a":[4]} ,null] `: {`1`, `"a,]\""`, `[2,[3]]`, `{"a":[4]}`, `null`},
	} {
		var got []string
		for _, item := range jsonrpc.Elements([]byte(raw)) {
			got = append(got, string(item))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

func TestEditsReplaceOnlyWhatTheyName(t *testing.T) {
	set := func(name, value string) jsonrpc.Edit { return jsonrpc.Edit{Name: name, Value: []byte(value)} }
	remove := func(name string) jsonrpc.Edit { return jsonrpc.Edit{Name: name} }
	for _, c := range []struct {
		name, in string
		edits    []jsonrpc.Edit
		want     string
	}{
		{"replaced in place", `{"a":1, "b" : 2 ,"c":1E2}`, []jsonrpc.Edit{set("b", `[3]`)}, `{"a":1,"b" : [3],"c":1E2}`},
		{"added at the end", `{"a":1}`, []jsonrpc.Edit{set("b\"", `2`), set("c", `3`)}, `{"a":1,"b\"":2,"c":3}`},
		{"added to an empty object", `{ }`, []jsonrpc.Edit{set("a", `1`)}, `{"a":1}`},
		{"removed at the beginning", `{"a":1,"b":2}`, []jsonrpc.Edit{remove("a")}, `{"b":2}`},
		{"removed at the end", `{"a":1,"b":2}`, []jsonrpc.Edit{remove("b")}, `{"a":1}`},
		{"all removed", `{"a":1,"b":2}`, []jsonrpc.Edit{remove("b"), remove("a")}, `{}`},
		{"removed what is not there", `{"a":1}`, []jsonrpc.Edit{remove("b")}, `{"a":1}`},
		{"escaped name kept", `{"\u0061":1}`, []jsonrpc.Edit{set("a", `2`)}, `{"\u0061":2}`},
		{"escaped name removed", `{"\u0061":1,"b":2}`, []jsonrpc.Edit{remove("a")}, `{"b":2}`},
		{"other case untouched", `{"A":1}`, []jsonrpc.Edit{set("a", `2`)}, `{"A":1,"a":2}`},
		{"of duplicates one is left", `{"a":1,"b":2,"a":3}`, []jsonrpc.Edit{set("a", `4`)}, `{"a":4,"b":2}`},
		{"all duplicates removed", `{"a":1,"b":2,"a":3}`, []jsonrpc.Edit{remove("a")}, `{"b":2}`},
		{"untouched duplicates kept", `{"a":1,"a":3}`, []jsonrpc.Edit{set("b", `4`)}, `{"a":1,"a":3,"b":4}`},
		{"last of two edits", `{"a":1}`, []jsonrpc.Edit{set("a", `2`), set("a", `3`)}, `{"a":3}`},
		{"last of two edits of a new member", `{}`, []jsonrpc.Edit{set("a", `2`), set("a", `3`)}, `{"a":3}`},
		{"set, then removed", `{"a":1}`, []jsonrpc.Edit{set("a", `2`), remove("a")}, `{}`},
		{"line breaks", "{\r\n\t\"a\": \"\\n\",\n\t\"b\":\n[1,\n2]\n}", []jsonrpc.Edit{set("c", "{\n\"x\": 1\r\n}"), set("a", "\n1")}, "{\"a\": 1,\"b\":[1,2],\"c\":{\"x\": 1}}"},
		{"absent", ``, []jsonrpc.Edit{set("a", `1`)}, `{"a":1}`},
		{"null", `null`, []jsonrpc.Edit{set("a", `1`)}, `{"a":1}`},
		{"array", `[1,2]`, []jsonrpc.Edit{set("a", `1`)}, `[1,2]`},
		{"string", `"a"`, []jsonrpc.Edit{remove("a")}, `"a"`},
		{"no edits", "{\n\"a\" : 1}", nil, `{"a" : 1}`},
		{"nine members", `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`, []jsonrpc.Edit{set("i", `0`), remove("h")}, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"i":0}`},
		{"more edits than fit", `{"e0":1}`, manyEdits(40), editedBy(40)},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := map[string]jsonrpc.Value{"trusted": jsonrpc.Trusted([]byte(c.in))}
			if c.in != "" {
				values = allWays(t, c.in)
			}
			for how, v := range values {
				if got := string(jsonrpc.AppendEdited([]byte("x"), &v, c.edits...)); got != "x"+c.want {
					t.Errorf("%s:\ngot  %s\nwant x%s", how, got, c.want)
				}
				edited := jsonrpc.Edited(&v, c.edits...)
				if got := string(edited.AppendTo(nil)); got != c.want {
					t.Errorf("%s: Edited:\ngot  %s\nwant %s", how, got, c.want)
				}
				if string(v.Raw()) != strings.Trim(c.in, " \n") {
					t.Errorf("%s: the value itself was changed to %s", how, v.Raw())
				}
			}
		})
	}
}

func manyEdits(n int) []jsonrpc.Edit {
	var edits []jsonrpc.Edit
	for i := range n {
		edits = append(edits, jsonrpc.Edit{Name: fmt.Sprintf("e%d", i), Value: []byte("7")})
	}
	return edits
}

func editedBy(n int) string {
	var members []string
	for _, e := range manyEdits(n) {
		members = append(members, fmt.Sprintf("%q:%s", e.Name, e.Value))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestValuesAreCopiedInOneLine(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a" : 1}`:                   `{"a" : 1}`,
		"\n[1,\r\n2,\r3\n,\"\\n\"]\n": `[1,2,3,"\n"]`,
		"\n1\n":                       `1`,
		"{\n}":                        `{}`,
	} {
		for how, v := range allWays(t, raw) {
			if got := string(v.AppendTo(nil)); got != want {
				t.Errorf("%s: %q became %q", how, raw, got)
			}
		}
	}
	var absent jsonrpc.Value
	if got := string(absent.AppendTo(nil)); got != "null" {
		t.Errorf("an absent value became %q", got)
	}
	v := parse(t, "{\"a\":\n{\"b\": [\n1]}}")
	a := v.Get("a")
	if got := string(a.AppendTo(nil)); got != `{"b": [1]}` {
		t.Errorf("a member became %q", got)
	}
}

func TestUnquote(t *testing.T) {
	for raw, want := range map[string]string{
		`""`:       "",
		`"abc"`:    "abc",
		`"é東😀"`:    "é東😀",
		`"\"\\\/"`: `"\/`, `"a\b\f\n\r\t"`: "a\b\f\n\r\t",
		`"\u0000\u00e9\u6771\uD83D\ude00"`: "\x00é東😀",
		`"\ud83d"`:                         "\ufffd", `"\ude00"`: "\ufffd", `"\ude00\ud83d"`: "\ufffd\ufffd",
		`"\ud83dx\ude00"`: "\ufffdx\ufffd", `"\ud83d\u0041"`: "\ufffdA", `"\ud83d\ud83d\ude00"`: "\ufffd😀", `"\ud83d\n"`: "\ufffd\n",
	} {
		if got, ok := jsonrpc.Unquote([]byte(raw)); got != want || !ok {
			t.Errorf("%s: %q, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{``, `"`, `1`, `null`, `{"a":1}`, `["a"]`} {
		if got, ok := jsonrpc.Unquote([]byte(raw)); got != "" || ok {
			t.Errorf("%s is the string %q", raw, got)
		}
	}
}

func TestAppendStringWritesValidJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                         `""`,
		"a/é東😀\x7f\u2028":          "\"a/é東😀\x7f\u2028\"",
		"\"\\\n\r\t\b\x00\x1f":     `"\"\\\n\r\t\u0008\u0000\u001f"`,
		"\xff":                     "\"\ufffd\"",
		"a\xe9b\xed\xa0\x80\ufffd": "\"a\ufffdb\ufffd\ufffd\ufffd\ufffd\"",
	} {
		got := string(jsonrpc.AppendString([]byte("x"), text))
		if got != "x"+want {
			t.Errorf("%q became %s", text, got)
		}
		if back, _ := jsonrpc.Unquote([]byte(got[1:])); back != string([]rune(text)) {
			t.Errorf("%q came back as %q", text, back)
		}
	}
}

// A Value that has not been indexed is passed over once for each call, whatever
// stands in its strings.
func TestUnindexedValuesTakeLinearTime(t *testing.T) {
	const size = 1 << 20
	var members strings.Builder
	for i := range size / 16 {
		fmt.Fprintf(&members, "\"k%09d\":\n0,", i)
	}
	for name, raw := range map[string]string{
		"escapes":        `{"text":"` + strings.Repeat(`\n`, size/2) + `","a":1}`,
		"escaped quotes": `{"text":"` + strings.Repeat(`\"`, size/2) + `","a":1}`,
		"members":        `{` + members.String() + `"a":1}`,
		"brackets":       `{"x":[` + strings.Repeat("[],", size/3) + `[]],"a":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func() {
				v := jsonrpc.Trusted([]byte(raw))
				if got, ok := v.Lookup("a"); !ok || string(got) != "1" {
					t.Errorf("a is %s", got)
				}
				edited := jsonrpc.Edited(&v, jsonrpc.Edit{Name: "a", Value: []byte("2")})
				if got, _ := edited.Lookup("a"); string(got) != "2" {
					t.Errorf("edited a is %s", got)
				}
			})
		})
	}
}

func TestLookupAndEditDoNotAllocate(t *testing.T) {
	indexed := parse(t, `{"name":"x","arguments":{},"_meta":{"progressToken":1}}`)
	unindexed := indexed.Get("_meta")
	small, large := make([]byte, 0, 256), make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		indexed.Lookup("name")
		unindexed.Lookup("progressToken")
		meta := jsonrpc.AppendEdited(small, &unindexed,
			jsonrpc.Edit{Name: "progressToken", Value: []byte("22")},
			jsonrpc.Edit{Name: "io.modelcontextprotocol/protocolVersion", Value: []byte(`"2026-07-28"`)})
		jsonrpc.AppendEdited(large, &indexed, jsonrpc.Edit{Name: "_meta", Value: meta}, jsonrpc.Edit{Name: "name"})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestItemsAreTheElements(t *testing.T) {
	for _, raw := range []string{`[]`, ` [ ] `, `[1]`, `[ 1 ,"a,]" , {"x":[1,2]},[ ],null ]`, "[\n1\n,\n2\n]", `{}`, `1`, ``} {
		var got []string
		for item := range jsonrpc.Items([]byte(raw)) {
			got = append(got, string(item))
		}
		var want []string
		for _, item := range jsonrpc.Elements([]byte(raw)) {
			want = append(want, string(item))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the items of %s are %q, not %q", raw, got, want)
		}
	}
	for range jsonrpc.Items([]byte(`[1,2]`)) {
		break // a loop may end early
	}
}

func TestDistinctMembersAreTold(t *testing.T) {
	members := func(n int, last string) string {
		var b strings.Builder
		for i := range n - 1 {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		return "{" + b.String() + last + "}"
	}
	for raw, want := range map[string]bool{
		"{}": true, `{"a":1}`: true, `{"a":1,"b":1}`: true, `{"a":1,"a":1}`: false, `{"a":1,"\u0061":1}`: false, `{"\u0061":1,"\u0062":1}`: true,
		members(8, `"a":1`): true, members(8, `"k0":1`): false, members(9, `"a":1`): true, members(9, `"k7":1`): false,
		members(32, `"a":1`): true, members(32, `"k30":1`): false, members(33, `"a":1`): false, // so many are not compared
	} {
		for way, v := range allWays(t, raw) {
			if got := v.IsDistinct(); got != want {
				t.Errorf("%s, %s: %v, want %v", raw, way, got, want)
			}
		}
	}
}
