package jsonrpc_test

import (
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

func TestUnquotePrefix(t *testing.T) {
	for _, raw := range []string{
		`""`, `"a"`, `"\""`, `"\\"`, `"\\\""`, `"a\nb"`, `"\u00e9\ud83c\udf88"`, `"\ud800"`, `"naïve \"x\" 🎈"`,
		`"` + strings.Repeat(`abcdefghijklmno\"`, 100) + `"`,
	} {
		want, _ := jsonrpc.Unquote([]byte(raw))
		for _, rest := range []string{"", "}]", `,"b"`, `\`} {
			got, left, ok := jsonrpc.UnquotePrefix([]byte(raw + rest))
			if !ok || got != want || string(left) != rest {
				t.Errorf("%s%s: %q, %q, %v; want %q", raw, rest, got, left, ok, want)
			}
		}
	}
	for _, raw := range []string{"", `"`, "1", "null", `"a`, `"\\`, "{}"} {
		if text, _, ok := jsonrpc.UnquotePrefix([]byte(raw)); ok {
			t.Errorf("%s is the text %q", raw, text)
		}
	}
}
