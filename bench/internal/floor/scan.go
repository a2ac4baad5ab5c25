// Package floor is the least that still is an MCP server or a bridge. It says
// how fast a real one could be on this machine: it scans the envelope once,
// passes texts through as they came, and validates nothing. Do not use it for
// anything else.
package floor

import (
	"bytes"
	"errors"
)

// A request is the parts of a message that the floor looks at, each as it
// came.
type request struct {
	id     []byte // nil in a notification
	method []byte
	text   []byte // of the tool's arguments, without its quotes
	modern bool
}

var errScan = errors.New("not a request")

var modernKey = []byte("io.modelcontextprotocol/protocolVersion")

// scan finds the parts of a message in one pass.
func scan(message []byte) (request, error) {
	var r request
	s := scanner{b: message}
	for s.object(); s.member(); {
		switch string(s.key) {
		case "id":
			r.id = s.value()
		case "method":
			r.method = s.text()
		case "params":
			s.params(&r)
		default:
			s.value()
		}
	}
	if s.bad {
		return r, errScan
	}
	return r, nil
}

func (s *scanner) params(r *request) {
	for s.object(); s.member(); {
		switch string(s.key) {
		case "arguments":
			for s.object(); s.member(); {
				if string(s.key) == "text" {
					r.text = s.text()
				} else {
					s.value()
				}
			}
		case "_meta":
			r.modern = bytes.Contains(s.value(), modernKey)
		default:
			s.value()
		}
	}
}

// findID returns where the id of a message is, looking no further than that.
func findID(message []byte) (from, to int, ok bool) {
	s := scanner{b: message}
	for s.object(); s.member(); {
		v := s.value()
		if string(s.key) == "id" {
			return s.i - len(v), s.i, !s.bad
		}
	}
	return 0, 0, false
}

// A scanner walks over JSON that it trusts to be JSON. Where it is not, bad is
// set and every member loop ends.
type scanner struct {
	b     []byte
	i     int
	key   []byte
	bad   bool
	begun bool // an object was opened and no member of it read
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\r' || s.b[s.i] == '\t') {
		s.i++
	}
}

// next consumes white space and the byte c.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) fail() {
	s.bad = true
	s.i = len(s.b)
}

// object opens an object.
func (s *scanner) object() {
	if !s.next('{') {
		s.fail()
	}
	s.begun = true
}

// member reads a member's key, or the end of the object.
func (s *scanner) member() bool {
	if s.next('}') || s.bad {
		s.begun = false
		return false
	}
	if !s.begun && !s.next(',') {
		s.fail()
		return false
	}
	s.begun = false
	s.space()
	s.key = s.text()
	if !s.next(':') {
		s.fail()
		return false
	}
	s.space()
	return true
}

// text consumes a string and returns what is between its quotes.
func (s *scanner) text() []byte {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		s.fail()
		return nil
	}
	start := s.i + 1
	for at := start; ; {
		n := bytes.IndexByte(s.b[at:], '"')
		if n < 0 {
			s.fail()
			return nil
		}
		at += n + 1
		escapes := 0
		for i := at - 2; i >= start && s.b[i] == '\\'; i-- {
			escapes++
		}
		if escapes%2 == 0 {
			s.i = at
			return s.b[start : at-1]
		}
	}
}

// value consumes a value of any kind and returns it.
func (s *scanner) value() []byte {
	start, depth := s.i, 0
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case '"':
			s.text()
			if depth == 0 {
				return s.b[start:s.i]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.b[start:s.i]
			}
			if depth--; depth == 0 {
				s.i++
				return s.b[start:s.i]
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return s.b[start:s.i]
			}
		}
		s.i++
	}
	s.fail()
	return nil
}
