package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Text is looked at eight bytes at a time, and in blocks of four times that.
const (
	wordBytes  = 8
	blockBytes = 32

	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special marks, in the high bit of each byte of w, bytes that a string cannot
// pass over blindly: controls, quotes, backslashes and non-ASCII. Only the
// lowest mark is exact; among those above it there may be one of a byte that is plain.
func special(w uint64) uint64 {
	quote := (w ^ lowBits*('"'^' ')) - lowBits*('"'-1) // the quote changes places with the space
	slash := (w ^ lowBits*'\\') - lowBits
	return (quote | slash) & highBits // what is not ASCII keeps its high bit in one of them
}

// plain returns the index at or after i of the first special byte, or len(data).
func plain(data []byte, i int) int {
	for i+blockBytes <= len(data) {
		b := data[i : i+blockBytes : i+blockBytes]
		m0 := special(binary.LittleEndian.Uint64(b))
		m1 := special(binary.LittleEndian.Uint64(b[8:]))
		m2 := special(binary.LittleEndian.Uint64(b[16:]))
		m3 := special(binary.LittleEndian.Uint64(b[24:]))
		switch {
		case m0|m1|m2|m3 == 0:
			i += blockBytes
			continue
		case m0 != 0:
			return i + bits.TrailingZeros64(m0)/8
		case m1 != 0:
			return i + 8 + bits.TrailingZeros64(m1)/8
		case m2 != 0:
			return i + 16 + bits.TrailingZeros64(m2)/8
		}
		return i + 24 + bits.TrailingZeros64(m3)/8
	}
	for i+8 <= len(data) {
		if m := special(binary.LittleEndian.Uint64(data[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		i += 8
	}
	for i < len(data) {
		if c := data[i]; c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
			return i
		}
		i++
	}
	return i
}

// moveBlock copies a block.
func moveBlock(to, of []byte) {
	block := *(*[blockBytes]byte)(of)
	*(*[blockBytes]byte)(to) = block
}

// gather returns the high bits of the bytes of m, which has no others, as its lowest
// byte.
func gather(m uint64) uint64 { return m >> 7 * 0x0102040810204080 >> 56 }

// from returns the bits from n on.
func from(n int) uint64 { return ^uint64(0) << uint(n) }

// quoteOrSlash returns the index at or after i of the first quote or backslash,
// or at least len(data).
func quoteOrSlash(data []byte, i int) int {
	for i+16 <= len(data) {
		b := data[i : i+16 : i+16]
		m0 := quotesAndSlashes(binary.LittleEndian.Uint64(b))
		m1 := quotesAndSlashes(binary.LittleEndian.Uint64(b[8:]))
		if m0|m1 == 0 {
			i += 16
			continue
		}
		if m0 != 0 {
			return i + bits.TrailingZeros64(m0)/8
		}
		return i + 8 + bits.TrailingZeros64(m1)/8
	}
	for i < len(data) && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

// quotesAndSlashes is like special, for quotes and backslashes alone.
func quotesAndSlashes(w uint64) uint64 {
	quote := (w ^ lowBits*'"') - lowBits
	slash := (w ^ lowBits*'\\') - lowBits
	return (quote | slash) &^ w & highBits
}

// validRunes returns the index of the first byte at or after i that is ASCII or not
// UTF-8.
func validRunes(data []byte, i int) int {
	for i < len(data) && data[i] >= utf8.RuneSelf {
		if len(data)-i >= wordBytes {
			n := commonRunes(binary.LittleEndian.Uint64(data[i:]))
			if i += n; n > 0 {
				continue
			}
		}
		n := runeLen(data[i:])
		if n == 0 {
			return i
		}
		i += n
	}
	return i
}

// commonRunes returns how many bytes at the beginning of w are characters that come
// in rows: of two bytes each, or of three. It need not find all of them.
func commonRunes(w uint64) int {
	const (
		lead2, head2 = 0xC0E0, 0x80C0     // bits that are the same in all characters of two bytes
		lead3, head3 = 0xC0C0F0, 0x8080E0 // and of three
	)
	switch {
	case w&lead2 != head2:
	case w&(lead2*0x0001_0001_0001_0001) == head2*0x0001_0001_0001_0001 && longEnough(w):
		return 8
	case w&0x1E != 0:
		return 2
	}
	switch {
	case w&lead3 != head3 || !isPlainThree(w):
	case w>>24&lead3 == head3 && isPlainThree(w>>24):
		return 6
	default:
		return 3
	}
	return 0
}

// longEnough reports whether none of four characters of two bytes would fit into one.
func longEnough(w uint64) bool {
	const each = 0x0001_0001_0001_0001
	return (w&(0x1E*each)+0x7E*each)&(0x80*each) == 0x80*each
}

// isPlainThree reports whether a character of three bytes begins with none of those
// after which not every second one is allowed: 0xE0 and 0xED.
func isPlainThree(w uint64) bool {
	c := w & 0x0F
	return c != 0 && c != 0x0D
}

// runeLen returns the length of the non-ASCII character that b begins with, 0
// if it is not valid UTF-8.
func runeLen(b []byte) int {
	c := b[0]
	switch {
	case 0xC2 <= c && c <= 0xDF && len(b) >= 2 && b[1]&0xC0 == 0x80:
		return 2
	case 0xE1 <= c && c <= 0xEC && len(b) >= 3 && b[1]&0xC0 == 0x80 && b[2]&0xC0 == 0x80:
		return 3
	}
	if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
		return n
	}
	return 0
}
