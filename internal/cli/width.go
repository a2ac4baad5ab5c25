package cli

import (
	"strings"
	"unicode"
)

// wide are the characters that take two columns of a terminal: those of East Asian
// scripts, and emoji (Unicode Standard Annex #11, wide and fullwidth).
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1},
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1},
		{Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1},
		{Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// cells is how many columns a character takes.
func cells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// width is how many columns a text takes, without our own styles.
func width(text string) int {
	n := 0
	for {
		plain, rest, found := strings.Cut(text, "\x1b[")
		for _, r := range plain {
			n += cells(r)
		}
		if !found {
			return n
		}
		_, text, _ = strings.Cut(rest, "m")
	}
}

// cut returns the beginning of a text that takes at most n columns, and at least one
// character of it, and the rest.
func cut(text string, n int) (string, string) {
	taken := 0
	for i, r := range text {
		if taken += cells(r); taken > n && i > 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// shorten cuts a text to at most n columns.
func shorten(text string, n int) string {
	if len(text) <= n || width(text) <= n {
		return text
	}
	if n < 2 {
		return "…"
	}
	beginning, _ := cut(text, n-1)
	return beginning + "…"
}

// wrap breaks a text into lines of at most columns, and no more than most. A word
// that is wider, as whole sentences of some languages are, is broken, too.
func wrap(text string, columns, most int) []string {
	var lines []string
	line := ""
	for _, word := range pieces(text, columns) {
		switch {
		case line == "":
			line = word
		case width(line)+1+width(word) <= columns:
			line += " " + word
		case len(lines) == most-1:
			return append(lines, shorten(line+" …", columns))
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line == "" {
		return lines
	}
	return append(lines, line)
}

// pieces returns the words of a text, and of those that are wider than a line the
// pieces that fill one.
func pieces(text string, columns int) []string {
	var all []string
	for word := range strings.FieldsSeq(text) {
		for width(word) > columns {
			var piece string
			piece, word = cut(word, columns)
			if word == "" {
				word = piece // one character that is wider than the terminal
				break
			}
			all = append(all, piece)
		}
		all = append(all, word)
	}
	return all
}
