package jsonrpc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deeply arrays and objects may nest in a message. It is the
// depth at which common JSON readers of other languages give up as well.
const MaxDepth = 1000

// A SyntaxError says why bytes are not one JSON value in UTF-8.
type SyntaxError struct {
	Offset int    // byte offset of the first byte that does not fit
	Reason string // what was expected or seen
}

// Error names the fault and its place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

// A scanner passes once over one JSON text.
//
// Faults that leave the structure readable (bad UTF-8, nesting beyond MaxDepth,
// duplicate members) are kept in soft and the scan goes on, so that the id of
// the message is found and the answer can carry it.
type scanner struct {
	data    []byte
	pos     int
	breaks  bool  // CR or LF was seen between tokens
	soft    error // the first fault that did not end the scan
	trusted bool  // the data is known to be valid: strings are passed over unread
}

// bom is a UTF-8 byte order mark, which a reader may ignore (RFC 8259, 8.1).
var bom = []byte("\xef\xbb\xbf")

// newScanner returns a scanner of data, which is refused if it is too long for
// the offsets of an index.
func newScanner(data []byte) (scanner, error) {
	if uint64(len(data)) > math.MaxUint32 {
		return scanner{}, &SyntaxError{Offset: len(data), Reason: "longer than 4 GiB"}
	}
	return scanner{data: data}, nil
}

// skipBOM passes over a byte order mark.
func (s *scanner) skipBOM() {
	if bytes.HasPrefix(s.data, bom) {
		s.pos = len(bom)
	}
}

// fail returns the fault that the byte at pos is.
func (s *scanner) fail(reason string) error {
	if s.pos >= len(s.data) {
		return &SyntaxError{Offset: len(s.data), Reason: "unexpected end of input"}
	}
	return &SyntaxError{Offset: s.pos, Reason: reason}
}

// end makes sure that nothing but white space is left.
func (s *scanner) end() error {
	if s.space(); s.pos < len(s.data) {
		return s.fail("data after the end of the value")
	}
	return nil
}

// space skips white space and returns the next byte, or 0 at the end.
func (s *scanner) space() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t':
		case '\n', '\r':
			s.breaks = true
		default:
			return c
		}
		s.pos++
	}
	return 0
}

// str passes over a string whose opening quote is at pos and tells whether it
// holds escapes. Escaped lone surrogates are let through as they came.
func (s *scanner) str() (escaped bool, err error) {
	i := plain(s.data, s.pos+1)
	if i < len(s.data) && s.data[i] == '"' {
		s.pos = i + 1
		return false, nil
	}
	return s.strFrom(i)
}

// strFrom is str for a string whose characters before i are plain. It finds all bytes
// of a block that are to be looked at before it looks at the first of them, so that
// the processor need not wait for where one ends to find the next.
func (s *scanner) strFrom(i int) (escaped bool, err error) {
	data := s.data
	base := i
	for len(data)-base >= blockBytes {
		b := data[base : base+blockBytes : base+blockBytes]
		m0 := special(binary.LittleEndian.Uint64(b))
		m1 := special(binary.LittleEndian.Uint64(b[8:]))
		m2 := special(binary.LittleEndian.Uint64(b[16:]))
		m3 := special(binary.LittleEndian.Uint64(b[24:]))
		if m0|m1|m2|m3 == 0 {
			base += blockBytes
			continue
		}
		m := gather(m0) | gather(m1)<<8 | gather(m2)<<16 | gather(m3)<<24
		for m != 0 {
			k := bits.TrailingZeros64(m)
			c, next := b[k&(blockBytes-1)], byte(0)
			if k < blockBytes-1 {
				next = b[k+1]
			}
			switch {
			case c == '"':
				s.pos = base + k + 1
				return escaped, nil
			case c == '\\' && unescaped[next] != 0:
				escaped = true
				fallthrough
			case c >= 0xC2 && c <= 0xDF && next&0xC0 == 0x80 && m&(4<<uint(k&63)) == 0: // alone
				m &^= 3 << uint(k&63)
				i = base + k + 2
				continue
			}
			escaped = escaped || c == '\\'
			if i, err = s.odd(base + k); err != nil {
				return escaped, err
			}
			m &= from(i - base)
		}
		base = max(base+blockBytes, i)
	}
	for i = plain(data, max(i, base)); i < len(data); i = plain(data, i) {
		if data[i] == '"' {
			s.pos = i + 1
			return escaped, nil
		}
		escaped = escaped || data[i] == '\\'
		if i, err = s.odd(i); err != nil {
			return escaped, err
		}
	}
	s.pos = i
	return escaped, s.fail("")
}

// odd passes over what is at i in a string, which may be anything but a quote.
func (s *scanner) odd(i int) (int, error) {
	data := s.data
	switch c := data[i]; {
	case c >= utf8.RuneSelf:
		return s.runes(i), nil
	case c == '\\':
		if i+1 < len(data) && unescaped[data[i+1]] != 0 {
			return i + 2, nil
		}
		n := escapeLen(data[i:])
		if n == 0 {
			s.pos = i
			return i, s.fail("bad escape in a string")
		}
		return i + n, nil
	case c < 0x20:
		s.pos = i
		return i, s.fail("control character in a string")
	}
	return i + 1, nil
}

// runes passes over the non-ASCII characters that begin at i.
func (s *scanner) runes(i int) int {
	for {
		if i = validRunes(s.data, i); i >= len(s.data) || s.data[i] < utf8.RuneSelf {
			return i
		}
		if s.soft == nil {
			s.soft = &SyntaxError{Offset: i, Reason: "invalid UTF-8 in a string"}
		}
		i++
	}
}

// skipStr passes over a valid string whose opening quote is at pos, by looking
// for its end.
func (s *scanner) skipStr() error {
	i := quoteOrSlash(s.data, s.pos+1)
	for i < len(s.data) && s.data[i] == '\\' {
		i = quoteOrSlash(s.data, i+2)
	}
	if s.pos = i + 1; i >= len(s.data) {
		s.pos = len(s.data)
		return s.fail("")
	}
	return nil
}

// escapeLen returns the length of the escape that b begins with, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number passes over a number that begins at pos.
func (s *scanner) number() error {
	i, data := s.pos, s.data
	if data[i] == '-' {
		i++
	}
	start := i
	for i < len(data) && isDigit(data[i]) {
		i++
	}
	if i == start || (data[start] == '0' && i > start+1) {
		s.pos = start
		return s.fail("malformed number")
	}
	if i < len(data) && data[i] == '.' {
		i++
		start = i
		for i < len(data) && isDigit(data[i]) {
			i++
		}
		if i == start {
			s.pos = i
			return s.fail("malformed number")
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		start = i
		for i < len(data) && isDigit(data[i]) {
			i++
		}
		if i == start {
			s.pos = i
			return s.fail("malformed number")
		}
	}
	s.pos = i
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (s *scanner) literal(want string) error {
	if len(s.data)-s.pos >= len(want) && string(s.data[s.pos:s.pos+len(want)]) == want {
		s.pos += len(want)
		return nil
	}
	return s.fail("unknown literal")
}

// scalar passes over a value that is neither array nor object.
func (s *scanner) scalar(c byte) error {
	switch {
	case c == '"' && s.trusted:
		return s.skipStr()
	case c == '"':
		_, err := s.str()
		return err
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.fail("a value was expected")
}

// value passes over the value at pos, which stands in depth containers.
func (s *scanner) value(depth int) error {
	c := s.space()
	if c != '{' && c != '[' {
		return s.scalar(c)
	}
	return s.container(depth)
}

// container passes over the array or object at pos without recursion: one bit
// for each open container says which of the two it is.
func (s *scanner) container(depth int) error {
	var objects [MaxDepth/64 + 1]uint64
	base := depth
	for {
		c := s.space()
		if c == '{' || c == '[' {
			if depth >= MaxDepth {
				if err := s.skipNested(); err != nil {
					return err
				}
			} else {
				depth++
				bit := uint64(1) << (depth & 63)
				objects[depth>>6] &^= bit
				if c == '{' {
					objects[depth>>6] |= bit
				}
				s.pos++
				closing := c + 2 // ']' and '}' follow their openings by two
				if s.space() != closing {
					if c == '{' {
						if err := s.name(); err != nil {
							return err
						}
					}
					continue
				}
				s.pos++
				depth--
			}
		} else if err := s.scalar(c); err != nil {
			return err
		}
		// A value has ended: what follows closes containers or goes on in one.
		for {
			if depth == base {
				return nil
			}
			inObject := objects[depth>>6]&(1<<(depth&63)) != 0
			c = s.space()
			if c == ',' {
				s.pos++
				if inObject {
					if err := s.name(); err != nil {
						return err
					}
				}
				break
			}
			if (inObject && c != '}') || (!inObject && c != ']') {
				return s.fail("a comma or the end of the array or object was expected")
			}
			s.pos++
			depth--
		}
	}
}

// name passes over a member's name and its colon.
func (s *scanner) name() error {
	if s.space() != '"' {
		return s.fail("a member name was expected")
	}
	if _, err := s.str(); err != nil {
		return err
	}
	return s.colon()
}

func (s *scanner) colon() error {
	if s.space() != ':' {
		return s.fail("a colon was expected")
	}
	s.pos++
	return nil
}

// skipNested passes over a container that is nested too deeply, counting
// brackets only.
func (s *scanner) skipNested() error {
	if s.soft == nil {
		s.soft = &SyntaxError{
			Offset: s.pos,
			Reason: fmt.Sprintf("nesting deeper than the limit MaxDepth of %d", MaxDepth),
		}
	}
	open := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			if _, err := s.str(); err != nil {
				return err
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		case '\n', '\r':
			s.breaks = true
		}
		s.pos++
		if open == 0 {
			return nil
		}
	}
	return s.fail("")
}
