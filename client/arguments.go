package client

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/internal/longtext"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// callParams returns the params of a tool's call, and their memory, which may be
// given back when nobody uses them any more. Many servers refuse a call without any
// arguments.
func callParams(name string, arguments any) (params jsonrpc.Value, memory *[]byte, err error) {
	v, shape := shapeOf(arguments)
	var long *longArguments
	if !shape.all {
		long = takeLongTexts(v, shape.texts)
	}
	memory = takeMemory(paramsBytes + sizeOf(v, shape.texts))
	b := jsonrpc.NewBuilderIn(*memory)
	b.Add("name", func(dst []byte) []byte { return jsonrpc.AppendString(dst, name) })
	b.Add("arguments", func(dst []byte) []byte {
		switch {
		case shape.all:
			return appendTexts(dst, v, shape.texts)
		case long != nil:
			dst, err = long.append(dst)
		default:
			dst, err = appendObject(dst, arguments)
		}
		return dst
	})
	params = b.Value()
	*memory = params.Raw()
	return params, memory, err
}

// A shape is what is known of a type of arguments.
type shape struct {
	of    reflect.Type
	texts []longtext.Field
	all   bool // there is nothing but texts
}

var (
	shapes    sync.Map              // from reflect.Type to *shape
	lastShape atomic.Pointer[shape] // the one that was asked for last
	noShape   shape
)

// shapeOf returns the struct that arguments are or point to, and its shape; one
// without texts if they are none.
func shapeOf(arguments any) (reflect.Value, *shape) {
	v := reflect.ValueOf(arguments)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return v, &noShape
	}
	t := v.Type()
	if last := lastShape.Load(); last != nil && last.of == t {
		return v, last
	}
	known, ok := shapes.Load(t)
	if !ok {
		s := &shape{of: t}
		s.texts, s.all = longtext.Fields(t, "MarshalJSON", "MarshalJSONTo", "MarshalText", "AppendText")
		known, _ = shapes.LoadOrStore(t, s)
	}
	lastShape.Store(known.(*shape))
	return v, known.(*shape)
}

// sizeOf returns how many bytes the texts of a struct take when they are quoted,
// about.
func sizeOf(v reflect.Value, texts []longtext.Field) int {
	n := 0
	for i := range texts {
		if size := v.Field(texts[i].Index).Len(); size >= longtext.Bytes {
			n += size + size/8
		}
	}
	return n
}

// appendTexts appends a struct that has nothing but texts.
func appendTexts(dst []byte, v reflect.Value, texts []longtext.Field) []byte {
	dst = append(dst, '{')
	first := true
	for i := range texts {
		text := v.Field(texts[i].Index).String()
		if text == "" && texts[i].OmitEmpty {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(jsonrpc.AppendString(dst, texts[i].Name), ':')
		dst = jsonrpc.AppendString(dst, text)
	}
	return append(dst, '}')
}

// paramsBytes is how much memory params get beside their long texts.
const paramsBytes = 512

// Bounds of the memory of params that is used again. What is much larger than what
// is asked for is kept apart, and more is not kept.
const (
	maxSmall = 4 << 10
	minLarge = 16 << 10
	maxLarge = 2 << 20
)

// Memory of params.
var smallMemory, largeMemory sync.Pool // of *[]byte

// takeMemory returns empty memory for size bytes, or somewhat more.
func takeMemory(size int) *[]byte {
	var kept any
	switch {
	case size <= paramsBytes:
		kept = smallMemory.Get()
	case size >= minLarge:
		kept = largeMemory.Get()
	}
	memory, ok := kept.(*[]byte)
	if !ok || cap(*memory) < size {
		memory = new(make([]byte, 0, size))
	}
	*memory = (*memory)[:0]
	return memory
}

func giveMemory(memory *[]byte) {
	switch n := cap(*memory); {
	case n <= maxSmall:
		smallMemory.Put(memory)
	case n >= minLarge && n <= maxLarge:
		largeMemory.Put(memory)
	}
}

// appendObject appends the arguments of a tool, which must be an object.
func appendObject(dst []byte, arguments any) ([]byte, error) {
	if arguments == nil {
		return append(dst, "{}"...), nil
	}
	start := len(dst)
	dst, err := mcp.AppendJSON(dst, arguments)
	if err != nil {
		return dst, err
	}
	switch raw := dst[start:]; {
	case string(raw) == "null":
		return append(dst[:start], "{}"...), nil
	case raw[0] != '{':
		return dst, errors.New("an object was expected")
	}
	return dst, nil
}

// longArguments are arguments some of whose texts are long.
type longArguments struct {
	others any               // the arguments, with a short text instead of each long one
	texts  map[string]string // by member
}

// takeLongTexts takes the long texts out of a struct; nil if there are none.
func takeLongTexts(v reflect.Value, texts []longtext.Field) *longArguments {
	var long *longArguments
	var others reflect.Value
	for _, f := range texts {
		text := v.Field(f.Index).String()
		if len(text) < longtext.Bytes {
			continue
		}
		if long == nil {
			others = reflect.New(v.Type())
			others.Elem().Set(v)
			long = &longArguments{others: others.Interface(), texts: make(map[string]string, 1)}
		}
		others.Elem().Field(f.Index).SetString("long") // an empty one may be left out
		long.texts[f.Name] = text
	}
	return long
}

// append appends the arguments.
func (l *longArguments) append(dst []byte) ([]byte, error) {
	raw, err := mcp.NewJSON(l.others)
	if err != nil {
		return dst, err
	}
	others := jsonrpc.Trusted(raw)
	first := true
	dst = append(dst, '{')
	for name, value := range others.Members() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(jsonrpc.AppendString(dst, name), ':')
		if text, ok := l.texts[name]; ok {
			dst = jsonrpc.AppendString(dst, text)
		} else {
			dst = append(dst, value...)
		}
	}
	return append(dst, '}'), nil
}

// copies reports whether connections to a target keep nothing of a request that is
// over, or of its result. What others stand on, nobody can know: a handler may keep
// results.
func copies(target Target) bool {
	switch target.(type) {
	case *CommandTarget, *URLTarget:
		return true
	}
	return false
}
