package park

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// salient are the members of params that say what a request asks for. The others
// differ between a request and its retry.
var salient = [...]string{"name", "uri", "arguments"}

// digest returns what tells a request from all that ask for something else: the
// same for one that is written in another way.
func digest(req *mcp.Request) [sha256.Size]byte {
	form := appendText(nil, 'm', []byte(req.Method))
	for _, name := range salient {
		if raw, ok := req.Params.Lookup(name); ok {
			form = appendText(form, 'k', []byte(name))
			form = appendCanonical(form, raw)
		}
	}
	return sha256.Sum256(form)
}

// appendCanonical appends the canonical form of the valid JSON value raw: members
// sorted, strings unescaped, numbers as they came, so that large integers which
// are one float remain two numbers. Each part says its length, so that no two
// values have one form.
func appendCanonical(dst, raw []byte) []byte {
	switch raw[0] {
	case '"':
		text, _ := jsonrpc.Unquote(raw)
		return appendText(dst, 's', []byte(text))
	case '[':
		items := jsonrpc.Elements(raw)
		dst = binary.AppendUvarint(append(dst, 'a'), uint64(len(items)))
		for _, item := range items {
			dst = appendCanonical(dst, item)
		}
		return dst
	case '{':
		return appendObject(dst, raw)
	}
	return appendText(dst, 'l', raw)
}

func appendObject(dst, raw []byte) []byte {
	type member struct{ name, value []byte }
	var members []member
	v := jsonrpc.Trusted(raw)
	for name, value := range v.Members() {
		members = append(members, member{[]byte(name), value})
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	dst = binary.AppendUvarint(append(dst, 'o'), uint64(len(members)))
	for _, m := range members {
		dst = appendText(dst, 'k', m.name)
		dst = appendCanonical(dst, m.value)
	}
	return dst
}

func appendText(dst []byte, kind byte, text []byte) []byte {
	dst = binary.AppendUvarint(append(dst, kind), uint64(len(text)))
	return append(dst, text...)
}
