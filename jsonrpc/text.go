package jsonrpc

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
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
	text := appendUnescaped(make([]byte, 0, len(raw)), raw)
	// Nothing else refers to this memory: a long text need not be copied again.
	return unsafe.String(unsafe.SliceData(text), len(text)), true
}

// UnquotePrefix is Unquote for the JSON string that raw, which is known to be valid,
// begins with. It returns what follows it.
func UnquotePrefix(raw []byte) (text string, rest []byte, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", raw, false
	}
	end := quoteOrSlash(raw, 1)
	if end >= len(raw) {
		return "", raw, false
	}
	if raw[end] == '"' {
		return string(raw[1:end]), raw[end+1:], true
	}
	dst := append(make([]byte, 0, len(raw)), raw[1:end]...)
	for end < len(raw) && raw[end] == '\\' {
		dst, end = appendEscaped(dst, raw, end)
		next := min(quoteOrSlash(raw, end), len(raw))
		dst = append(dst, raw[end:next]...)
		end = next
	}
	if end >= len(raw) {
		return "", raw, false
	}
	return unsafe.String(unsafe.SliceData(dst), len(dst)), raw[end+1:], true
}

// appendUnescaped appends the inside of a valid JSON string without escapes.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			end := textEnd(raw, i)
			dst = append(dst, raw[i:end]...)
			i = end
			continue
		}
		dst, i = appendEscaped(dst, raw, i)
	}
	return dst
}

// appendEscaped appends the character whose escape begins at i, and returns the
// index after that.
func appendEscaped(dst, raw []byte, i int) ([]byte, int) {
	switch c := raw[i+1]; c {
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
		r, n := unescapeRune(raw[i:])
		return utf8.AppendRune(dst, r), i + n
	default:
		dst = append(dst, c)
	}
	return dst, i + 2
}

// textEnd returns the index after i of the next backslash, or len(raw).
func textEnd(raw []byte, i int) int {
	return min(quoteOrSlash(raw, i+1), len(raw))
}

// unescapeRune returns the character whose escapes raw begins with, and their
// length. A lone surrogate is U+FFFD.
func unescapeRune(raw []byte) (rune, int) {
	const length = len(`\u0000`)
	r, _ := hex4(raw[2:])
	if !utf16.IsSurrogate(r) {
		return r, length
	}
	low, ok := lowSurrogate(raw[length:])
	if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
		return r, 2 * length
	}
	return utf8.RuneError, length
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
	return appendString(dst, []byte(text)) // is not copied, as nothing changes it
}

func appendString(dst, data []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := plain(data, 0); i < len(data); i = plain(data, i) {
		switch c := data[i]; {
		case c >= 0xC2 && c <= 0xDF && i+1 < len(data) && data[i+1]&0xC0 == 0x80:
			i += 2
		case c >= utf8.RuneSelf:
			if i = validRunes(data, i); i < len(data) && data[i] >= utf8.RuneSelf {
				dst = append(append(dst, data[start:i]...), "\ufffd"...)
				i++
				start = i
			}
		default:
			dst = appendEscape(append(dst, data[start:i]...), c)
			i++
			start = i
		}
	}
	return append(append(dst, data[start:]...), '"')
}

// validRunes returns the index of the first byte at or after i that is ASCII or not
// UTF-8.
func validRunes(data []byte, i int) int {
	for i < len(data) && data[i] >= utf8.RuneSelf {
		n := runeLen(data[i:])
		if n == 0 {
			return i
		}
		i += n
	}
	return i
}

// appendEscape appends the escape of a quote, a backslash or a control.
func appendEscape(dst []byte, c byte) []byte {
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
