package jsonrpc

import (
	"bytes"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns the text of the JSON string raw, which is known to be valid,
// and whether raw is a string at all. An escaped lone surrogate becomes U+FFFD.
func Unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	// What is unescaped is no longer. A builder needs no second copy of it.
	var b strings.Builder
	b.Grow(len(raw))
	for len(raw) > 0 {
		if i := bytes.IndexByte(raw, '\\'); i != 0 {
			if i < 0 {
				i = len(raw)
			}
			b.Write(raw[:i])
			raw = raw[i:]
			continue
		}
		var piece [utf8.UTFMax]byte
		n := escapeSize(raw)
		b.Write(appendUnescaped(piece[:0], raw[:n]))
		raw = raw[n:]
	}
	return b.String(), true
}

// escapeSize returns the length of the escape that raw begins with, both halves
// of a surrogate pair taken together.
func escapeSize(raw []byte) int {
	if raw[1] != 'u' {
		return 2
	}
	if r, _ := hex4(raw[2:]); utf16.IsSurrogate(r) {
		if low, ok := lowSurrogate(raw[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12
		}
	}
	return 6
}

// appendUnescaped appends the inside of a valid JSON string without escapes.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		switch c = raw[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(raw[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				low, ok := lowSurrogate(raw[i:])
				if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
					i += 6
				} else {
					r = utf8.RuneError
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		default:
			dst = append(dst, c)
		}
		i += 2
	}
	return dst
}

func lowSurrogate(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	return hex4(b[2:])
}

const hexDigits = "0123456789abcdef"

// AppendString appends text as a JSON string. Bytes that are not UTF-8 become
// U+FFFD.
func AppendString[T ~string | ~[]byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, text[start:i]...), "\ufffd"...)
				start = i + n
			}
			i += n
		case c < 0x20 || c == '"' || c == '\\':
			dst = appendEscaped(append(dst, text[start:i]...), c)
			i++
			start = i
		default:
			i = ordinary(text, i+1)
		}
	}
	return append(append(dst, text[start:]...), '"')
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// ordinary is plain for text that is not in a JSON string yet. It may stop short
// of the next special byte.
func ordinary[T ~string | ~[]byte](text T, i int) int {
	for i+8 <= len(text) {
		t := text[i : i+8]
		w := uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
		if m := special(w); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		i += 8
	}
	return i
}
