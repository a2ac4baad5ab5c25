package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"

	json "github.com/go-json-experiment/json"
)

type textArgs struct {
	Text    string `json:"text"`
	Other   string `json:"other,omitempty"`
	Untold  string
	Hidden  string  `json:"-"`
	Any     string  `json:"any,case:ignore"`
	Named   caption `json:"named"`
	Number  int     `json:"number"`
	Pointer *string `json:"pointer"`
}

// A caption decodes itself.
type caption string

func (c *caption) UnmarshalText(text []byte) error {
	*c = caption("caption " + string(text))
	return nil
}

// Long strings are decoded in another way, which makes no difference to the
// tool.
func TestLongStringsAreDecodedLikeShortOnes(t *testing.T) {
	long := strings.Repeat(`a \"quoted\" line, naïve \u00e9 \ud83d\ude42\n`, 1000)
	if err := json.Unmarshal([]byte("{}"), new(textArgs)); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, args string }{
		{"one", `{"text":"` + long + `"}`},
		{"several, with others", `{"number":3,"other":"` + long + `","pointer":"` + long + `","text":"` + long + `x"}`},
		{"a field without a tag", `{"Untold":"` + long + `","untold":"x"}`},
		{"a hidden field", `{"-":"` + long + `","Hidden":"` + long + `"}`},
		{"a tag without case", `{"ANY":"` + long + `"}`},
		{"a type with a method", `{"named":"` + long + `"}`},
		{"a name with an escape", `{"t\u0065xt":"` + long + `"}`},
		{"a member twice", `{"text":"` + long + `","text":"` + long + `"}`},
		{"a member twice, once short", `{"text":"` + long + `","text":"short"}`},
		{"half a character", `{"text":"` + long + `\ud83d"}`},
		{"a replacement character", `{"text":"` + long + "\ufffd" + `"}`},
		{"another type", `{"text":["` + long + `"]}`},
		{"null", `{"text":null,"other":"` + long + `"}`},
		{"an error elsewhere", `{"text":"` + long + `","number":"x"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var want textArgs
			wantErr := json.Unmarshal([]byte(test.args), &want)
			var got textArgs
			s := server.New(mcp.Implementation{Name: "test", Version: "1"}, &server.Options{SkipValidation: true})
			server.AddTool(s, mcp.Tool{Name: "t"}, func(_ context.Context, _ *server.Call, in textArgs) (string, error) {
				got = in
				return "", nil
			})
			result, err := callTool(t, s, "t", test.args)
			if err != nil {
				t.Fatal(err)
			}
			if result.Failed() != (wantErr != nil) {
				t.Fatalf("failed: %v, but decoding says %v", result.Failed(), wantErr)
			}
			if got, want := shown(got), shown(want); wantErr == nil && got != want {
				t.Errorf("the tool got %s, not %s", got, want)
			}
		})
	}
}

func shown(a textArgs) string {
	pointer := ""
	if a.Pointer != nil {
		pointer = *a.Pointer
	}
	a.Pointer = nil
	return fmt.Sprintf("%+v %q", a, pointer)
}
