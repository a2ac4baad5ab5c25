package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends text as a JSON string. Bytes that are not UTF-8 become
// U+FFFD. It may write behind the end of what it returns, up to the capacity of dst.
func AppendString[T ~string | ~[]byte](dst []byte, text T) []byte {
	return appendString(dst, []byte(text)) // is not copied, as nothing changes it
}

func appendString(dst, data []byte) []byte {
	dst = append(dst, '"')
	done := plain(data, 0)
	if len(data)-done < minBlocks {
		return append(appendQuoted(dst, data, done), '"')
	}
	dst = append(roomFor(dst, len(data)), data[:done]...)
	data = data[done:]
	dst, done = appendQuotedBlocks(dst, data)
	data = data[done:]
	return append(appendQuoted(dst, data, plain(data, 0)), '"')
}

// appendQuoted appends data with escapes, run by run. What is before i is plain.
func appendQuoted(dst, data []byte, i int) []byte {
	start := 0
	for ; i < len(data); i = plain(data, i) {
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
	return append(dst, data[start:]...)
}

const (
	// minBlocks is from how many bytes on a text is quoted block by block.
	minBlocks = 256
	// mostQuoted is how much is written for a block: nothing but escapes, what is
	// overwritten after them, and the rest of a word.
	mostQuoted = blockBytes*len(`\u0000`) + blockBytes + wordBytes
)

// appendQuotedBlocks appends data with escapes, block by block, up to where less than
// two blocks are left, and returns the index of that. Each block is copied before it is
// looked at, and what follows an escape is copied again to its place after that: it
// costs less than to find out how much is to be copied. A call for each block would
// cost a quarter of the whole.
func appendQuotedBlocks(dst, data []byte) ([]byte, int) {
	base, n := 0, len(dst)
	valid := 0 // the characters before are
	out := dst[:cap(dst)]
	for ; len(data)-base >= 2*blockBytes; base += blockBytes {
		if len(out)-n < mostQuoted {
			dst = roomFor(out[:n], len(data)-base)
			out = dst[:cap(dst)]
		}
		b := data[base : base+2*blockBytes : base+2*blockBytes]
		to := out[n : n+mostQuoted : n+mostQuoted]
		w0, w1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		w2, w3 := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		moveBlock(to, b)
		m0, m1, m2, m3 := special(w0), special(w1), special(w2), special(w3)
		if m0|m1|m2|m3 == 0 {
			n += blockBytes
			continue
		}
		m := gather(m0) | gather(m1)<<8 | gather(m2)<<16 | gather(m3)<<24
		if valid > base {
			m &= from(valid - base)
		}
		put, placed := 0, 0 // so much of the block is in its place for good, as so much
		for m != 0 {
			k := bits.TrailingZeros64(m) & (blockBytes - 1)
			m &= m - 1
			c := b[k]
			if c >= utf8.RuneSelf {
				if c >= 0xC2 && c <= 0xDF && b[k+1]&0xC0 == 0x80 && m&(4<<uint(k)) == 0 { // alone
					valid = base + k + 2
					m &^= 2 << uint(k)
					continue
				}
				if end := validRunes(data, base+k); end > base+k {
					valid = end
					m &= from(valid - base)
					continue
				}
			}
			escape := escapes[c]
			if escape == 0 {
				continue // it is plain
			}
			put += k - placed
			placed = k + 1
			e := to[put : put+blockBytes+wordBytes : put+blockBytes+wordBytes]
			binary.LittleEndian.PutUint64(e, escape)
			put += int(escape >> 56)
			moveBlock(e[escape>>56&7:], b[placed:])
		}
		n += put + blockBytes - placed
	}
	dst = out[:n]
	if valid > base {
		dst, base = append(dst, data[base:valid]...), valid
	}
	return dst, base
}

// roomFor returns dst, grown if need be so that n bytes fit that have few escapes.
func roomFor(dst []byte, n int) []byte {
	if cap(dst)-len(dst) < n+mostQuoted {
		dst = slices.Grow(dst, n+n/16+mostQuoted)
	}
	return dst
}

// escapes are what is written instead of a byte: up to six bytes, and in the highest
// byte their number; 0 for a byte that needs none. Bytes that are not ASCII are looked
// for here if they are not UTF-8.
var escapes = func() (list [256]uint64) {
	for i := range list {
		var escape [8]byte
		n := 0
		switch c := byte(i); {
		case c >= utf8.RuneSelf:
			n = copy(escape[:], "\ufffd")
		case plain([]byte{c}, 0) == 0:
			n = copy(escape[:], appendEscape(nil, c))
		}
		list[i] = binary.LittleEndian.Uint64(escape[:]) | uint64(n)<<56
	}
	return list
}()

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
