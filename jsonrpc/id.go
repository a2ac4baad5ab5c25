package jsonrpc

import (
	"bytes"
	"math"
	"strconv"
)

// MaxIDBytes is how long the wire form of an id may be.
const MaxIDBytes = 1024

// An ID is the id of a request or response in its exact wire form: 1, "1" and
// 9007199254740993 are three ids, none of them ever a float. The zero ID is an
// absent one.
//
// An ID aliases the message that it was read from.
type ID struct {
	raw []byte
}

// IntID returns the id n.
func IntID(n int64) ID { return ID{strconv.AppendInt(nil, n, 10)} }

// StringID returns the id whose text is s.
func StringID(s string) ID { return ID{AppendString(nil, s)} }

// RawID returns the id whose wire form is raw, and false if raw is not the JSON
// of a string or an integer of at most [MaxIDBytes].
func RawID(raw []byte) (ID, bool) {
	id, ok := wireID(raw)
	if !ok {
		return ID{}, false
	}
	s := scanner{data: raw}
	if s.scalar(raw[0]) != nil || s.pos < len(raw) || s.soft != nil {
		return ID{}, false
	}
	return id, true
}

// wireID is RawID for raw that is known to be valid JSON.
func wireID(raw []byte) (ID, bool) {
	id := ID{raw}
	if len(raw) > MaxIDBytes || !id.isString() && !id.isInteger() {
		return ID{}, false
	}
	return id, true
}

// IsZero reports whether the id is absent.
func (id ID) IsZero() bool { return len(id.raw) == 0 }

// Raw returns the wire form. It must not be changed.
func (id ID) Raw() []byte { return id.raw }

// String returns the wire form, and "none" for an absent id.
func (id ID) String() string {
	if id.IsZero() {
		return "none"
	}
	return string(id.raw)
}

// Key returns a text that is equal for two ids exactly if they are the same id:
// of the same type and the same text or digits, however they were escaped. An
// escaped lone surrogate counts as U+FFFD.
func (id ID) Key() string {
	if id.isString() && bytes.IndexByte(id.raw, '\\') >= 0 {
		text, _ := Unquote(id.raw)
		return string(AppendString(nil, text))
	}
	return string(id.raw)
}

// Int returns the id as an integer if it is written as one and fits.
func (id ID) Int() (int64, bool) {
	if !id.isInteger() {
		return 0, false
	}
	n, err := strconv.ParseInt(string(id.raw), 10, 64)
	return n, err == nil
}

// LooseInt returns the integer that a peer which lost the type of an id may
// have meant: "1", 1.0 and 1e0 for 1. It is for responses that match nothing
// else (some peers answer request 0 with the id "0").
func (id ID) LooseInt() (int64, bool) {
	number := ID{id.raw}
	if text, ok := Unquote(id.raw); ok {
		number.raw = []byte(text)
	}
	s := scanner{data: number.raw}
	if len(number.raw) == 0 || s.number() != nil || s.pos < len(number.raw) {
		return 0, false
	}
	if n, ok := number.Int(); ok {
		return n, true
	}
	f, err := strconv.ParseFloat(string(number.raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// appendTo appends the wire form, and null for an absent id, so that what is
// written is JSON in any case.
func (id ID) appendTo(dst []byte) []byte {
	if id.IsZero() {
		return append(dst, "null"...)
	}
	return append(dst, id.raw...)
}

func (id ID) isString() bool { return len(id.raw) >= 2 && id.raw[0] == '"' }

// isInteger reports whether the wire form is a sign and digits only.
func (id ID) isInteger() bool {
	digits := id.raw
	if len(digits) > 1 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return false
	}
	for _, c := range digits {
		if !isDigit(c) {
			return false
		}
	}
	return true
}
