package process_test

import (
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/process"
)

func TestTailKeepsTheEnd(t *testing.T) {
	for _, c := range []struct {
		limit  int
		chunks []string
		want   string
	}{
		{5, []string{"abc"}, "abc"},
		{5, []string{"abc", "de"}, "abcde"},
		{5, []string{"abc", "def"}, "bcdef"},
		{5, []string{"abcdefghijk"}, "ghijk"},
		{5, []string{"ab", "cdefghij", "k"}, "ghijk"},
		{5, []string{"abcde", "", "f", "g"}, "cdefg"},
		{4, []string{"a€b"}, "b"[:0] + "€b"},
		{3, []string{"a€b"}, "b"},
		{0, []string{"abc"}, ""},
	} {
		if got := process.Tail(c.limit, c.chunks...); got != c.want {
			t.Errorf("Tail(%d, %q) = %q, want %q", c.limit, c.chunks, got, c.want)
		}
	}
}

func TestTextOfStderrIsClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                       "plain\ttext\n",
		"a\r\nb\rc":                           "a\nb\nc",
		"\x1b[1;31mred\x1b[0m":                "red",
		"\x1b]0;title\x07x\x1b]8;;u\x1b\\y":   "xy",
		"\x1b(Bx\x1b7y\x1b=z":                 "xyz",
		"\x1b]0;never ends\nnext":             "]0;never ends\nnext",
		"\x1b[12":                             "[12",
		"\x1b":                                "",
		"bell\x07 del\x7f nul\x00 c1\u009b31": "bell del nul c131",
		"bad \xff\xfe utf-8 \xe2\x82":         "bad \ufffd utf-8 \ufffd",
		"ünï €":                               "ünï €",
	} {
		if got := process.Clean([]byte(in)); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLastLinesAreCutAtLines(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"\n one\ntwo \n", "one\ntwo"},
		{strings.Repeat("x", 20) + "\nend", "end"},
		{strings.Repeat("x", 20), "xxxxxxxx"},
		{"aaaaaaaa€aaaaaa", "aaaaaa"},
	} {
		if got := process.LastLines(c.in, 8); got != c.want {
			t.Errorf("LastLines(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("a\x1b[31mb\x1b]0;t\x07\r\n\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := process.Clean(b)
		if got != strings.ToValidUTF8(got, "") {
			t.Errorf("invalid UTF-8: %q", got)
		}
		for _, r := range got {
			if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
				t.Errorf("control character in %q", got)
			}
		}
	})
}
