package floor

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote decodes what is between the quotes of a JSON string.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	var b strings.Builder
	b.Grow(len(raw))
	for {
		plain, rest, found := bytes.Cut(raw, []byte{'\\'})
		b.Write(plain)
		if !found || len(rest) == 0 {
			return b.String()
		}
		raw = rest[1:]
		switch c := rest[0]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			var r rune
			r, raw = codePoint(raw)
			b.WriteRune(r)
		default:
			b.WriteByte(c)
		}
	}
}

// codePoint decodes the four digits that follow \u, and a second escape when
// the two are a surrogate pair.
func codePoint(raw []byte) (rune, []byte) {
	r, rest := digits(raw)
	if !utf16.IsSurrogate(r) {
		return r, rest
	}
	if second, ok := bytes.CutPrefix(rest, []byte(`\u`)); ok {
		low, after := digits(second)
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, after
		}
	}
	return utf8.RuneError, rest
}

func digits(raw []byte) (rune, []byte) {
	const width = 4
	if len(raw) < width {
		return utf8.RuneError, nil
	}
	n, err := strconv.ParseUint(string(raw[:width]), 16, 16)
	if err != nil {
		return utf8.RuneError, raw[width:]
	}
	return rune(n), raw[width:]
}

// appendQuoted encodes s as what is between the quotes of a JSON string.
func appendQuoted(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	done := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, `\n`...)
		case '\t':
			out = append(out, `\t`...)
		case '\r':
			out = append(out, `\r`...)
		default:
			out = append(out, `\u00`...)
			out = append(out, hex[c>>4], hex[c&0xf])
		}
	}
	return append(out, s[done:]...)
}
