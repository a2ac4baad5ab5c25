package cli

import (
	"fmt"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	json "github.com/go-json-experiment/json"
)

// outLine writes a value to stdout as one line of JSON.
func (a *app) outLine(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.Out.Write(append(raw, '\n'))
	return err
}

// printJSON writes a value of a server's to stdout as one line, as it came. On a
// terminal what could do something to it is escaped, which is the same JSON.
func (a *app) printJSON(raw []byte) error {
	if a.columns > 0 {
		raw = escaped(raw)
	}
	_, err := a.Out.Write(append(raw, '\n'))
	return err
}

// escaped escapes what is not printable, which JSON can hold in strings only.
func escaped(raw []byte) []byte {
	var out []byte
	for _, r := range string(raw) {
		switch {
		case unicode.IsPrint(r) || r < ' ':
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// table writes rows of a name and a value to stdout, the values in one column.
func (a *app) table(rows [][2]string) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", row[0], row[1]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// printable is for strings.Map: it replaces what could make a terminal do
// something, as a peer's text may hold it. Line ends become spaces.
func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return ' '
	case !unicode.IsPrint(r):
		return unicode.ReplacementChar
	}
	return r
}
