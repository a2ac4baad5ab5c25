package jsonrpc

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
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
	dst, end = appendToQuote(dst, raw, end)
	if end >= len(raw) {
		return "", raw, false
	}
	return unsafe.String(unsafe.SliceData(dst), len(dst)), raw[end+1:], true
}

// appendUnescaped appends the inside of a valid JSON string without escapes.
func appendUnescaped(dst, raw []byte) []byte {
	dst, _ = appendToQuote(slices.Grow(dst, len(raw)), raw, 0)
	return dst
}

// appendToQuote appends what is in raw, a valid JSON string, from i up to its quote or
// its end, without escapes, and returns the index of that. There is room in dst for all
// of raw that is left.
func appendToQuote(dst, raw []byte, i int) ([]byte, int) {
	dst, i = appendBlocks(dst, raw, i)
	for i < len(raw) && raw[i] != '"' {
		if raw[i] == '\\' {
			dst, i = appendEscaped(dst, raw, i)
			continue
		}
		next := min(quoteOrSlash(raw, i), len(raw))
		dst = append(dst, raw[i:next]...)
		i = next
	}
	return dst, i
}

// unquoteSlack is how far from the beginning of a block bytes are read: those of a
// block after an escape of two halves, which begins with the block's last byte.
const unquoteSlack = blockBytes + 2*len(`\u0000`) + blockBytes

// appendBlocks is appendToQuote, block by block, up to where not much is left. Each
// block is copied before it is looked at, as in appendQuotedBlocks.
func appendBlocks(dst, raw []byte, base int) ([]byte, int) {
	n := len(dst)
	out := dst[:cap(dst)]
	for len(raw)-base >= unquoteSlack && len(out)-n >= unquoteSlack {
		b := raw[base : base+unquoteSlack : base+unquoteSlack]
		to := out[n : n+unquoteSlack : n+unquoteSlack]
		w0, w1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		w2, w3 := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		moveBlock(to, b)
		m0, m1, m2, m3 := quotesAndSlashes(w0), quotesAndSlashes(w1), quotesAndSlashes(w2), quotesAndSlashes(w3)
		if m0|m1|m2|m3 == 0 {
			n += blockBytes
			base += blockBytes
			continue
		}
		m := gather(m0) | gather(m1)<<8 | gather(m2)<<16 | gather(m3)<<24
		put, placed := 0, 0 // so much of the block is in its place for good, as so much
		for m != 0 {
			k := bits.TrailingZeros64(m) & (blockBytes - 1)
			m &= m - 1
			switch b[k] {
			case '"':
				return out[:n+put+k-placed], base + k
			case '\\':
			default:
				continue
			}
			put += k - placed
			if c := unescaped[b[k+1]]; c != 0 {
				to[put] = c
				put++
				placed = k + 2
				m &^= 2 << uint(k)
			} else {
				r, length := unescapeRune(b[k:])
				put += utf8.EncodeRune(to[put:], r)
				placed = k + length
				m &= from(placed)
			}
			moveBlock(to[put:], b[placed:])
		}
		n += put + max(blockBytes-placed, 0)
		base += max(blockBytes, placed)
	}
	return out[:n], base
}

// appendEscaped appends the character whose escape begins at i, and returns the
// index after that.
func appendEscaped(dst, raw []byte, i int) ([]byte, int) {
	if raw[i+1] == 'u' {
		r, n := unescapeRune(raw[i:])
		return utf8.AppendRune(dst, r), i + n
	}
	return append(dst, unescaped[raw[i+1]]), i + len(`\n`)
}

// unescaped is the characters that escapes of two bytes stand for, by the second one.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
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
