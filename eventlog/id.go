package eventlog

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxName is how long the name of a stream may be.
const MaxName = 64

// maxID is how long an event's id may be: a name, a hyphen, and a number.
const maxID = MaxName + 1 + 20

// ID returns the id of an event of the stream: visible ASCII, and in its session
// like no other. It does not tell the session.
func (s Stream) ID(seq uint64) string {
	id := make([]byte, 0, maxID)
	id = append(id, s.Name...)
	id = append(id, '-')
	return string(strconv.AppendUint(id, seq, 10))
}

// ParseID returns the stream and the number of the event with an id that
// [Stream.ID] made, as far as its form tells. Whether there is such a stream in
// the session only the log knows.
func ParseID(session, id string) (Stream, uint64, error) {
	if len(id) > maxID {
		return Stream{}, 0, fmt.Errorf("an event id of %d bytes is over the limit of %d", len(id), maxID)
	}
	name, number, _ := strings.Cut(id, "-")
	if !isName(name) {
		return Stream{}, 0, fmt.Errorf("%q is no event id", id)
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || seq == 0 || strconv.FormatUint(seq, 10) != number {
		return Stream{}, 0, fmt.Errorf("%q is no event id", id)
	}
	return Stream{Session: session, Name: name}, seq, nil
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != "" && len(s) <= MaxName
}
