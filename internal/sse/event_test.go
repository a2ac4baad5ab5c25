package sse_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
)

func TestAppendEvent(t *testing.T) {
	tests := []struct {
		name  string
		event sse.Event
		want  string
	}{
		{"B067 name is always written", data("{}"), "event: message\ndata: {}\n\n"},
		{"S2.64 another name", sse.Event{Name: "tick", Data: []byte("1")}, "event: tick\ndata: 1\n\n"},
		{"id", sse.Event{ID: "7", Data: []byte("{}")}, "event: message\nid: 7\ndata: {}\n\n"},
		{"empty id", sse.Event{HasID: true, Data: []byte("{}")}, "event: message\nid: \ndata: {}\n\n"},
		{"B068 priming", sse.Event{ID: "s1-0", Retry: 3 * time.Second}, "event: message\nid: s1-0\nretry: 3000\ndata: \n\n"},
		{"retry zero", sse.Event{HasRetry: true}, "event: message\nretry: 0\ndata: \n\n"},
		{"retry is rounded up", sse.Event{Retry: time.Microsecond}, "event: message\nretry: 1\ndata: \n\n"},
		{"retry of the longest duration", sse.Event{Retry: 1<<63 - 1}, "event: message\nretry: 9223372036855\ndata: \n\n"},
		{"LF", data("a\nb"), "event: message\ndata: a\ndata: b\n\n"},
		{"CR", data("a\rb"), "event: message\ndata: a\ndata: b\n\n"},
		{"CRLF", data("a\r\nb"), "event: message\ndata: a\ndata: b\n\n"},
		{"CR CRLF", data("a\r\r\nb"), "event: message\ndata: a\ndata: \ndata: b\n\n"},
		{"LF CR", data("a\n\rb"), "event: message\ndata: a\ndata: \ndata: b\n\n"},
		{"line end at the end", data("a\n"), "event: message\ndata: a\ndata: \n\n"},
		{"CR at the end", data("a\r"), "event: message\ndata: a\ndata: \n\n"},
		{"leading space stays", data("  a"), "event: message\ndata:   a\n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mustAppend(t, []byte("before|"), tt.event)
			if string(got) != "before|"+tt.want {
				t.Errorf("got  %q\nwant %q", got, "before|"+tt.want)
			}
		})
	}
}

func TestD220UnsafeFieldsAreRefused(t *testing.T) {
	for _, bad := range []string{"a\nb", "a\rb", "a\x00b", "\n", "x\ndata: injected\n\n"} {
		for _, e := range []sse.Event{{Name: bad}, {ID: bad}} {
			got, err := sse.AppendEvent([]byte("before"), e)
			if !errors.Is(err, sse.ErrUnsafeField) {
				t.Errorf("%#v: error is %v, want %v", e, err, sse.ErrUnsafeField)
			}
			if string(got) != "before" {
				t.Errorf("%#v: %q was written", e, got)
			}
		}
	}
}

func TestNegativeRetryIsRefused(t *testing.T) {
	if got, err := sse.AppendEvent(nil, sse.Event{Retry: -1}); err == nil || got != nil {
		t.Errorf("wrote %q, error %v", got, err)
	}
}

func TestAppendComment(t *testing.T) {
	tests := []struct{ text, want string }{
		{"keep-alive", ": keep-alive\n\n"},
		{"", ": \n\n"},
		{"a\r\nb\rdata: injected\n\n", ": a\n: b\n: data: injected\n: \n: \n\n"},
	}
	for _, tt := range tests {
		if got := sse.AppendComment([]byte("|"), tt.text); string(got) != "|"+tt.want {
			t.Errorf("%q gives %q, want %q", tt.text, got, "|"+tt.want)
		}
		stream := string(sse.AppendComment(nil, tt.text)) + "data: a\n\n"
		wantData(t, sse.NewReader(strings.NewReader(stream), 0), []byte("a"))
	}
}

func TestDataOfLineEndsOnly(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		text := bytes.Repeat([]byte(end), 1<<18/len(end))
		wire := mustAppend(t, nil, sse.Event{Data: text})
		want := bytes.Repeat([]byte("\n"), 1<<18/len(end))
		wantData(t, sse.NewReader(bytes.NewReader(wire), 0), want)
	}
}

func TestAppendEventReusesItsBuffer(t *testing.T) {
	e := sse.Event{ID: "12345", Data: bytes.Repeat([]byte("x"), 100)}
	buf := mustAppend(t, nil, e)
	got := testing.AllocsPerRun(100, func() { buf = mustAppend(t, buf[:0], e) })
	if got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}
