package mcp_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/mcp"
)

var longURI = "file:///" + strings.Repeat("a/é?", 8<<10/5)

// headerValues are texts and what goes on the wire for them.
var headerValues = []struct{ name, text, header string }{
	{"B118 plain", "fast", "fast"},
	{"B118 example plain", "us-west1", "us-west1"},
	{"B118 example not ASCII", "Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="},
	{"B118 example padded", " padded ", "=?base64?IHBhZGRlZCA=?="},
	{"B118 example line break", "line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
	{"B118 example sentinel", "=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
	{"B118 line break", "a\nb", "=?base64?YQpi?="},
	{"B118 CR", "a\rb", "=?base64?YQ1i?="},
	{"B118 NUL", "\x00", "=?base64?AA==?="},
	{"B118 DEL", "\x7f", "=?base64?fw==?="},
	{"B118 sentinel around Base64", "=?base64?dGVzdA==?=", "=?base64?PT9iYXNlNjQ/ZEdWemRBPT0/PQ==?="},
	{"B118 sentinel around nothing", "=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="},
	{"B118 prefix and suffix that overlap", "=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="},
	{"B118 upper-case marker", "=?BASE64?dGVzdA==?=", "=?BASE64?dGVzdA==?="},
	{"B118 prefix alone", "=?base64?dGVzdA==", "=?base64?dGVzdA=="},
	{"B118 suffix alone", "dGVzdA==?=", "dGVzdA==?="},
	{"B118 URI not ASCII", "file:///p/é.txt", "=?base64?ZmlsZTovLy9wL8OpLnR4dA==?="},
	{"B118 long URI", longURI, "=?base64?" + base64.StdEncoding.EncodeToString([]byte(longURI)) + "?="},
	{"B118 long plain URI", "file:///" + strings.Repeat("a/", 4<<10), "file:///" + strings.Repeat("a/", 4<<10)},
	{"B118 tab inside", "a\tb", "a\tb"},
	{"B118 tab at the end", "a\t", "=?base64?YQk=?="},
	{"B118 space inside", "a b", "a b"},
	{"B118 space alone", " ", "=?base64?IA==?="},
	{"B118 empty", "", ""},
	{"B118 comma and quotes", `a, "b"; c=~`, `a, "b"; c=~`},
}

func TestHeaderValuesAreEncodedIfUnsafe(t *testing.T) {
	for _, c := range headerValues {
		t.Run(c.name, func(t *testing.T) {
			if got := mcp.EncodeHeader(c.text); got != c.header {
				t.Errorf("got  %q\nwant %q", got, c.header)
			}
			if got, ok := mcp.DecodeHeader(c.header); !ok || got != c.text {
				t.Errorf("decoded as %q, %t", got, ok)
			}
		})
	}
}

func TestHeaderValuesAreDecodedOrRefused(t *testing.T) {
	for _, c := range []struct {
		name, header, want string
		ok                 bool
	}{
		{"B118 needlessly encoded", "=?base64?ZmFzdA==?=", "fast", true},
		{"B118 encoded nothing", "=?base64??=", "", true},
		{"B118 markers that overlap are none", "=?base64?=", "=?base64?=", true},
		{"B118 upper-case marker is none", "=?BASE64?ZmFzdA==?=", "=?BASE64?ZmFzdA==?=", true},
		{"B118 mixed-case marker is none", "=?Base64?!!?=", "=?Base64?!!?=", true},
		{"B118 another charset is none", "=?utf-8?B?ZmFzdA==?=", "=?utf-8?B?ZmFzdA==?=", true},
		{"B118 no Base64", "=?base64?!!!?=", "", false},
		{"B118 Base64 cut short", "=?base64?ZmFzd?=", "", false},
		{"B118 Base64 without padding", "=?base64?ZmFzdA?=", "", false},
		{"B118 Base64 for URLs", "=?base64?PT9iYXNlNjQ_Pz0=?=", "", false},
		{"B118 Base64 with a space", "=?base64?ZmFz dA==?=", "", false},
		{"B118 Base64 of invalid UTF-8", "=?base64?/w==?=", "", false},
		{"B118 Base64 of half a character", "=?base64?5Lg=?=", "", false},
		{"B118 Base64 of a surrogate", "=?base64?7aCA?=", "", false},
		{"B118 raw UTF-8", "Hello, 世界", "", false},
		{"B118 raw Latin-1", "caf\xe9", "", false},
		{"B118 raw UTF-8 between markers", "=?base64?é?=", "", false},
		{"B118 CR and LF", "a\r\nb", "", false},
		{"B118 LF inside Base64", "=?base64?ZmFz\ndA==?=", "", false},
		{"B118 NUL", "a\x00b", "", false},
		{"B118 DEL", "a\x7f", "", false},
		{"B118 tab", "a\tb", "a\tb", true},
		{"B118 control characters that were encoded", "=?base64?DQoA?=", "\r\n\x00", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := mcp.DecodeHeader(c.header); got != c.want || ok != c.ok {
				t.Errorf("got %q, %t, want %q, %t", got, ok, c.want, c.ok)
			}
		})
	}
}

// FuzzHeaderValue checks (B118) that every text comes back from its header,
// that a header holds only what it may, and that what is decoded is UTF-8.
func FuzzHeaderValue(f *testing.F) {
	if len(headerValues) == 0 {
		f.Fatal("no seeds")
	}
	for _, c := range headerValues {
		f.Add(c.text)
		f.Add(c.header)
	}
	f.Add("caf\xe9")
	f.Add("=?base64?/w==?=")
	f.Fuzz(func(t *testing.T, text string) {
		header := mcp.EncodeHeader(text)
		for i := range len(header) {
			if c := header[i]; c > 0x7e || c < 0x20 && c != '\t' {
				t.Fatalf("%q is sent as %q", text, header)
			}
		}
		if strings.Trim(header, " \t") != header {
			t.Fatalf("%q is sent as %q, which loses its ends on the way", text, header)
		}
		back, ok := mcp.DecodeHeader(header)
		if ok != utf8.ValidString(text) || ok && back != text {
			t.Fatalf("%q is sent as %q and comes back as %q, %t", text, header, back, ok)
		}
		if decoded, ok := mcp.DecodeHeader(text); ok {
			again, ok := mcp.DecodeHeader(mcp.EncodeHeader(decoded))
			if !ok || again != decoded || !utf8.ValidString(decoded) {
				t.Fatalf("%q is decoded as %q, which comes back as %q, %t", text, decoded, again, ok)
			}
		}
	})
}
