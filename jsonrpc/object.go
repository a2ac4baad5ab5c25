package jsonrpc

import (
	"fmt"
	"strings"
)

// MaxMembers is how many members a message, its params and its params._meta may
// have each.
const MaxMembers = 4096

// A DuplicateError says that an object has two members of one name where that
// would let two readers see two different messages.
type DuplicateError struct {
	Where string // "message", "params" or "params._meta"
	Name  string // the name, unescaped
}

// Error names the member, shortened if it is long, and its place.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("duplicate member %.*q in %s", shownRunes, e.Name, e.Where)
}

// shownRunes is how much of a name of the peer's an error repeats.
const shownRunes = 64

// A member holds offsets into the raw bytes of its object.
type member struct {
	name, nameEnd   uint32 // with quotes
	value, valueEnd uint32
	escaped         bool // the name holds escapes
}

// nameIn returns the name, unescaped. Raw begins with the member's object.
func (m *member) nameIn(raw []byte) []byte {
	name := raw[m.name+1 : m.nameEnd-1]
	if m.escaped {
		return appendUnescaped(nil, name)
	}
	return name
}

// isCalled reports whether name is the member's, unescaped. Raw begins with the
// member's object.
func (m *member) isCalled(name string, raw []byte) bool {
	if !m.escaped && int(m.nameEnd-m.name) != len(name)+len(`""`) {
		return false
	}
	return string(m.nameIn(raw)) == name
}

// member goes to the value of the next member of the object that begins at
// start. It returns false at the end of the object, which it passes over. The
// caller passes over the value and sets its end.
func (s *scanner) member(start int, m *member) (bool, error) {
	first := s.pos == start
	if first {
		s.pos++
	}
	switch c := s.space(); {
	case c == '}':
		s.pos++
		return false, nil
	case first:
	case c == ',':
		s.pos++
	default:
		return false, s.fail("a comma or the end of the object was expected")
	}
	if s.space() != '"' {
		return false, s.fail("a member name was expected")
	}
	m.name = uint32(s.pos - start)
	escaped, err := s.str()
	if err != nil {
		return false, err
	}
	m.nameEnd, m.escaped = uint32(s.pos-start), escaped
	if err := s.colon(); err != nil {
		return false, err
	}
	s.space()
	m.value = uint32(s.pos - start)
	return true, nil
}

// elements returns the elements of the array at pos, but no more than max, and
// how many there are.
func (s *scanner) elements(max int) (items [][]byte, n int, err error) {
	s.pos++
	if s.space() == ']' {
		s.pos++
		return nil, 0, nil
	}
	for {
		s.space()
		start := s.pos
		if err := s.value(0); err != nil {
			return items, n, err
		}
		if n++; n <= max {
			items = append(items, s.data[start:s.pos:s.pos])
		}
		switch s.space() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return items, n, nil
		default:
			return items, n, s.fail("a comma or the end of the array was expected")
		}
	}
}

// indexed passes over the value at pos, which stands in depth containers, and
// makes it v, with an index if it is an object of at most MaxMembers.
func (s *scanner) indexed(v *Value, depth int) error {
	c := s.space()
	start := s.pos
	if c != '{' {
		err := s.value(depth)
		*v = Value{raw: s.data[start:s.pos:s.pos]}
		return err
	}
	*v = Value{indexed: true}
	var m member
	for {
		ok, err := s.member(start, &m)
		if err != nil {
			return err
		}
		if !ok {
			v.raw = s.data[start:s.pos:s.pos]
			return nil
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		m.valueEnd = uint32(s.pos - start)
		v.add(m)
	}
}

// distinct is indexed for an object in a place where duplicate members are
// refused. Value is called to pass over the value of the member called name.
func (s *scanner) distinct(v *Value, where string, value func(name []byte) error) error {
	start := s.pos
	*v = Value{indexed: true}
	var m member
	var seen nameSet
	for n := 0; ; n++ {
		ok, err := s.member(start, &m)
		if err != nil {
			return err
		}
		if !ok {
			v.raw = s.data[start:s.pos:s.pos]
			if n > MaxMembers && s.soft == nil {
				s.soft = invalid("%s of %d members is over the limit MaxMembers of %d", where, n, MaxMembers)
			}
			return nil
		}
		name := m.nameIn(s.data[start:])
		if err := value(name); err != nil {
			return err
		}
		m.valueEnd = uint32(s.pos - start)
		if n < MaxMembers && s.soft == nil && seen.has(s.data[start:], v, name) {
			s.soft = &DuplicateError{Where: where, Name: string(name)}
		}
		v.add(m)
	}
}

// linearNames is up to how many names a nameSet compares one by one.
const linearNames = 32

// A nameSet finds duplicate names: by comparing while there are few members, by
// a map once there are many.
type nameSet struct {
	names map[string]struct{}
}

// has reports whether name is one of the members of v, whose raw bytes are given
// since v's own are not known yet.
func (n *nameSet) has(raw []byte, v *Value, name []byte) bool {
	if n.names == nil && v.n < linearNames {
		for i := range v.n {
			if string(v.at(i).nameIn(raw)) == string(name) {
				return true
			}
		}
		return false
	}
	if n.names == nil {
		n.names = make(map[string]struct{}, 4*linearNames)
		for i := range v.n {
			n.names[string(v.at(i).nameIn(raw))] = struct{}{}
		}
	}
	_, dup := n.names[string(name)]
	n.names[string(name)] = struct{}{}
	return dup
}

// foldsTo reports whether name is want in another case, by the folding of
// readers that ignore case.
func foldsTo(name []byte, want string) bool {
	return string(name) != want && len(name) >= len(want) && len(name) <= 3*len(want) &&
		strings.EqualFold(string(name), want)
}
