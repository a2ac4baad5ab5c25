package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/cli"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

func TestSignatures(t *testing.T) {
	for _, tt := range []struct{ input, output, want string }{
		{`{"type":"object"}`, ``, `t()`},
		{`true`, ``, `t()`},
		{`{"properties":{"city":{"type":"string"},"days":{"type":"integer","default":3}},"required":["city"]}`,
			`{"type":"object","properties":{"a":{"type":"number"}}}`, `t(city: string, days?: integer = 3) → {a?: number}`},
		{`{"properties":{"b":{"type":"string"},"a":{"type":"string"}},"required":["a","c"]}`, ``, `t(a: string, c: any, b?: string)`},
		{`{"properties":{"a":{"enum":["x","y",1,null]}}}`, ``, `t(a?: "x"|"y"|1|null)`},
		{`{"properties":{"a":{"const":"x"}}}`, ``, `t(a?: "x")`},
		{`{"properties":{"a":{"type":["string","null"]}}}`, ``, `t(a?: string|null)`},
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"string"}]}}}`, ``, `t(a?: string|integer)`},
		{`{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`, ``, `t(a?: string[])`},
		{`{"properties":{"a":{"type":"array"}}}`, ``, `t(a?: array)`},
		{`{"properties":{"a":{"type":"array","items":{"enum":[1,2]}}}}`, ``, `t(a?: (1|2)[])`},
		{`{"properties":{"a":{"$ref":"#/$defs/n~1a"}},"$defs":{"n/a":{"type":"number"}}}`, ``, `t(a?: number)`},
		{`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/a"}},"type":"object"}}}`, ``,
			`t(a?: {b?: {b?: {…}}})`},
		{`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"oneOf":[{"$ref":"#/$defs/a"}]}}}`, ``, `t(a?: any)`},
		{`{"properties":{"a":{"default":"` + strings.Repeat("x", 100) + `"}}}`, ``, `t(a?: any = "` + strings.Repeat("x", 28) + `…)`},
		{`{"properties":{"a":{"enum":["` + strings.Repeat("x", 30) + `","` + strings.Repeat("y", 30) + `"]}}}`, ``,
			`t(a?: "` + strings.Repeat("x", 30) + `"|"` + strings.Repeat("y", 23) + `…|…)`},
		{`{"properties":{"a\u001b[2J":{"type":"x\u202e"}}}`, ``, "t(a\ufffd[2J?: x\ufffd)"},
		{`{}`, `null`, `t()`},
		{`{"properties":{"a":7}}`, ``, `t(a?: any)`},
		{`{"properties":[],"required":"x"}`, ``, `t()`},
	} {
		t.Run(tt.input, func(t *testing.T) {
			tool := &mcp.Tool{Name: "t", InputSchema: mcp.JSON(tt.input)}
			if tt.output != "" {
				tool.OutputSchema = mcp.JSON(tt.output)
			}
			if diff := cmp.Diff(tt.want, cli.Signature(tool)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"read_file", "write_file", "list_directory", "move", "search", "a", "b", "c", "d", "e", "f", "g", "h"}
	for _, tt := range []struct{ name, want string }{
		{"raed_file", "did you mean read_file?"},
		{"readFile", "did you mean read_file?"},
		{"serach", "did you mean search?"},
		{"file", "did you mean read_file or write_file?"},
		{"directory", "did you mean list_directory?"},
		{"xyz", ""},
		{"", ""},
		{strings.Repeat("x", 1<<20), ""},
	} {
		if got := cli.DidYouMean(tt.name, names); got != tt.want {
			t.Errorf("%.20q: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := cli.DidYouMean("xyz", []string{"one", "two\x1b"}); got != "there is one, two\ufffd" {
		t.Errorf("got %q", got)
	}
}

func TestTextIsHarmless_TL2(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"a\tb\r\nc\n", "a\tb\nc\n"},
		{"Grüße, 世界, 👋", "Grüße, 世界, 👋"},
		{"\x1b]52;c;aGk=\x07", "\ufffd]52;c;aGk=\ufffd"},
		{"\x1b]8;;http://x\x1b\\", "\ufffd]8;;http://x\ufffd\\"},
		{"\x1b[2J\u009b2J", "\ufffd[2J\ufffd2J"},
		{"100%\rpaid", "100%\ufffdpaid"},
		{"a\u202eb\u2066c\u200bd\U000e0041e\x00\x7f", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffd\ufffd"},
		{"\xff", "\ufffd"},
	} {
		if got := cli.Harmless(tt.text); got != tt.want {
			t.Errorf("%q becomes %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestDescriptionsAreWrapped(t *testing.T) {
	const text = "one two three four five six seven eight nine ten"
	for _, tt := range []struct {
		columns, most int
		want          []string
	}{
		{80, 3, []string{text}},
		{24, 3, []string{"one two three four five", "six seven eight nine ten"}},
		{14, 2, []string{"one two three", "four five six…"}},
		{3, 1, []string{"on…"}},
		{4, 3, []string{"one", "two", "thr…"}},
	} {
		if diff := cmp.Diff(tt.want, cli.Wrap(text, tt.columns, tt.most)); diff != "" {
			t.Errorf("%d columns: %s", tt.columns, diff)
		}
	}
}

// TestWideCharactersTakeTwoColumns: those of East Asian scripts take two columns, and marks none.
func TestWideCharactersTakeTwoColumns(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		want    []string
	}{
		{"日本語で書く", 6, []string{"日本語", "で書く"}},
		{"日本語で書く", 7, []string{"日本語", "で書く"}},
		{"日本 語で 書く", 9, []string{"日本 語で", "書く"}},
		{"日本語で書く", 1, []string{"日", "本", "語", "で", "書", "く"}},
		{"e\u0301te\u0301 x", 5, []string{"e\u0301te\u0301 x"}},
		{"https://example.com/", 8, []string{"https://", "example.", "com/"}},
		{"👋👋👋", 4, []string{"👋👋", "👋"}},
	} {
		if diff := cmp.Diff(tt.want, cli.Wrap(tt.text, tt.columns, 10)); diff != "" {
			t.Errorf("%s in %d columns: %s", tt.text, tt.columns, diff)
		}
	}
	for text, want := range map[string]string{"日本語": "日本…", "日本": "日本", "abcdefgh": "abcd…", "abcde": "abcde"} {
		if got := cli.Shorten(text, 5); got != want {
			t.Errorf("%s is shortened to %s, want %s", text, got, want)
		}
	}
}

func TestProgressLines(t *testing.T) {
	total, zero := 8.0, 0.0
	for _, tt := range []struct {
		p    mcp.ProgressParams
		want string
	}{
		{mcp.ProgressParams{Progress: 2, Total: &total, Message: "copying"}, "[=====               ]  25%  copying  (3s)"},
		{mcp.ProgressParams{Progress: 9, Total: &total}, "[====================] 100%  (3s)"},
		{mcp.ProgressParams{Progress: -1, Total: &total}, "[                    ]   0%  (3s)"},
		{mcp.ProgressParams{Progress: 3, Total: &zero}, "3  (3s)"},
		{mcp.ProgressParams{Progress: 1234.5}, "1234.5  (3s)"},
	} {
		if got := cli.ProgressLine(&tt.p, 3*time.Second); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// A server names neither the directory nor what is hidden in it.
func TestNamesOfFiles(t *testing.T) {
	for _, tt := range []struct{ tool, mimeType, uri, want string }{
		{"draw", "image/png", "", "draw.png"},
		{"draw", "image/jpeg; q=1", "", "draw.jpg"},
		{"draw", "", "", "draw.bin"},
		{"draw", "image/../../x", "", "draw.bin"},
		{"../../etc/passwd", "image/png", "", "etc-passwd.png"},
		{"x", "", "file:///a/b/report.pdf?x=/../y", "report.pdf"},
		{"x", "text/plain", "file:///..", "content.txt"},
		{"x", "text/plain", `file:///a\..\b`, "a-..-b"},
		{"x", "text/plain", "demo://text/", "text.txt"},
		{"x", "", "file:///.bashrc", "bashrc.bin"},
		{"x", "", "file:///a\x1b[2J", "a--2J.bin"},
		{"x", "", "file:///" + strings.Repeat("é", 300), strings.Repeat("é", 100) + ".bin"},
		{"x", "text/plain", "", "x.txt"},
	} {
		if got := cli.FileName(tt.tool, tt.mimeType, tt.uri); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
}
