package jsonrpc_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

func TestBatchesAreSplit(t *testing.T) {
	const (
		two  = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
		note = `{"jsonrpc":"2.0","method":"notifications/x"}`
	)
	full := slices.Repeat([]string{note}, jsonrpc.MaxBatch)
	for _, c := range []struct {
		name, in string
		want     []string
		code     int
	}{
		{"B037 requests and notifications", `[` + two + `,` + note + `]`, []string{two, note}, 0},
		{"B037 one", `[` + two + `]`, []string{two}, 0},
		{"B037 non-objects", `[1, "x" ,null,true]`, []string{`1`, `"x"`, `null`, `true`}, 0},
		{"B037 nested", `[[` + two + `],[]]`, []string{`[` + two + `]`, `[]`}, 0},
		{"B007 byte order mark and white space", "\ufeff\r\n [\n" + two + " \n,\t" + note + "\r\n]\r\n", []string{two, note}, 0},
		{"commas in strings", `["a,b]","{"]`, []string{`"a,b]"`, `"{"`}, 0},
		{"an item that is not UTF-8", "[\"\xff\"," + two + "]", []string{"\"\xff\"", two}, 0},
		{"an item that is nested too deeply", `[` + arrays(jsonrpc.MaxDepth+1) + `,` + two + `]`, []string{arrays(jsonrpc.MaxDepth + 1), two}, 0},
		{"at the limit", `[` + strings.Join(full, ",") + `]`, full, 0},
		{"B037 empty", `[]`, nil, jsonrpc.CodeInvalidRequest},
		{"B037 empty with white space", ` [ ] `, nil, jsonrpc.CodeInvalidRequest},
		{"over the limit", `[` + strings.Join(full, ",") + `,1]`, nil, jsonrpc.CodeInvalidRequest},
		{"no array", two, nil, jsonrpc.CodeInvalidRequest},
		{"no array and no JSON", two + `x`, nil, jsonrpc.CodeParseError},
		{"nothing", ``, nil, jsonrpc.CodeParseError},
		{"broken item", `[` + two + `,{"a"]`, nil, jsonrpc.CodeParseError},
		{"comma at the end", `[` + two + `,]`, nil, jsonrpc.CodeParseError},
		{"comma at the beginning", `[,1]`, nil, jsonrpc.CodeParseError},
		{"no comma", `[1 2]`, nil, jsonrpc.CodeParseError},
		{"no end", `[1,2`, nil, jsonrpc.CodeParseError},
		{"data after the end", `[1]x`, nil, jsonrpc.CodeParseError},
	} {
		t.Run(c.name, func(t *testing.T) {
			items, err := jsonrpc.SplitBatch([]byte(c.in))
			if code := codeOf(err); code != c.code {
				t.Fatalf("code %d (%v), want %d", code, err, c.code)
			}
			var got []string
			for _, item := range items {
				got = append(got, string(item))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

// Each item of a batch succeeds or fails alone.
func TestItemsOfABatchAreJudgedAlone(t *testing.T) {
	items, err := jsonrpc.SplitBatch([]byte(`[{"jsonrpc":"2.0","id":1,"method":"m"},[],1,{"jsonrpc":"2.0","id":2,"method":"m","params":{"a":1,"a":2}},{"jsonrpc":"2.0","id":3,"method":"m"}]`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range items {
		var m jsonrpc.Message
		if err := jsonrpc.Scan(item, &m); err != nil {
			got = append(got, m.ID.String()+": "+err.Error())
			continue
		}
		got = append(got, m.ID.String())
	}
	want := []string{"1", "none: batches are not supported here", "none: a message must be an object", `2: duplicate member "a" in params`, "3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIsBatch(t *testing.T) {
	for in, want := range map[string]bool{
		`[]`: true, " \r\n\t[": true, "\ufeff[1]": true, "\ufeff [": true, `{}`: false, ``: false, ` `: false, `"["`: false, "\ufeff": false,
	} {
		if got := jsonrpc.IsBatch([]byte(in)); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}
