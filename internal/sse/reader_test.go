package sse_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
)

func data(s string) sse.Event { return sse.Event{Data: []byte(s)} }

func withID(id, s string) sse.Event { return sse.Event{ID: id, HasID: true, Data: []byte(s)} }

// streams holds one stream or more for each rule of the standard.
var streams = []struct {
	name   string
	stream string
	want   outcome // no Errors means a clean end
}{
	{"B064 LF", "event: message\ndata: {}\n\n", outcome{Events: []sse.Event{data("{}")}}},
	{"B064 CRLF", "event: message\r\ndata: {}\r\n\r\n", outcome{Events: []sse.Event{data("{}")}}},
	{"B064 CR", "event: message\rdata: {}\r\r", outcome{Events: []sse.Event{data("{}")}}},
	{"B064 CRLF then LF", "data: a\r\n\ndata: b\n\r\n", outcome{Events: []sse.Event{data("a"), data("b")}}},
	{"B064 LF then CR are two line ends", "data: a\n\rdata: b\n\r", outcome{Events: []sse.Event{data("a"), data("b")}}},
	{"B064 CRLF is one line end", "data: a\r\ndata: b\r\n\r\n", outcome{Events: []sse.Event{data("a\nb")}}},
	{"B064 CR CRLF ends the event", "data: a\r\r\ndata: b\r\r\n", outcome{Events: []sse.Event{data("a"), data("b")}}},
	{"B065 late LF makes no event", "data: a\r\r\n\n\r\r\n", outcome{Events: []sse.Event{data("a")}}},

	{"B067 no name", "data: a\n\n", outcome{Events: []sse.Event{data("a")}}},
	{"B067 empty name", "event:\ndata: a\n\nevent\ndata: b\n\n", outcome{Events: []sse.Event{data("a"), data("b")}}},
	{"B067 message", "event:message\ndata: a\n\n", outcome{Events: []sse.Event{data("a")}}},
	{"B067 another name", "event: endpoint\ndata: /m\n\n", outcome{Events: []sse.Event{{Name: "endpoint", Data: []byte("/m")}}}},
	{"B067 last name wins", "event: a\nevent: b\ndata: x\n\n", outcome{Events: []sse.Event{{Name: "b", Data: []byte("x")}}}},
	{"B067 name ends with its event", "event: a\n\ndata: x\n\n", outcome{Events: []sse.Event{data("x")}}},

	{"B068 priming, no space", "id: s1-0\nretry: 3000\ndata:\n\nid: s1-1\ndata: {}\n\n", outcome{
		Events: []sse.Event{{ID: "s1-0", HasID: true, Retry: 3 * time.Second, HasRetry: true}, withID("s1-1", "{}")},
		ID:     "s1-1", HasID: true, Retry: 3 * time.Second, HasWait: true,
	}},
	{"B068 priming, one space", "id: s1-0\ndata: \n\n", outcome{
		Events: []sse.Event{withID("s1-0", "")}, ID: "s1-0", HasID: true,
	}},
	{"B068 priming, no data line", "id: s1-0\nretry: 3000\n\ndata: {}\n\n", outcome{
		Events: []sse.Event{data("{}")}, ID: "s1-0", HasID: true, Retry: 3 * time.Second, HasWait: true,
	}},

	{"B074 BOM", "\xEF\xBB\xBFdata: a\n\n", outcome{Events: []sse.Event{data("a")}}},
	{"B074 BOM before an empty line", "\xEF\xBB\xBF\ndata: a\n\n", outcome{Events: []sse.Event{data("a")}}},
	{"B074 BOM only", "\xEF\xBB\xBF", outcome{}},
	{"B074 BOM only once", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", outcome{Events: []sse.Event{data("b")}}},
	{"B074 BOM only at the start", "data: a\n\n\xEF\xBB\xBFdata: b\n\n", outcome{Events: []sse.Event{data("a")}}},
	{"B074 half a BOM", "\xEF\xBBdata: a\n\n", outcome{}},
	{"B074 BOM in data", "data: \xEF\xBB\xBFa\n\n", outcome{Events: []sse.Event{data("\xEF\xBB\xBFa")}}},

	{"B074 data without colon", "data\n\n", outcome{Events: []sse.Event{data("")}}},
	{"B074 data twice without colon", "data\ndata\n\n", outcome{Events: []sse.Event{data("\n")}}},
	{"B074 no space", "data:x\n\n", outcome{Events: []sse.Event{data("x")}}},
	{"B074 two spaces", "data:  x\n\n", outcome{Events: []sse.Event{data(" x")}}},
	{"B074 tab", "data:\tx\n\n", outcome{Events: []sse.Event{data("\tx")}}},
	{"B074 trailing space", "data: x \n\n", outcome{Events: []sse.Event{data("x ")}}},
	{"B074 colons in the value", "data:: x: y\n\n", outcome{Events: []sse.Event{data(": x: y")}}},
	{"B074 multi-line data", "data: YHOO\ndata: +2\ndata: 10\n\n", outcome{Events: []sse.Event{data("YHOO\n+2\n10")}}},
	{"B074 data ends with empty lines", "data: a\ndata:\ndata:\n\n", outcome{Events: []sse.Event{data("a\n\n")}}},
	{"B074 NUL in data", "data: a\x00b\n\n", outcome{Events: []sse.Event{data("a\x00b")}}},

	{"B074 comments", ": hi\n\n:\n:data: x\n\ndata: a\n: between\ndata: b\n\n", outcome{Events: []sse.Event{data("a\nb")}}},
	{"B074 comment cut off is no loss", "data: a\n\n: keep-al", outcome{Events: []sse.Event{data("a")}}},
	{"B074 names are case-sensitive", "Data: x\nDATA: x\nID: 1\nEvent: e\nRetry: 1\ndata: y\n\n", outcome{Events: []sse.Event{data("y")}}},
	{"B074 unknown names", "dat: x\ndatas: x\n data: x\ndata : x\nfoo\nfoobar: baz\ndata: y\n\n", outcome{Events: []sse.Event{data("y")}}},
	{"B074 leading space is no name", " \ndata: x\n\n", outcome{Events: []sse.Event{data("x")}}},

	{"B074 id lasts", "id: 1\ndata: a\n\ndata: b\n\n", outcome{
		Events: []sse.Event{withID("1", "a"), data("b")}, ID: "1", HasID: true,
	}},
	{"B074 id with NUL is ignored", "id: 1\ndata: a\n\nid: a\x00b\ndata: b\n\n", outcome{
		Events: []sse.Event{withID("1", "a"), data("b")}, ID: "1", HasID: true,
	}},
	{"B074 empty id clears", "id: 1\ndata: a\n\nid\ndata: b\n\n", outcome{
		Events: []sse.Event{withID("1", "a"), withID("", "b")}, HasID: true,
	}},
	{"B074 empty id with colon clears", "id: 1\n\nid:\n\n", outcome{HasID: true}},
	{"B074 id after data", "data: a\nid: 7\n\n", outcome{Events: []sse.Event{withID("7", "a")}, ID: "7", HasID: true}},
	{"B074 last id wins", "id: 1\nid: 2\ndata: a\n\n", outcome{Events: []sse.Event{withID("2", "a")}, ID: "2", HasID: true}},

	{"B074 retry not a number", "retry: abc\nretry: -1\nretry: +1\nretry: 1.5\nretry:  1\nretry: 1 \nretry: \u0661\nretry:\nretry\n\n", outcome{}},
	{"B074 retry zero", "retry: 0\ndata: a\n\n", outcome{
		Events: []sse.Event{{HasRetry: true, Data: []byte("a")}}, HasWait: true,
	}},
	{"B074 retry with leading zeros", "retry: 0000000000000000000000000250\n\n", outcome{Retry: 250 * time.Millisecond, HasWait: true}},
	{"B074 retry of an hour", "retry: 3600000\n\n", outcome{Retry: sse.MaxRetry, HasWait: true}},
	{"B074 retry over the maximum", "retry: 3600001\n\n", outcome{Retry: sse.MaxRetry, HasWait: true}},
	{"B074 retry huge", "retry: 99999999999\n\n", outcome{Retry: sse.MaxRetry, HasWait: true}},
	{"B074 retry over 64 bits", "retry: 99999999999999999999999999999\n\n", outcome{Retry: sse.MaxRetry, HasWait: true}},
	{"B074 retry counts in a cut-off event", "retry: 5\n", outcome{
		Errors: []string{truncated}, Retry: 5 * time.Millisecond, HasWait: true,
	}},
	{"B074 empty events", strings.Repeat("\n", 10_000) + strings.Repeat("event: x\n\n", 10_000) + "data: a\n\n", outcome{Events: []sse.Event{data("a")}}},

	{"B011 multi-byte characters", "event: \U0001F600\ndata: {\"a\":\"\U0001F600é\"}\n\n", outcome{
		Events: []sse.Event{{Name: "\U0001F600", Data: []byte("{\"a\":\"\U0001F600é\"}")}},
	}},
	{"B011 invalid UTF-8 stays as it came", "data: \xff\xfe\n\n", outcome{Events: []sse.Event{data("\xff\xfe")}}},

	{"B071 data line complete", "data: {}\n", outcome{Errors: []string{truncated}, Partial: "{}", Whole: true}},
	{"B071 data line complete, CR", "data: {}\r", outcome{Errors: []string{truncated}, Partial: "{}", Whole: true}},
	{"B071 data line complete, then a comment cut off", "data: {}\n: x", outcome{Errors: []string{truncated}, Partial: "{}", Whole: true}},
	{"B071 data line complete, then a name cut off", "data: {}\ndat", outcome{Errors: []string{truncated}, Partial: "{}"}},
	{"B071 data line cut off", "data: {tru", outcome{Errors: []string{truncated}, Partial: "{tru"}},
	{"B071 second data line cut off", "data: {\ndata: }", outcome{Errors: []string{truncated}, Partial: "{\n}"}},
	{"B071 no data", "event: message\n", outcome{Errors: []string{truncated}}},
	{"B071 id of a cut-off event does not count", "id: 1\ndata: a\n\nid: 2\ndata: b\n", outcome{
		Events: []sse.Event{withID("1", "a")}, Errors: []string{truncated},
		ID: "1", HasID: true, Partial: "b", Whole: true,
	}},
	{"B071 name cut off", "data: a\n\nda", outcome{Events: []sse.Event{data("a")}, Errors: []string{truncated}}},

	{"D1.14 garbage between events stays by itself", "data: keepalive\n\ndata: {\"cut\n\ndata: {}\n\n", outcome{
		Events: []sse.Event{data("keepalive"), data("{\"cut"), data("{}")},
	}},
	{"D1.17 all fields", "event: e\nid: 1\nretry: 2\ndata: x\n\n", outcome{
		Events: []sse.Event{{Name: "e", ID: "1", HasID: true, Retry: 2 * time.Millisecond, HasRetry: true, Data: []byte("x")}},
		ID:     "1", HasID: true, Retry: 2 * time.Millisecond, HasWait: true,
	}},
	{"empty stream", "", outcome{}},
}

func TestReaderFollowsTheStandard(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want.Errors == nil {
				want.Errors = []string{cleanEnd}
			}
			if d := diff(want, readAll(strings.NewReader(tt.stream), 0)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if d := diff(want, oracle(tt.stream)); d != "" {
				t.Errorf("the oracle of the fuzz tests disagrees (-want +got)\n%s", d)
			}
		})
	}
}

// corpus is the streams in a row and after one long line, so that splits also fall
// around the edges of the read buffer.
func corpus() []string {
	long := "data: " + strings.Repeat("x", 4080) + "\r\n\r\n"
	var all []string
	for _, tt := range streams {
		if len(tt.stream) > 1000 {
			continue
		}
		all = append(all, tt.stream, long+tt.stream)
	}
	return all
}

func TestEverySplitPointGivesTheSameEvents(t *testing.T) {
	for _, s := range corpus() {
		want := oracle(s)
		from := max(0, len(s)-200)
		for i := from; i <= len(s); i++ {
			r := &chunkReader{chunks: []string{s[:i], s[i:]}, err: io.EOF}
			if d := diff(want, readAll(r, 0)); d != "" {
				t.Fatalf("%.80q split at %d (-want +got)\n%s", s, i, d)
			}
		}
	}
}

func TestShortReadsGiveTheSameEvents(t *testing.T) {
	for _, s := range corpus() {
		want := oracle(s)
		for n := 1; n <= 3; n++ {
			r := &chunkReader{chunks: pieces(s, n), err: io.EOF}
			if d := diff(want, readAll(r, 0)); d != "" {
				t.Fatalf("%.80q in reads of %d (-want +got)\n%s", s, n, d)
			}
		}
		if d := diff(want, readAll(iotest.DataErrReader(strings.NewReader(s)), 0)); d != "" {
			t.Fatalf("%.80q with EOF on the last read (-want +got)\n%s", s, d)
		}
	}
}

func TestEventIsReturnedOnItsLastByte(t *testing.T) {
	tests := []struct{ name, stream string }{
		{"B073 LF", "data: x\n\n"},
		{"B065 CR", "data: x\r\r"},
		{"B065 CRLF cut before its LF", "data: x\r\n\r"},
		{"B095 first of an event and a half", "data: x\n\ndata: y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, len(tt.stream)} {
				r := sse.NewReader(&chunkReader{chunks: pieces(tt.stream, n), err: errSilent}, 0)
				wantData(t, r, []byte("x"))
				if _, err := r.Next(); !errors.Is(err, errSilent) {
					t.Errorf("next error is %v, want %v", err, errSilent)
				}
			}
		})
	}
}

func TestB065LateLFIsSwallowed(t *testing.T) {
	r := sse.NewReader(&chunkReader{chunks: []string{"data: x\r\r", "\n", "data: y\r\r", "\ndata: z\n\n"}, err: errSilent}, 0)
	for _, want := range []string{"x", "y", "z"} {
		wantData(t, r, []byte(want))
	}
}

func TestB094EachFlushedGzipEventIsReturnedAtOnce(t *testing.T) {
	var wire bytes.Buffer
	var flushed []string
	z := gzip.NewWriter(&wire)
	for _, s := range []string{"data: a\n\n", "data: b\n\n", "data: c\n\n"} {
		if _, err := io.WriteString(z, s); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
		flushed = append(flushed, wire.String())
		wire.Reset()
	}
	src := &chunkReader{chunks: flushed, err: errSilent}
	unzipped, err := gzip.NewReader(src)
	if err != nil {
		t.Fatal(err)
	}
	r := sse.NewReader(unzipped, 0)
	for i, want := range []string{"a", "b", "c"} {
		wantData(t, r, []byte(want))
		if left := len(src.chunks); left < 2-i {
			t.Errorf("event %d took %d flushes", i, 3-left)
		}
	}
}

func TestErrorsOfTheSource(t *testing.T) {
	reset := errors.New("connection reset")
	tests := []struct{ name, stream, want string }{
		{"between events", "data: a\n\n", "reading event stream: connection reset"},
		{"B071 in an event", "data: a\n", "reading event stream, inside an event: connection reset"},
		{"B071 in a line", "da", "reading event stream, inside an event: connection reset"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := sse.NewReader(&chunkReader{chunks: []string{tt.stream}, err: reset}, 0)
			var err error
			for err == nil {
				_, err = r.Next()
			}
			if !errors.Is(err, reset) || err.Error() != tt.want {
				t.Errorf("error %q, want %q", err, tt.want)
			}
			if _, again := r.Next(); again == nil || again.Error() != err.Error() {
				t.Errorf("the next error is %v, want %v again", again, err)
			}
		})
	}
}

func TestTruncatedWrapsUnexpectedEOF(t *testing.T) {
	r := sse.NewReader(strings.NewReader("data: {}\n"), 0)
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			t.Errorf("error is %v, want one that wraps %v", err, io.ErrUnexpectedEOF)
		}
	}
}

type stuckReader struct{}

func (stuckReader) Read([]byte) (int, error) { return 0, nil }

func TestReaderThatMakesNoProgressIsAnError(t *testing.T) {
	if _, err := sse.NewReader(stuckReader{}, 0).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error is %v, want %v", err, io.ErrNoProgress)
	}
}

func TestDataBelongsToTheCaller(t *testing.T) {
	long := strings.Repeat("y", 200_000)
	r := sse.NewReader(strings.NewReader("data: one\n\ndata: two\n\ndata: "+long+"\n\ndata: "+long+"\n\ndata: cut\n"), 0)
	var kept [][]byte
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		kept = append(kept, slices.Clone(e.Data))
		clear(e.Data)
		_ = append(e.Data, "overwritten"...)
	}
	want := []string{"one", "two", long, long}
	if len(kept) != len(want) {
		t.Fatalf("%d events, want %d", len(kept), len(want))
	}
	for i, w := range want {
		if string(kept[i]) != w {
			t.Errorf("event %d is %.20q", i, kept[i])
		}
	}
	first, _ := r.Partial()
	clear(first)
	if second, _ := r.Partial(); string(second) != "cut" {
		t.Errorf("partial data is %q after its first copy was cleared", second)
	}
}

// TestAmid: the source may ask, while it is read from, whether more is to come by itself.
func TestAmid_R14(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"", false}, {"data: a\n\n", false}, {"data: a\n", false}, {"da", false}, {": a", false}, {"id: a", false}, {"x: a", false},
		{"data: a", true}, {"data:", true}, {"id: a\ndata: a\ndata: a", true},
		{"data: " + strings.Repeat("x", 100), true}, {"data: " + strings.Repeat("x", 100) + "\n", true},
		{"data: " + strings.Repeat("x", 100) + "\nid: 1\n", true}, {"data: " + strings.Repeat("x", 100) + "\n\n", false},
		{"data: " + strings.Repeat("x", 100) + "\r\n\r\n: a", false},
	} {
		var r *sse.Reader
		var got bool
		rest := strings.NewReader(tt.text)
		r = sse.NewReader(sourceFunc(func(b []byte) (int, error) {
			if rest.Len() == 0 {
				got = r.Amid()
			}
			return rest.Read(b)
		}), 50)
		for err, tooLarge := error(nil), (*sse.TooLargeError)(nil); err == nil || errors.As(err, &tooLarge); {
			_, err = r.Next()
		}
		if got != tt.want {
			t.Errorf("after %.20q… of %d bytes it is %v", tt.text, len(tt.text), got)
		}
	}
}

// A sourceFunc is an [io.Reader].
type sourceFunc func(b []byte) (int, error)

func (f sourceFunc) Read(b []byte) (int, error) { return f(b) }
