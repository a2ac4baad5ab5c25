package sse

import (
	"bytes"
	"time"
)

// field is what a line of the stream says.
type field int

const (
	fieldNone    field = iota // an empty line
	fieldComment              // a line that begins with a colon
	fieldUnknown
	fieldData
	fieldEvent
	fieldID
	fieldRetry
)

// longestName is the length of the longest known field name.
const longestName = len("event")

// cutField splits a line, or the beginning of a line that is not all there yet,
// into its field and the offset of the value. It looks at no more bytes than the
// longest known name has, since it is asked again with each piece of a long line.
func cutField(line []byte) (f field, value int) {
	if len(line) == 0 {
		return fieldNone, 0
	}
	name := line[:min(len(line), longestName+1)]
	colon := bytes.IndexByte(name, ':')
	if colon == 0 {
		return fieldComment, 1
	}
	value = len(line)
	if colon > 0 {
		name = name[:colon]
		value = colon + 1
	}
	if value < len(line) && line[value] == ' ' {
		value++
	}
	return knownField(name), value
}

// knownField compares case-sensitively, as the standard asks.
func knownField(name []byte) field {
	switch string(name) {
	case "data":
		return fieldData
	case "event":
		return fieldEvent
	case "id":
		return fieldID
	case "retry":
		return fieldRetry
	}
	return fieldUnknown
}

// parseRetry reads a number of milliseconds, clamped to MaxRetry. It is false for
// anything but ASCII digits.
func parseRetry(value []byte) (time.Duration, bool) {
	var ms int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		ms = min(ms*10+int64(c-'0'), MaxRetry.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, len(value) > 0
}
