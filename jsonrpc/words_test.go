package jsonrpc_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// Strings are looked at many bytes at a time. These tests compare what comes of it
// with loops that look at one after the other, wherever a byte that matters stands.

// simpleQuote quotes text byte by byte.
func simpleQuote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch c := text[0]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + text[:1])
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String() + `"`
}

// A fault is where a text is no string, and why.
type fault struct {
	offset int
	reason string
}

// simpleScan passes over a string byte by byte.
func simpleScan(raw string) (f fault, ok bool) {
	var soft *fault
	for i := 1; i < len(raw); {
		r, n := utf8.DecodeRuneInString(raw[i:])
		switch c := raw[i]; {
		case c == '"' && soft != nil:
			return *soft, false
		case c == '"':
			return fault{}, true
		case c < 0x20:
			return fault{i, "control character in a string"}, false
		case c != '\\':
			if r == utf8.RuneError && n == 1 && soft == nil {
				soft = &fault{i, "invalid UTF-8 in a string"}
			}
			i += n
		case i+1 < len(raw) && strings.IndexByte(`"\/bfnrt`, raw[i+1]) >= 0:
			i += 2
		case i+5 < len(raw) && raw[i+1] == 'u' && isHex(raw[i+2:i+6]):
			i += 6
		default:
			return fault{i, "bad escape in a string"}, false
		}
	}
	return fault{len(raw), "unexpected end of input"}, false
}

func isHex(digits string) bool {
	_, err := strconv.ParseUint(digits, 16, 16)
	return err == nil && !strings.ContainsAny(digits, "+-_")
}

// simpleUnquote decodes the inside of a valid string, character by character.
func simpleUnquote(inside string) string {
	var b strings.Builder
	for len(inside) > 0 {
		if inside[0] != '\\' {
			b.WriteByte(inside[0])
			inside = inside[1:]
			continue
		}
		if c := inside[1]; c != 'u' {
			b.WriteString(map[byte]string{'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t"}[c])
			if strings.IndexByte(`"\/`, c) >= 0 {
				b.WriteByte(c)
			}
			inside = inside[2:]
			continue
		}
		high, _ := strconv.ParseUint(inside[2:6], 16, 16)
		inside = inside[6:]
		if high>>10 == 0xD800>>10 && len(inside) >= 6 && inside[:2] == `\u` {
			low, _ := strconv.ParseUint(inside[2:6], 16, 16)
			if low>>10 == 0xDC00>>10 {
				b.WriteRune(rune(0x10000 + (high&0x3ff)<<10 + low&0x3ff))
				inside = inside[6:]
				continue
			}
		}
		b.WriteRune(rune(high)) // half of a character becomes U+FFFD
	}
	return b.String()
}

// fillers are what stands around: of each its first n bytes, at least, up to the end of
// a character, count.
var fillers = []string{strings.Repeat("a", 1000), strings.Repeat("aé", 400), strings.Repeat("Привет ", 100), strings.Repeat("速い茶色", 100)}

func filler(s string, n int) string {
	for !utf8.RuneStart(s[n]) {
		n++
	}
	return s[:n]
}

// around calls f with each of the parts at each place and with each length up to 100
// that is left, in texts that are short and in long ones, alone and in company.
func around(parts []string, company []string, f func(text string)) {
	for _, part := range parts {
		for i, fill := range fillers {
			for n := range 101 {
				if i > 0 && n%10 != 0 {
					continue // the parts stand anywhere with the first
				}
				before := filler(fill, n)
				f(before + part)
				for _, left := range []int{1, 33, 100 - n} {
					f(before + part + filler(fill, left))
					f(company[0] + filler(fill, 300-n) + part + filler(fill, left))
				}
				f(part + before + part + filler(fill, 300))
				for _, other := range company {
					f(other + before + part + other + filler(fill, 300))
				}
			}
		}
	}
}

func TestQuotingAgreesWithTheSimpleLoop(t *testing.T) {
	parts := []string{
		"", `"`, `\`, "\n", "\r", "\t", "\x00", "\x01", "\x1f", " ", "!", "#", "]", "[", "\x7f", `"#`, `\]`, `""\\`,
		"é", "é\"", "\u07ff", "速", "\u0800", "\ud7ff", "\ue000", "\ufffd", "🎈", "\U0010ffff", "ééééé\n", "速い茶\n",
		"\x80", "\xc3", "\xc3\"", "\xc0\xaf", "\xc1\xbf", "\xe9\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xff",
		strings.Repeat("\"\\\n", 30), strings.Repeat("\x01", 90), strings.Repeat("\xff", 90), "速い\xe9", "éé\xc3",
	}
	around(parts, []string{"\n", "é", "\xff"}, func(text string) {
		want := simpleQuote(text)
		got := jsonrpc.AppendString([]byte("kept"), text)
		if string(got) != "kept"+want {
			t.Fatalf("%q is quoted as %s, want %s", text, got, want)
		}
		back, _ := jsonrpc.Unquote(got[len("kept"):])
		if valid := string([]rune(text)); back != valid {
			t.Fatalf("%q is unquoted as %q", valid, back)
		}
	})
}

func TestQuotingUsesNoMemoryBesideItsOwn(t *testing.T) {
	for _, text := range []string{strings.Repeat("\x01", 1000), strings.Repeat("a\"", 500), strings.Repeat("a", 1000) + strings.Repeat("\n", 1000)} {
		want := simpleQuote(text)
		for _, spare := range []int{0, 1, len(want) - 1, len(want), len(want) + 1, len(want) + 500} {
			memory := bytes.Repeat([]byte{'x'}, 100+spare+100)
			got := jsonrpc.AppendString(memory[:100:100+spare], text)
			if string(got) != strings.Repeat("x", 100)+want {
				t.Errorf("%d bytes of spare memory: %q", spare, got)
			}
			if rest := memory[100+spare:]; string(rest) != strings.Repeat("x", 100) {
				t.Errorf("%d bytes of spare memory: after it %q was written", spare, rest)
			}
		}
	}
}

func TestUnquotingAgreesWithTheSimpleLoop(t *testing.T) {
	parts := []string{
		"", `\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0041`, `\u00e9`, `\u901f`, `\ud83c\udf88`, `\uD83C\uDF88`,
		`\ud83c`, `\udf88`, `\ud83cx`, `\ud83c\n`, `\ud83c\u0041`, `\\]`, `\\u0041`, `\"#`, "é", "速", "🎈", "#", "]",
		strings.Repeat(`\"`, 50), strings.Repeat(`\\`, 50), strings.Repeat(`\u00e9`, 20), strings.Repeat(`\ud83c\udf88`, 10), strings.Repeat(`\n速`, 20),
	}
	around(parts, []string{`\n`, "é", `\u00e9`}, func(inside string) {
		want, quoted := simpleUnquote(inside), `"`+inside+`"`
		if got, ok := jsonrpc.Unquote([]byte(quoted)); !ok || got != want {
			t.Fatalf("%s is unquoted as %q, want %q", quoted, got, want)
		}
		for _, rest := range []string{"", `}]`, `,"` + strings.Repeat(`\"`, 100)} {
			if got, left, ok := jsonrpc.UnquotePrefix([]byte(quoted + rest)); !ok || got != want || string(left) != rest {
				t.Fatalf("%s is unquoted as %q with %q left, want %q", quoted+rest, got, left, want)
			}
		}
	})
}

func TestScanningAgreesWithTheSimpleLoop(t *testing.T) {
	parts := []string{
		"", `"`, `\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u00e9`, `\ud83c\udf88`, `\ud83c`, `\\"`, `\"#`, `"#`, `\\]`,
		`\`, `\x`, `\é`, `\u`, `\u12`, `\u12g4`, "\\\n", "\n", "\x00", "\x1f", " ", "#", "]", "\x7f",
		"é", "é\n", "速", "速\n", "🎈", "\u0800", "\ud7ff", "\ue000", "\U0010ffff",
		"\x80", "\xc3", "\xc3\"", "\xc3\\n", "\xc0\xaf", "\xc1\xbf", "\xe9\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xff",
		strings.Repeat(`\"`, 50), strings.Repeat(`\\`, 50), strings.Repeat("\xff", 50), "速い\xe9", "éé\xc3",
	}
	around(parts, []string{`\n`, "é", "\xff"}, func(inside string) {
		for _, end := range []string{`"`, `"` + strings.Repeat(" ", 40), ""} {
			raw := `"` + inside + end
			want, ok := simpleScan(raw)
			_, err := jsonrpc.ParseValue([]byte(raw))
			var got *jsonrpc.SyntaxError
			switch {
			case !errors.As(err, &got):
				if !ok {
					t.Fatalf("%q is accepted, want %+v", raw, want)
				}
			case got.Reason == "data after the end of the value": // a quote in its midst
				if raw[got.Offset-1] != '"' && raw[got.Offset-1] != ' ' {
					t.Fatalf("%q: %v", raw, err)
				}
			case ok || fault{got.Offset, got.Reason} != want:
				t.Fatalf("%q: %v, want %+v", raw, err, want)
			}
		}
	})
}

// A name is found by what it means, however long it is and wherever in it an escape
// stands.
func TestLongNamesAreFound(t *testing.T) {
	around([]string{"", `\n`, `\"`, `\\`, `\u00e9`, "é", "速"}, []string{"é", `\t`}, func(name string) {
		v := parse(t, `{"`+name+`":1,"other":2}`)
		for _, v := range []jsonrpc.Value{v, jsonrpc.Trusted(v.Raw())} {
			if got, ok := v.Lookup(simpleUnquote(name)); !ok || string(got) != "1" {
				t.Fatalf("%s is not found", name)
			}
		}
	})
}
