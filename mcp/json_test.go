package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

func TestNewJSONKeepsTheTokensOfJSON(t *testing.T) {
	const odd = `{"\u0041\/":"\u00e9é\ud83d\ude00<>&","n":[1.50E+3,-0.0,123456789012345678901234567890]}`
	spaced := "{ \"a\" :\n1.0 }"
	type holder struct {
		X mcp.JSON   `json:"x"`
		M mcp.Object `json:"m"`
	}
	tests := []struct {
		name string
		v    any
		want string
	}{
		{"itself", mcp.JSON(odd), odd},
		{"in a struct", holder{mcp.JSON(odd), mcp.Object{"b": mcp.JSON(odd), "a": mcp.JSON("1.0")}}, `{"x":` + odd + `,"m":{"a":1.0,"b":` + odd + `}}`},
		{"in content", mcp.Contents{&mcp.Text{Text: "a", Extra: mcp.Object{"k": mcp.JSON(odd)}}}, `[{"type":"text","text":"a","k":` + odd + `}]`},
		{"in a prompt", mcp.PromptMessage{Role: mcp.User, Content: &mcp.Text{Meta: mcp.Object{"k": mcp.JSON(odd)}}}, `{"role":"user","content":{"type":"text","text":"","_meta":{"k":` + odd + `}}}`},
		{"in sampling", mcp.SamplingMessage{Role: mcp.User, Content: mcp.Contents{&mcp.ToolUse{ID: "i", Name: "n", Input: mcp.JSON(odd)}}},
			`{"role":"user","content":{"type":"tool_use","id":"i","name":"n","input":` + odd + `}}`},
		{"with white space", mcp.JSON(spaced), `{"a":1.0}`},
		{"absent", mcp.JSON(nil), `null`},
		{"text that is not UTF-8 after much that is", []string{strings.Repeat("x", 1<<20), "\xff"}, `["` + strings.Repeat("x", 1<<20) + "\",\"\ufffd\"]"},
		{"numbers as they came", map[string]any{"a": json.Number("9007199254740993"), "b": []json.Number{"1.50E+3", ""}}, `{"a":9007199254740993,"b":[1.50E+3,0]}`},
		{"a number as a name", map[json.Number]int{"1": 2}, `{"1":2}`},
		{"a duration", 3 * time.Nanosecond, `3`},
		{"JSON that is not UTF-8", mcp.JSON("\"\xff\""), "\"\ufffd\""},
		{"text that is not UTF-8", mcp.Contents{&mcp.Text{Text: "\xff"}}, "[{\"type\":\"text\",\"text\":\"\ufffd\"}]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := mcp.NewJSON(test.v); err != nil || string(got) != test.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
			}
			if got, err := mcp.AppendJSON([]byte("x"), test.v); err != nil || string(got) != "x"+test.want {
				t.Errorf("appended %s, %v", got, err)
			}
		})
	}
}

func TestWhatIsNoJSONIsRefused(t *testing.T) {
	for name, v := range map[string]any{
		"cut off": mcp.JSON(`{"a":`), "empty": mcp.JSON{}, "a member twice": mcp.JSON(`{"a":1,"a":2}`), "a channel": make(chan int),
		"a number that is none": json.Number("x"), "a number with more behind it": json.Number("1,2"), "a text as a number": json.Number(`"1"`),
		"a nil block": mcp.Contents{nil}, "a nil pointer": mcp.Contents{(*mcp.Text)(nil)}, "an unknown nil": mcp.Contents{(*mcp.UnknownContent)(nil)},
		"an unknown block without bytes": mcp.Contents{&mcp.UnknownContent{Type: "x"}}, "a message without content": mcp.PromptMessage{},
	} {
		if got, err := mcp.NewJSON(v); err == nil {
			t.Errorf("%s: %s", name, got)
		}
		if got, err := mcp.AppendJSON([]byte("x"), v); err == nil || string(got) != "x" {
			t.Errorf("%s: appended %s, %v", name, got, err)
		}
	}
}
