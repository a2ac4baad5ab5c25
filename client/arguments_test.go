package client_test

import (
	"context"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// custom encodes itself.
type custom struct {
	Text string `json:"text"`
}

func (custom) MarshalJSON() ([]byte, error) { return []byte(`{"mine":true}`), nil }

// Arguments are encoded the same way whether their texts are short or long.
func TestArgumentsOfATool(t *testing.T) {
	type inner struct {
		Text string `json:"text,omitempty"`
	}
	type arguments struct {
		A    string `json:"a,omitempty"`
		Text string `json:"text"`
		N    int    `json:"n,omitzero"`
		In   *inner `json:"in,omitempty"`
		Skip string `json:"-"`
	}
	type texts struct {
		A       string `json:"a,omitempty"`
		B       string `json:"b,omitzero"`
		C       string
		Skip    string `json:"-"`
		private string
	}
	type embedding struct {
		inner
		B string `json:"b"`
	}
	type number struct {
		A stdjson.Number `json:"a"`
	}
	var seen string
	handler := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return mcp.NewResult(mcp.DiscoverResult{SupportedVersions: []mcp.Revision{mcp.NewestModern}})
		}
		raw, _ := req.Params.Lookup("arguments")
		seen = string(raw)
		return mcp.NewResult(mcp.CallToolResult{})
	})
	c, err := client.Connect(t.Context(), client.Handler(handler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	long := strings.Repeat("é\"\n", 4<<10)
	longQuoted := `"` + strings.Repeat(`é\"\n`, 4<<10) + `"`
	for _, tt := range []struct {
		arguments any
		want      string // empty for an error
	}{
		{nil, `{}`},
		{(*arguments)(nil), `{}`},
		{map[string]any{"b": 1, "a": long}, `{"a":` + longQuoted + `,"b":1}`},
		{arguments{Text: "x"}, `{"text":"x"}`},
		{arguments{Text: long, N: 2}, `{"text":` + longQuoted + `,"n":2}`},
		{&arguments{A: long, In: &inner{long}, Skip: long}, `{"a":` + longQuoted + `,"text":"","in":{"text":` + longQuoted + `}}`},
		{&arguments{A: long, Text: long}, `{"a":` + longQuoted + `,"text":` + longQuoted + `}`},
		{arguments{Text: "\xff" + long}, `{"text":"` + "\ufffd" + longQuoted[1:] + `}`},
		{texts{}, `{"C":""}`},
		{&texts{A: "1", B: "\x01\b\f\u2028<&>", C: "\xff", Skip: "s", private: "p"}, `{"a":"1","b":"\u0001\u0008\u000c` + "\u2028" + `<&>","C":"` + "\ufffd" + `"}`},
		{texts{A: long, C: long}, `{"a":` + longQuoted + `,"C":` + longQuoted + `}`},
		{(*texts)(nil), `{}`},
		{struct{}{}, `{}`},
		{structOf(textField("A", `json:"a"`), textField("B", `json:"a"`)), ""},
		{embedding{inner{"1"}, "2"}, `{"text":"1","b":"2"}`},
		{structOf(textField("A", `json:"a"`), textField("b", `json:"b"`)), ""},
		{number{"12"}, `{"a":12}`},
		{custom{long}, `{"mine":true}`},
		{&custom{long}, `{"mine":true}`},
		{mcp.JSON(`{"a": 1}`), `{"a":1}`},
		{[]int{1}, ""},
		{long, ""},
		{func() {}, ""},
	} {
		seen = ""
		_, err := c.CallTool(t.Context(), "tool", tt.arguments, nil)
		if (err != nil) != (tt.want == "") || seen != tt.want {
			t.Errorf("%.40v: %.100s, %v; want %.100s", tt.arguments, seen, err, tt.want)
		}
	}
}

// structOf returns a struct that vet would not let through.
func structOf(fields ...reflect.StructField) any {
	return reflect.New(reflect.StructOf(fields)).Interface()
}

func textField(name string, tag reflect.StructTag) reflect.StructField {
	f := reflect.StructField{Name: name, Type: reflect.TypeFor[string](), Tag: tag}
	if name[0] >= 'a' {
		f.PkgPath = "client_test"
	}
	return f
}
