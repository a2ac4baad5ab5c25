package gateway

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// Bounds of [Options.MaxName], and its default. Hosts refuse more than 64, and the
// specification advises against more than 128 (2026-07-28, server/tools, Tool Names).
const (
	MinMaxName     = 32
	DefaultMaxName = 64
	MaxMaxName     = 128
)

// separator stands between the name of a backend and that of a tool. A shortened name
// does not hold it.
const separator = "__"

// A shortened name ends with a mark and a hash of digestChars characters, of 5 bits
// each. No word of a language begins with the mark's digit.
const (
	digestMark  = "_0"
	digestChars = 12
)

var digestAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ExposedName returns the name under which a gateway shows a tool or prompt of a
// backend, or, with an empty backend, of its only backend. It is a pure function.
// Names have at most limit characters of [a-zA-Z0-9_-]; 0 stands for DefaultMaxName,
// and less than MinMaxName or more than MaxMaxName for that.
//
// The name is backend__name if that is short enough, legal, and could not have been
// put together of two other names. Otherwise it is made of what both have of legal
// characters, cut short, and of a hash of both. Names of the two kinds are never
// equal, and two of the second kind only if 60 bits of SHA-256 are.
func ExposedName(backend, name string, limit int) string {
	limit = nameLimit(limit)
	plain := name
	if backend != "" {
		plain = backend + separator + name
	}
	if name != "" && len(plain) <= limit && isLegal(plain) && isUnambiguous(backend, plain) {
		return plain
	}
	return shortened(backend, name, limit)
}

func nameLimit(limit int) int {
	if limit == 0 {
		limit = DefaultMaxName
	}
	return min(max(limit, MinMaxName), MaxMaxName)
}

// isUnambiguous reports whether a legal name can be nothing else: with a backend's name
// before it, if the separator is there once, counted with overlaps.
func isUnambiguous(backend, plain string) bool {
	if backend == "" {
		return !isShortened(plain)
	}
	return strings.Index(plain, separator) == len(backend) && strings.LastIndex(plain, separator) == len(backend)
}

func isLegal(name string) bool {
	for i := range len(name) {
		if !isLegalByte(name[i]) {
			return false
		}
	}
	return true
}

func isLegalByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// isShortened reports whether a name has the form of a shortened one.
func isShortened(name string) bool {
	at := len(name) - digestChars
	if at < len(digestMark) || name[at-len(digestMark):at] != digestMark {
		return false
	}
	return strings.Trim(name[at:], "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// shortened returns the name of the second kind.
func shortened(backend, name string, limit int) string {
	// With its length, so that no character can change sides.
	sum := sha256.Sum256([]byte(strconv.Itoa(len(backend)) + ":" + backend + name))
	digest := digestMark + digestAlphabet.EncodeToString(sum[:8])[:digestChars]
	room := limit - len(digest)
	head := shortenedPrefix(backend, limit)
	if head != "" {
		room -= len(head) + 1
	}
	tail := cut(clean(name), room)
	switch {
	case head == "" && tail == "":
		head = "x"
	case head != "" && tail != "":
		head += "_"
	}
	return head + tail + digest
}

// shortenedPrefix returns how the shortened names of a backend begin.
func shortenedPrefix(backend string, limit int) string {
	return cut(clean(backend), (limit-len(digestMark)-digestChars)/2)
}

// clean returns text with one underscore for each run of underscores and illegal
// bytes, and none at its ends.
func clean(text string) string {
	var b strings.Builder
	gap := false
	for i := range len(text) {
		c := text[i]
		if c == '_' || !isLegalByte(c) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteByte(c)
	}
	return b.String()
}

func cut(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.TrimRight(text, "_")
}

// mayExpose reports whether a name can be one of a backend's. It says for whom it is
// worth waiting; whose the name is, the tables say.
func mayExpose(backend, exposed string, limit int) bool {
	if backend == "" {
		return true
	}
	return strings.HasPrefix(exposed, backend+separator) ||
		isShortened(exposed) && strings.HasPrefix(exposed, shortenedPrefix(backend, limit))
}
