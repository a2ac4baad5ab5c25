package sse_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/internal/sse"
)

// errSilent is what a chunkReader gives when it is read past the bytes that have
// arrived: a reader that asks for it would block on a real, silent stream.
var errSilent = errors.New("read from a silent stream")

// chunkReader gives one chunk per Read, then err.
type chunkReader struct {
	chunks []string
	err    error
}

func (c *chunkReader) Read(p []byte) (int, error) {
	for len(c.chunks) > 0 && c.chunks[0] == "" {
		c.chunks = c.chunks[1:]
	}
	if len(c.chunks) == 0 {
		return 0, c.err
	}
	n := copy(p, c.chunks[0])
	c.chunks[0] = c.chunks[0][n:]
	return n, nil
}

// outcome is all that a stream tells a caller.
type outcome struct {
	Events  []sse.Event
	Errors  []string // of events over the limit, and of the end
	ID      string
	HasID   bool
	Retry   time.Duration
	HasWait bool
	Partial string
	Whole   bool
}

// readAll reads r to its end. The size seen of an event over the limit depends on
// the chunks and is left out.
func readAll(r io.Reader, maxEvent int) outcome {
	var o outcome
	in := sse.NewReader(r, maxEvent)
	for {
		e, err := in.Next()
		if err == nil {
			o.Events = append(o.Events, e)
			continue
		}
		if big, ok := errors.AsType[*sse.TooLargeError](err); ok {
			o.Errors = append(o.Errors, fmt.Sprint("limit ", big.Limit))
			continue
		}
		o.Errors = append(o.Errors, err.Error())
		o.ID, o.HasID = in.LastEventID()
		o.Retry, o.HasWait = in.Retry()
		data, whole := in.Partial()
		o.Partial, o.Whole = string(data), whole
		return o
	}
}

const (
	cleanEnd  = "EOF"
	truncated = "event stream truncated inside an event: unexpected EOF"
)

// oracle reads a whole stream the slow and obvious way, sentence by sentence as in
// the standard, "Interpreting an event stream".
func oracle(stream string) outcome {
	var o outcome
	var cur sse.Event
	var data strings.Builder
	var open bool
	stream = strings.TrimPrefix(stream, "\xEF\xBB\xBF")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	all := strings.Split(stream, "\n")
	rest := all[len(all)-1]
	for _, line := range all[:len(all)-1] {
		if line == "" {
			if cur.HasID {
				o.ID, o.HasID = cur.ID, true
			}
			if data.Len() > 0 {
				cur.Data = []byte(strings.TrimSuffix(data.String(), "\n"))
				o.Events = append(o.Events, cur)
			}
			cur, open = sse.Event{}, false
			data.Reset()
			continue
		}
		if strings.HasPrefix(line, ":") {
			continue
		}
		open = true
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			cur.Name = value
			if value == "message" {
				cur.Name = ""
			}
		case "data":
			data.WriteString(value + "\n")
		case "id":
			if !strings.Contains(value, "\x00") {
				cur.ID, cur.HasID = value, true
			}
		case "retry":
			if value == "" || strings.Trim(value, "0123456789") != "" {
				continue
			}
			ms, err := strconv.ParseInt(value, 10, 64)
			if err != nil || ms > sse.MaxRetry.Milliseconds() {
				ms = sse.MaxRetry.Milliseconds()
			}
			cur.Retry, cur.HasRetry = time.Duration(ms)*time.Millisecond, true
			o.Retry, o.HasWait = cur.Retry, true
		}
	}
	name, value, _ := strings.Cut(rest, ":")
	o.Partial = strings.TrimSuffix(data.String(), "\n")
	o.Whole = (rest == "" || rest[0] == ':') && data.Len() > 0
	if name == "data" {
		o.Partial = data.String() + strings.TrimPrefix(value, " ")
	}
	o.Errors = []string{cleanEnd}
	if open || rest != "" && rest[0] != ':' {
		o.Errors = []string{truncated}
	}
	return o
}

// diff compares data by bytes.Equal: byte for byte by reflection takes minutes.
func diff(want, got outcome) string {
	return cmp.Diff(want, got, cmp.Comparer(bytes.Equal))
}

func mustAppend(t testing.TB, dst []byte, e sse.Event) []byte {
	t.Helper()
	dst, err := sse.AppendEvent(dst, e)
	if err != nil {
		t.Fatal(err)
	}
	return dst
}

// pieces cuts s into chunks of n bytes.
func pieces(s string, n int) []string {
	var out []string
	for len(s) > n {
		out = append(out, s[:n])
		s = s[n:]
	}
	return append(out, s)
}

func wantData(t *testing.T, r *sse.Reader, want []byte) {
	t.Helper()
	e, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(e.Data, want) {
		t.Fatalf("data has %d bytes %.40q, want %d bytes %.40q", len(e.Data), e.Data, len(want), want)
	}
}
