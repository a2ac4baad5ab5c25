package jsonrpc

import (
	"bytes"
	"iter"
	"math"
	"slices"
)

// inlineMembers is how many members an indexed Value holds without allocating.
const inlineMembers = 8

// A Value is one JSON value as the bytes that came, with an index of its
// members if it is an object that a scan has passed over. The zero Value is an
// absent one.
//
// A Value aliases the bytes that it was made from and never changes them; they
// must not be changed while it is in use. Values are copied freely and are safe
// for concurrent use.
type Value struct {
	raw     []byte
	oneLine bool // known to hold no CR or LF

	// The index of an object's members, if indexed.
	indexed bool
	n       int
	inline  [inlineMembers]member
	more    []member
}

// add adds a member to the index, and gives the index up when there are so many
// that it would cost more than it saves.
func (v *Value) add(m member) {
	switch {
	case !v.indexed:
	case v.n < inlineMembers:
		v.inline[v.n] = m
		v.n++
	case v.n < MaxMembers:
		v.more = append(v.more, m)
		v.n++
	default:
		v.indexed, v.n, v.more = false, 0, nil
	}
}

func (v *Value) at(i int) *member {
	if i < inlineMembers {
		return &v.inline[i]
	}
	return &v.more[i-inlineMembers]
}

// members yields the members of an object, from the index or else by passing
// over the bytes, which are known to be valid.
func (v *Value) members(yield func(m member) bool) {
	if v.indexed {
		for i := range v.n {
			if !yield(*v.at(i)) {
				return
			}
		}
		return
	}
	if !v.IsObject() {
		return
	}
	s := scanner{data: v.raw, trusted: true}
	var m member
	for {
		if ok, err := s.member(0, &m); !ok || err != nil || s.value(1) != nil {
			return
		}
		m.valueEnd = uint32(s.pos)
		if !yield(m) {
			return
		}
	}
}

// Trusted returns the value of raw, which the caller knows to be one valid JSON
// value. It is for what this process has encoded itself; bytes of a peer go
// through [Scan] or [ParseValue].
func Trusted(raw []byte) Value {
	return Value{raw: bytes.Trim(raw, " \t\r\n")}
}

// ParseValue checks that raw is one JSON value in UTF-8, nested no deeper than
// [MaxDepth], and indexes its members if it is an object. The error is a
// [*SyntaxError].
func ParseValue(raw []byte) (Value, error) {
	s, err := newScanner(raw)
	if err != nil {
		return Value{}, err
	}
	var v Value
	s.space()
	s.breaks = false // what stands before the value is not inside it
	err = s.indexed(&v, 0)
	v.oneLine = !s.breaks
	if err == nil {
		err = s.end()
	}
	if err == nil {
		err = s.soft
	}
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// IsZero reports whether the value is absent.
func (v *Value) IsZero() bool { return len(v.raw) == 0 }

// IsObject reports whether the value is an object.
func (v *Value) IsObject() bool { return len(v.raw) > 0 && v.raw[0] == '{' }

// IsNull reports whether the value is null.
func (v *Value) IsNull() bool { return string(v.raw) == "null" }

// Raw returns the value's bytes, nil if it is absent. They must not be changed.
func (v *Value) Raw() []byte { return v.raw }

// Len returns the number of members, 0 if the value is no object.
func (v *Value) Len() int {
	if v.indexed {
		return v.n
	}
	n := 0
	for range v.members {
		n++
	}
	return n
}

// Lookup returns the bytes of the member called name, matched exactly after
// unescaping. Of several the last counts, as other JSON readers have it; where
// that could matter the scan has refused them.
func (v *Value) Lookup(name string) ([]byte, bool) {
	var found []byte
	if v.indexed { // often: without a function call for each member
		for i := range v.n {
			if m := v.at(i); m.isCalled(name, v.raw) {
				found = v.raw[m.value:m.valueEnd:m.valueEnd]
			}
		}
		return found, found != nil
	}
	for m := range v.members {
		if m.isCalled(name, v.raw) {
			found = v.raw[m.value:m.valueEnd:m.valueEnd]
		}
	}
	return found, found != nil
}

// Get is Lookup as a Value, absent if there is no such member. It is not
// indexed.
func (v *Value) Get(name string) Value {
	raw, _ := v.Lookup(name)
	return Value{raw: raw, oneLine: v.oneLine}
}

// IsDistinct reports whether the members of an object have different names; of one
// with many members it says that they have not.
func (v *Value) IsDistinct() bool {
	if v.indexed {
		return v.n <= linearNames && v.indexIsDistinct()
	}
	n := 0
	for m := range v.members {
		name := m.nameIn(v.raw)
		before := 0
		for other := range v.members {
			if before == n {
				break
			}
			if before++; string(other.nameIn(v.raw)) == string(name) {
				return false
			}
		}
		if n++; n > linearNames {
			return false
		}
	}
	return true
}

func (v *Value) indexIsDistinct() bool {
	for i := range v.n {
		name := v.at(i).nameIn(v.raw)
		for j := range i {
			if string(v.at(j).nameIn(v.raw)) == string(name) {
				return false
			}
		}
	}
	return true
}

// LookupString returns the member called name if it is a string, unescaped.
func (v *Value) LookupString(name string) (string, bool) {
	raw, _ := v.Lookup(name)
	return Unquote(raw)
}

// Indexed returns v with its members indexed, for several look-ups in an object
// that came without an index.
func (v *Value) Indexed() Value {
	if v.indexed || !v.IsObject() {
		return *v
	}
	s := scanner{data: v.raw, trusted: true}
	var indexed Value
	if err := s.indexed(&indexed, 0); err != nil {
		return *v
	}
	indexed.oneLine = v.oneLine || !s.breaks
	return indexed
}

// Members yields names (unescaped) and values in their order.
func (v *Value) Members() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for m := range v.members {
			if !yield(string(m.nameIn(v.raw)), v.raw[m.value:m.valueEnd:m.valueEnd]) {
				return
			}
		}
	}
}

// RawMembers is Members with the names as they came, with their quotes.
func (v *Value) RawMembers() iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for m := range v.members {
			if !yield(v.raw[m.name:m.nameEnd:m.nameEnd], v.raw[m.value:m.valueEnd:m.valueEnd]) {
				return
			}
		}
	}
}

// AppendTo appends the value's bytes to dst without line breaks between tokens,
// and null if the value is absent.
func (v *Value) AppendTo(dst []byte) []byte {
	if v.IsZero() {
		return append(dst, "null"...)
	}
	return appendOneLine(dst, v.raw, v.oneLine)
}

// appendOneLine appends raw without CR and LF, which cannot stand inside a JSON
// token. Known says that there are none.
func appendOneLine(dst, raw []byte, known bool) []byte {
	if known || bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return append(dst, raw...)
	}
	for {
		i := bytes.IndexAny(raw, "\r\n")
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i+1:]
	}
}

// An Edit changes one member of an object: it sets Name to Value, in place if
// the member exists and at the end if not. A nil Value removes the member.
type Edit struct {
	Name  string
	Value []byte // one valid JSON value
}

// AppendEdited appends the object v with edits to dst, without line breaks
// between tokens. Members that are not named by an edit keep their bytes and
// their order; of several members or edits of one name one is left, of the edits
// the last. An absent or null v counts as an object without members; any other
// value that is not an object is copied as it is, and so is v if there are no
// edits.
func AppendEdited(dst []byte, v *Value, edits ...Edit) []byte {
	if !v.IsZero() && (len(edits) == 0 || !v.IsObject() && !v.IsNull()) {
		return v.AppendTo(dst)
	}
	var buf [16]bool
	used := append(buf[:0], make([]bool, len(edits))...)
	dst = append(dst, '{')
	first := true
	for m := range v.members {
		e := findEdit(edits, m.nameIn(v.raw))
		if e >= 0 && (edits[e].Value == nil || used[e]) {
			continue
		}
		dst = appendComma(dst, first)
		first = false
		if e < 0 {
			dst = appendOneLine(dst, v.raw[m.name:m.valueEnd], v.oneLine)
			continue
		}
		used[e] = true
		dst = appendOneLine(dst, v.raw[m.name:m.value], v.oneLine)
		dst = appendOneLine(dst, edits[e].Value, false)
	}
	for i, e := range edits {
		later := func(other Edit) bool { return other.Name == e.Name }
		if used[i] || e.Value == nil || slices.ContainsFunc(edits[i+1:], later) {
			continue
		}
		dst = appendComma(dst, first)
		first = false
		dst = AppendString(dst, e.Name)
		dst = append(dst, ':')
		dst = appendOneLine(dst, e.Value, false)
	}
	return append(dst, '}')
}

func appendComma(dst []byte, first bool) []byte {
	if first {
		return dst
	}
	return append(dst, ',')
}

// findEdit returns the index of the last edit of the member called name, or -1.
func findEdit(edits []Edit, name []byte) int {
	for i := len(edits) - 1; i >= 0; i-- {
		if string(name) == edits[i].Name {
			return i
		}
	}
	return -1
}

// Edited returns v with edits as a new Value, v itself if there are none.
func Edited(v *Value, edits ...Edit) Value {
	if len(edits) == 0 {
		return *v
	}
	n := len(v.raw) + 2
	for _, e := range edits {
		n += len(e.Name) + len(e.Value) + 4
	}
	return Trusted(AppendEdited(make([]byte, 0, n), v, edits...))
}

// Elements returns the elements of the JSON array raw, which is known to be
// valid, as sub-slices of it; nil if raw is not an array.
func Elements(raw []byte) [][]byte {
	s := scanner{data: raw, trusted: true}
	if s.space() != '[' {
		return nil
	}
	items, _, _ := s.elements(math.MaxInt)
	return items
}

// IndexedItems yields the elements of the JSON array raw, which is known to be
// valid, with an index of those that are objects; none if raw is not an array.
func IndexedItems(raw []byte) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		s := scanner{data: raw, trusted: true}
		if s.space() != '[' {
			return
		}
		s.pos++
		for s.space() != ']' && s.pos < len(s.data) {
			if s.data[s.pos] == ',' {
				s.pos++
			}
			s.breaks = false
			var v Value
			if s.indexed(&v, 1) != nil {
				return
			}
			v.oneLine = !s.breaks
			if !yield(v) {
				return
			}
		}
	}
}

// Items yields what Elements returns, without memory for all of it at once.
func Items(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := scanner{data: raw, trusted: true}
		if s.space() != '[' {
			return
		}
		s.pos++
		for s.space() != ']' {
			if s.data[s.pos] == ',' {
				s.pos++
				s.space()
			}
			start := s.pos
			if s.value(1) != nil || !yield(raw[start:s.pos:s.pos]) {
				return
			}
		}
	}
}
