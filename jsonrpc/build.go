package jsonrpc

import "math"

// A Builder puts an object together member by member, with its index: whoever
// looks at the finished [Value] need not pass over its bytes first. The zero
// Builder is an empty object without memory of its own.
type Builder struct {
	raw   []byte
	index Value // without raw
}

// NewBuilder returns a builder with memory for an object of size bytes.
func NewBuilder(size int) Builder { return Builder{raw: make([]byte, 0, size)} }

// NewBuilderIn returns a builder that appends to memory, which is empty and the
// builder's from then on.
func NewBuilderIn(memory []byte) Builder { return Builder{raw: memory[:0]} }

// Add adds a member. AppendValue appends its value to dst: one valid JSON value
// without line breaks between tokens. A name must not be added twice.
func (b *Builder) Add(name string, appendValue func(dst []byte) []byte) {
	if len(b.raw) == 0 {
		b.raw = append(b.raw, '{')
		b.index.indexed = true
	} else {
		b.raw = append(b.raw, ',')
	}
	m := member{name: uint32(len(b.raw))}
	b.raw = AppendString(b.raw, name)
	m.nameEnd = uint32(len(b.raw))
	m.escaped = int(m.nameEnd-m.name) != len(name)+len(`""`)
	b.raw = append(b.raw, ':')
	m.value = uint32(len(b.raw))
	b.raw = appendValue(b.raw)
	m.valueEnd = uint32(len(b.raw))
	b.index.add(m)
}

// AddRaw adds a member whose value is raw, one valid JSON value, without the line
// breaks that stand between its tokens.
func (b *Builder) AddRaw(name string, raw []byte) {
	b.Add(name, func(dst []byte) []byte { return appendOneLine(dst, raw, false) })
}

// Value returns the object. The builder must not be used after it.
func (b *Builder) Value() Value {
	if len(b.raw) == 0 {
		b.raw, b.index.indexed = append(b.raw, '{'), true
	}
	v := b.index
	v.raw, v.oneLine = append(b.raw, '}'), true
	if uint64(len(v.raw)) > math.MaxUint32 {
		return Value{raw: v.raw, oneLine: true} // too long for the offsets
	}
	return v
}
