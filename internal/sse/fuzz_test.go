package sse_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
)

// randomChunks cuts s in pieces whose lengths are the bytes of cuts, over and over.
func randomChunks(s string, cuts []byte) []string {
	if len(cuts) == 0 {
		return []string{s}
	}
	var out []string
	for i := 0; s != ""; i++ {
		n := min(len(s), int(cuts[i%len(cuts)])+1)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

func FuzzReader(f *testing.F) {
	for _, tt := range streams {
		f.Add([]byte(tt.stream), []byte{0}, 0)
		f.Add([]byte(tt.stream), []byte{6, 0, 2}, 5)
	}
	f.Add([]byte("data: "+strings.Repeat("x", 70_000)+"\n\n"), []byte{254}, 70_001)
	f.Fuzz(func(t *testing.T, stream, cuts []byte, limit int) {
		s := string(stream)
		whole := readAll(strings.NewReader(s), 0)
		if d := diff(oracle(s), whole); d != "" {
			t.Errorf("not as the standard says (-want +got)\n%s", d)
		}
		cut := func() io.Reader { return &chunkReader{chunks: randomChunks(s, cuts), err: io.EOF} }
		if d := diff(whole, readAll(cut(), 0)); d != "" {
			t.Errorf("chunks matter (-whole +cut)\n%s", d)
		}
		limited := readAll(strings.NewReader(s), limit)
		if d := diff(limited, readAll(cut(), limit)); d != "" {
			t.Errorf("chunks matter under a limit (-whole +cut)\n%s", d)
		}
		for _, e := range limited.Events {
			if limit > 0 && len(e.Data) > limit {
				t.Errorf("event of %d bytes under a limit of %d", len(e.Data), limit)
			}
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	for _, tt := range streams {
		for _, e := range tt.want.Events {
			f.Add(e.Name, e.ID, e.HasID, e.Retry.Milliseconds(), e.HasRetry, e.Data)
		}
	}
	f.Add("message", "1", true, int64(-1), true, []byte("a\r\nb\rc\nd\r\r\n"))
	f.Add("a\nb", "1\x00", true, int64(4_000_000), true, []byte("x"))
	f.Fuzz(func(t *testing.T, name, id string, hasID bool, ms int64, hasRetry bool, payload []byte) {
		e := sse.Event{
			Name: name, ID: id, HasID: hasID,
			Retry: time.Duration(ms) * time.Millisecond, HasRetry: hasRetry, Data: payload,
		}
		wire, err := sse.AppendEvent(nil, e)
		if strings.ContainsAny(name+id, "\r\n\x00") || e.Retry < 0 {
			if err == nil {
				t.Fatalf("no error for %#v", e)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Name == "message" {
			e.Name = ""
		}
		e.HasID = e.HasID || e.ID != ""
		e.HasRetry = e.HasRetry || e.Retry != 0
		e.Retry = min((e.Retry + time.Millisecond - 1).Truncate(time.Millisecond), sse.MaxRetry)
		e.Data = bytes.ReplaceAll(e.Data, []byte("\r\n"), []byte("\n"))
		e.Data = bytes.ReplaceAll(e.Data, []byte("\r"), []byte("\n"))
		want := outcome{Events: []sse.Event{e, e}, Errors: []string{cleanEnd},
			ID: e.ID, HasID: e.HasID, Retry: e.Retry, HasWait: e.HasRetry}
		stream := string(wire) + string(sse.AppendComment(nil, name)) + string(wire)
		if d := diff(want, readAll(strings.NewReader(stream), 0)); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
}
