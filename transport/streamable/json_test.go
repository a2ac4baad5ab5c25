package streamable_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"

	"pgregory.net/rapid"
)

// JSON as a peer may write it: texts, not values, since it is the texts that must
// arrive.

// gaps are what may stand between two tokens.
var gaps = rapid.SampledFrom([]string{"", "", "", "", " ", "\n", "\t", "\r\n  ", "\r"})

// oddNumbers are those that a reader by floats or integers changes.
var oddNumbers = rapid.SampledFrom([]string{
	"0", "-0", "1.0", "-0.0", "1E5", "1e+05", "9007199254740993", "1e400", "-1e-400", "0.1000", "18446744073709551616", "123456789012345678901234567890.5",
})

var otherNumbers = rapid.StringMatching(`-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,4})?`)

// characters are parts of strings, plain ones and escapes, that a reader, a line or an
// event stream may change.
var characters = rapid.SampledFrom([]string{
	"a", "B", " ", "é", "世", "😀", "\u2028", "\u0085", "\ufeff", "\x7f", "data: ", "</script>", "{", "]", ",", ":", "%41", "=?base64?",
	`\/`, `\\`, `\"`, `\n`, `\r\n`, `\u000a`, `\u0000`, `\u2028`, `\u00e9`, `\u0041`, `\ud83d\ude00`, `\uD83D`, `\udc00\ud800`, `\b\f\t`,
})

// stringsOf are strings with their quotes.
func stringsOf(max int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(characters, 0, max).Draw(t, "characters")
		return `"` + strings.Join(parts, "") + `"`
	})
}

var oddStrings = stringsOf(6)

// values are JSON values with up to depth levels, and now and then one that is much
// deeper or longer.
func values(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch kind := rapid.IntRange(0, 24).Draw(t, "kind"); {
		case kind < 3:
			return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
		case kind < 7:
			return oddNumbers.Draw(t, "number")
		case kind < 8:
			return otherNumbers.Draw(t, "number")
		case kind < 13 || depth == 0:
			return oddStrings.Draw(t, "string")
		case kind < 17:
			items := rapid.SliceOfN(values(depth-1), 0, 3).Draw(t, "items")
			return "[" + joined(t, items) + "]"
		case kind < 23:
			return objects(depth).Draw(t, "object").text(t)
		case kind < 24:
			n := rapid.IntRange(1, deepest).Draw(t, "depth")
			return strings.Repeat(`[{"\u0061":`, n/2) + `1.0` + strings.Repeat("} ]", n/2)
		}
		return `"` + strings.Repeat("x\u2028", rapid.IntRange(0, 20_000).Draw(t, "length")) + `"`
	})
}

// deepest leaves room, below jsonrpc.MaxDepth, for all that can be around a value: a
// question stands within a member of a member of a result.
const deepest = jsonrpc.MaxDepth - 20

func joined(t *rapid.T, items []string) string {
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(gaps.Draw(t, "gap") + item + gaps.Draw(t, "gap"))
	}
	return b.String()
}

// A member of an object: the text of its name, with quotes, and that of its value.
type member struct{ name, value string }

// is reports whether the member has a name, however that is written.
func (m member) is(name string) bool {
	got, ok := jsonrpc.Unquote([]byte(m.name))
	return ok && got == name
}

// An object is the members of one, in their order.
type object []member

// objects have names that are all different: where they are not, a scan refuses the
// message in some places.
func objects(depth int) *rapid.Generator[object] {
	one := rapid.Custom(func(t *rapid.T) member {
		name := rapid.OneOf(stringsOf(2), rapid.SampledFrom([]string{`"type"`, `"Method"`, `"id"`, `"params"`, `"error"`, `"__proto__"`, `"x\u002Dy"`})).Draw(t, "name")
		return member{name, values(depth-1).Draw(t, "value")}
	})
	return rapid.Custom(func(t *rapid.T) object {
		return rapid.SliceOfNDistinct(one, 0, 4, func(m member) string {
			name, _ := jsonrpc.Unquote([]byte(m.name))
			return name
		}).Draw(t, "members")
	})
}

// text is the object with white space between its tokens.
func (o object) text(t *rapid.T) string {
	items := make([]string, len(o))
	for i, m := range o {
		items[i] = m.name + gaps.Draw(t, "gap") + ":" + gaps.Draw(t, "gap") + m.value
	}
	if len(o) == 0 {
		return "{" + gaps.Draw(t, "gap") + "}"
	}
	return "{" + joined(t, items) + "}"
}

// String is the object without white space between its members.
func (o object) String() string {
	items := make([]string, len(o))
	for i, m := range o {
		items[i] = m.name + ":" + m.value
	}
	return "{" + strings.Join(items, ",") + "}"
}

// among puts members among those of o, in any places.
func (o object) among(t *rapid.T, members ...member) object {
	for _, m := range members {
		name, _ := jsonrpc.Unquote([]byte(m.name))
		o = o.without(name)
		o = slices.Insert(o, rapid.IntRange(0, len(o)).Draw(t, "place"), m)
	}
	return o
}

// without is o without the members of some names.
func (o object) without(names ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.ContainsFunc(names, m.is) })
}

// set is o with a member set where it is, or else at the end.
func (o object) set(name, value string) object {
	o = slices.Clone(o)
	if i := slices.IndexFunc(o, func(m member) bool { return m.is(name) }); i >= 0 {
		o[i].value = value
		return o
	}
	return append(o, member{`"` + name + `"`, value})
}

// get returns the text of a member's value, "" if there is none.
func (o object) get(name string) string {
	if i := slices.IndexFunc(o, func(m member) bool { return m.is(name) }); i >= 0 {
		return o[i].value
	}
	return ""
}

// objectOf takes the text of an object apart: its tokens, as they are written.
func objectOf(text string) object {
	o := object{}
	rest := strings.TrimSuffix(strings.TrimPrefix(tokens(text), "{"), "}")
	for rest != "" && rest != "null" {
		name := rest[:upTo(rest, ":")]
		rest = rest[len(name)+1:]
		value := rest[:upTo(rest, ",")]
		rest = strings.TrimPrefix(rest[len(value):], ",")
		o = append(o, member{name, value})
	}
	return o
}

// upTo returns how far it is to a token that stands in no string, array or object.
func upTo(text, token string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case depth == 0 && c == token[0]:
			return i
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return len(text)
}

// tokens is a JSON text without the white space between its tokens: two texts are
// equal token for token if theirs are the same.
func tokens(text string) string { return squeeze(text, " \t\r\n") }

// oneLine is a JSON text without the line breaks between its tokens.
func oneLine(text string) string { return squeeze(text, "\r\n") }

func squeeze(text, space string) string {
	var b strings.Builder
	b.Grow(len(text))
	for quoted, i := false, 0; i < len(text); i++ {
		c := text[i]
		switch {
		case !quoted && strings.IndexByte(space, c) >= 0:
			continue
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			b.WriteByte(c)
			i++
			c = text[i]
		}
		b.WriteByte(c)
	}
	return b.String()
}

// difference says where two texts begin to differ, "" if they do not.
func difference(want, got string) string {
	if want == got {
		return ""
	}
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	show := func(s string) string { return fmt.Sprintf("%.120q", s[max(0, at-40):]) }
	return fmt.Sprintf("from byte %d on\n  want %s\n  got  %s", at, show(want), show(got))
}

// TestWrittenJSON: what the tests of this package take for JSON is what a scan does.
func TestWrittenJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := values(4).Draw(t, "text")
		v, err := jsonrpc.ParseValue([]byte(text))
		if err != nil || string(v.Raw()) != text {
			t.Fatalf("it is read as %.200q, %v", v.Raw(), err)
		}
		if tokens(tokens(text)) != tokens(text) || strings.ContainsAny(oneLine(text), "\r\n") {
			t.Fatalf("its tokens are %q", tokens(text))
		}
		if v.IsObject() && objectOf(text).String() != tokens(text) {
			t.Fatalf("it has the members %v", objectOf(text))
		}
	})
	if tokens(" { \"a b\" : \"\\\" \\\\\"\n, \"c\" :\t1 } ") != `{"a b":"\" \\","c":1}` {
		t.Error("tokens are changed")
	}
}
