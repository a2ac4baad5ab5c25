package sse_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
)

func TestB070LongLinesArriveWhole(t *testing.T) {
	sizes := []int{4089, 4090, 4091, 65_529, 65_530, 65_531, 65_536, 65_537, 131_066, 1<<20 + 1, sse.DefaultMaxEvent}
	for _, end := range []string{"\n", "\r\n", "\r"} {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%d%q", size, end), func(t *testing.T) {
				want := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
				stream := "data: " + string(want) + end + end + "data: small" + end + end
				r := sse.NewReader(strings.NewReader(stream), 0)
				wantData(t, r, want)
				wantData(t, r, []byte("small"))
			})
		}
	}
}

func TestB070LongLineInReadsOfOneByte(t *testing.T) {
	// Looking at a byte more than a few times would take minutes.
	want := bytes.Repeat([]byte("x"), 1<<20)
	stream := "data: " + string(want) + "\r\n\r\n"
	wantData(t, sse.NewReader(iotest.OneByteReader(strings.NewReader(stream)), 0), want)
}

func TestLongLinesOfOtherFieldsArriveWhole(t *testing.T) {
	long := strings.Repeat("i", 150_000)
	short := strings.Repeat("i", 20_000)
	r := sse.NewReader(strings.NewReader(
		":"+long+"\nfoo: "+long+"\nevent: "+short+"\nid: "+short+"\nretry: "+strings.Repeat("0", 20_000)+"7\n"+
			"data: a\ndata: "+long+"\ndata: b\n\n"), 0)
	e, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != short || e.ID != short || e.Retry.Milliseconds() != 7 {
		t.Errorf("name has %d bytes, id %d, retry is %v", len(e.Name), len(e.ID), e.Retry)
	}
	if string(e.Data) != "a\n"+long+"\nb" {
		t.Errorf("data has %d bytes %.20q", len(e.Data), e.Data)
	}
}

func TestLimitHoldsForAnyChunks(t *testing.T) {
	const limit = 100_000
	fill := func(n int) string { return strings.Repeat("x", n) }
	const tooLarge = "limit 100000"
	tests := []struct {
		name, stream string
		errors       []string
	}{
		{"B070 data at the limit", "data: " + fill(limit) + "\n\n", nil},
		{"B070 data over the limit", "data: " + fill(limit+1) + "\n\n", []string{tooLarge}},
		{"B070 data over the limit without space", "data:" + fill(limit+1) + "\n\n", []string{tooLarge}},
		{"B070 data at the limit in two lines", "data: " + fill(limit-11) + "\ndata: " + fill(10) + "\n\n", nil},
		{"B070 data over the limit in two lines", "data: " + fill(limit-11) + "\ndata: " + fill(11) + "\ndata: z\n\n", []string{tooLarge}},
		{"data at the limit in many lines", strings.Repeat("data\n", limit+1) + "\n", nil},
		{"data over the limit in many lines", strings.Repeat("data\n", limit+2) + "\n", []string{tooLarge}},
		{"data at the limit beside other fields", "event: message\nid: 5\nfoo: " + fill(1000) + "\ndata: " + fill(limit) + "\n: c\n\n", nil},
		{"unknown field at the limit", fill(limit-2) + "\ndata: x\n\n", nil},
		{"unknown field over the limit", fill(limit+1) + "\ndata: x\n\n", []string{tooLarge}},
		{"fields at the limit", strings.Repeat("id: 1234\n", 64<<10/8) + "data: x\n\n", nil},
		{"fields over the limit", strings.Repeat("id: 1234\n", 64<<10/8) + "event\ndata: x\n\n", []string{"limit 65536"}},
		{"id at the limit", "id: " + fill(64<<10-4) + "\ndata: x\n\n", nil},
		{"id over the limit", "id: " + fill(64<<10-3) + "\ndata: x\n\n", []string{"limit 65536"}},
		{"comment at the limit", ":" + fill(limit-3) + "\ndata: x\n\n", nil},
		{"comment over the limit", ":" + fill(limit) + "\ndata: x\n\n", []string{tooLarge}},
		{"two events over the limit", strings.Repeat("data: "+fill(limit+1)+"\r\n\r\n", 2), []string{tooLarge, tooLarge}},
		{"over the limit with a byte order mark", "\xEF\xBB\xBFdata: " + fill(limit+1) + "\n\n", []string{tooLarge}},
		{"at the limit with a byte order mark", "\xEF\xBB\xBFdata: " + fill(limit) + "\n\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stream := "id: a\ndata: before\n\n" + tt.stream + "id: b\ndata: after\n\n"
			if strings.HasPrefix(tt.stream, "\xEF\xBB\xBF") {
				stream = tt.stream + "id: b\ndata: after\n\n"
			}
			want := oracle(stream)
			if tt.errors != nil {
				want.Events = slices.DeleteFunc(want.Events, func(e sse.Event) bool {
					return !bytes.Equal(e.Data, []byte("before")) && !bytes.Equal(e.Data, []byte("after"))
				})
			}
			want.Errors = slices.Concat(tt.errors, want.Errors)
			for _, n := range []int{1, 4095, 65_537, len(stream)} {
				got := readAll(&chunkReader{chunks: pieces(stream, n), err: io.EOF}, limit)
				if d := diff(want, got); d != "" {
					t.Fatalf("in reads of %d (-want +got)\n%.2000s", n, d)
				}
			}
		})
	}
}

func TestTooLargeErrorNamesLimitAndSize(t *testing.T) {
	_, err := sse.NewReader(strings.NewReader("data: 12345\n\n"), 4).Next()
	big, ok := errors.AsType[*sse.TooLargeError](err)
	if !ok || big.Limit != 4 || big.Seen != 5 {
		t.Fatalf("error is %#v", err)
	}
	const want = "event of 5 bytes or more exceeds the limit of 4 bytes"
	if err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
}

func TestIDBeforeTheLimitCounts(t *testing.T) {
	r := sse.NewReader(strings.NewReader("id: 7\ndata: 12345\nid: 8\n\ndata: ok\n\n"), 4)
	if _, err := r.Next(); err == nil {
		t.Fatal("no error for an event over the limit")
	}
	wantData(t, r, []byte("ok"))
	if id, ok := r.LastEventID(); id != "7" || !ok {
		t.Errorf("last event id is %q, %v", id, ok)
	}
}

func TestStreamThatEndsInAnEventOverTheLimitIsTruncated(t *testing.T) {
	r := sse.NewReader(strings.NewReader("data: 12345\ndata: x\n"), 4)
	_, err := r.Next()
	if _, ok := errors.AsType[*sse.TooLargeError](err); !ok {
		t.Fatalf("error is %v, want a TooLargeError", err)
	}
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error is %v, want %v", err, io.ErrUnexpectedEOF)
	}
	if data, whole := r.Partial(); data != nil || whole {
		t.Errorf("partial data is %q, %v", data, whole)
	}
}

// flood gives the same bytes over and over, and from stop bytes on nothing.
type flood struct {
	unit  string
	stop  int
	given int
}

func (f *flood) Read(p []byte) (int, error) {
	if f.given >= f.stop {
		return 0, errSilent
	}
	p = p[:min(len(p), f.stop-f.given)]
	n := copy(p, f.unit[f.given%len(f.unit):])
	for n < len(p) {
		n += copy(p[n:], f.unit)
	}
	f.given += n
	return n, nil
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestFloodIsCutInBoundedMemory(t *testing.T) {
	const limit = 256 << 10
	tests := []struct {
		name, start, unit string
		limit             int
	}{
		{"no line end", "data: ", "AAAA", limit},
		{"no line end and no field", "", "AAAA", limit},
		{"comment without end", ":", "AAAA", limit},
		{"data lines without empty line", "", "data: 0123456789\n", limit},
		{"empty data lines", "", "data\n", limit},
		{"ids", "", "id: 0123456789\r", 64 << 10},
		{"id without end", "id: ", "AAAA", 64 << 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := &flood{unit: tt.unit, stop: 4 << 20}
			r := sse.NewReader(io.MultiReader(strings.NewReader(tt.start), src), limit)
			before := allocated()
			_, err := r.Next()
			used := allocated() - before
			big, ok := errors.AsType[*sse.TooLargeError](err)
			if !ok || big.Limit != tt.limit {
				t.Fatalf("error is %v, want one that names the limit of %d", err, tt.limit)
			}
			if most := 8 * limit; src.given > most {
				t.Errorf("%d bytes were read, want at most %d", src.given, most)
			}
			// A doubling slice allocates twice its final size in total; ids are
			// allocated one by one.
			if most := uint64(3*limit + 1<<18); used > most {
				t.Errorf("%d bytes were allocated, want at most %d", used, most)
			}
			before = allocated()
			if _, err := r.Next(); !errors.Is(err, errSilent) {
				t.Fatalf("error is %v, want %v after the whole flood", err, errSilent)
			}
			if used := allocated() - before; used > 1<<17 {
				t.Errorf("%d bytes were allocated while skipping", used)
			}
		})
	}
}

func TestCommentsAndEmptyEventsTakeNoMemory(t *testing.T) {
	for _, unit := range []string{": keep-alive\n\n", "\n", "\r", "x\n", "foo: x\n\n", "id: \n\n"} {
		t.Run(fmt.Sprintf("%q", unit), func(t *testing.T) {
			r := sse.NewReader(&flood{unit: unit, stop: 1 << 19}, 1<<20)
			before := allocated()
			if _, err := r.Next(); !errors.Is(err, errSilent) {
				t.Fatalf("error is %v, want %v", err, errSilent)
			}
			if used := allocated() - before; used > 1<<17 {
				t.Errorf("%d bytes were allocated", used)
			}
		})
	}
}

// What holds nothing is added up as long as it comes fast (R14).
func TestFloodOfLinesWithoutEventsIsCut_R14(t *testing.T) {
	const limit = 1 << 20
	for _, unit := range []string{": x\n", ":\n", "\n", "\r", "foo: x\n\n", "id: 7\n\n", "retry: 5\n\n", "data:\n\n", "event: x\n\n"} {
		t.Run(fmt.Sprintf("%q", unit), func(t *testing.T) {
			src := &flood{unit: unit, stop: 8 << 20}
			r := sse.NewReader(src, limit)
			var err error
			for err == nil {
				_, err = r.Next()
			}
			cut, ok := errors.AsType[*sse.FloodError](err)
			if !ok || cut.Limit != limit || cut.Seen <= limit {
				t.Fatalf("error is %v, want one that names the limit", err)
			}
			if src.given > 2*limit {
				t.Errorf("%d bytes were read", src.given)
			}
			if _, again := r.Next(); again != err {
				t.Errorf("then it is %v", again)
			}
		})
	}
	const want = "70001 bytes within 1m0s that hold no event exceed the limit of 65536 bytes"
	if got := (&sse.FloodError{Limit: 65536, Seen: 70001}).Error(); got != want {
		t.Errorf("got %q", got)
	}
}

// A stream is kept alive for years.
func TestLinesWithoutEventsAreForgotten(t *testing.T) {
	const limit = 64 << 10
	comment := ":" + strings.Repeat("x", limit/4-2) + "\n"
	t.Run("by time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stream := strings.Repeat(comment, 100) + "data: x\n\n"
			r := sse.NewReader(&slowReader{chunks: pieces(stream, len(comment)), pause: sse.FloodTime/4 + time.Second}, limit)
			wantData(t, r, []byte("x"))
		})
	})
	t.Run("by events", func(t *testing.T) {
		for _, event := range []string{"data: x\n\n", "data\ndata\n\n"} {
			r := sse.NewReader(strings.NewReader(strings.Repeat(strings.Repeat(comment, 3)+event, 20)), limit)
			for range 20 {
				if _, err := r.Next(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A slowReader gives one chunk per Read, each after a pause, or only its beginning after
// one that is longer.
type slowReader struct {
	chunks []string
	pause  time.Duration
	first  time.Duration
	within bool // a chunk has begun
}

func (s *slowReader) Read(p []byte) (int, error) {
	if len(s.chunks) == 0 {
		return 0, io.EOF
	}
	if <-time.After(s.pause); !s.within {
		<-time.After(s.first)
	}
	n := copy(p, s.chunks[0])
	if s.chunks[0] = s.chunks[0][n:]; s.chunks[0] == "" {
		s.chunks = s.chunks[1:]
		s.within = false
		return n, nil
	}
	s.within = true
	return n, nil
}

func TestBigBuffersAreReleased(t *testing.T) {
	const size = 8 << 20
	before := inUse()
	r := sse.NewReader(io.MultiReader(
		strings.NewReader("data: "), io.LimitReader(&flood{unit: "x", stop: size}, size),
		strings.NewReader("\n\n"), &flood{unit: "x"}), 0)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, errSilent) {
		t.Fatal(err)
	}
	if after := inUse(); after > before+size/8 {
		t.Errorf("%d bytes are in use after an event of %d, %d before", after, size, before)
	}
	runtime.KeepAlive(r)
}

// inUse collects three times: a pool lets go of what it holds in two collections.
func inUse() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAllocationsPerEvent(t *testing.T) {
	line := strings.Repeat("x", 100)
	tests := []struct {
		name, event string
		want        float64
	}{
		{"data", "data: " + line + "\n\n", 1},
		{"name and data", "event: message\ndata: " + line + "\n\n", 1},
		{"name, id and data", "event: message\nid: 12345\ndata: " + line + "\n\n", 2},
		{"priming without id", "data:\n\n", 0},
		{"comment", ": x\n\ndata:\n\n", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := sse.NewReader(&flood{unit: tt.event, stop: 1 << 30}, 0)
			got := testing.AllocsPerRun(1000, func() {
				if _, err := r.Next(); err != nil {
					t.Fatal(err)
				}
			})
			if got != tt.want {
				t.Errorf("%v allocations, want %v", got, tt.want)
			}
		})
	}
}

// TestEventsOverTheLimitThatGoOn_R14: what is passed over takes no memory, and time only
// for as long as it is bounded.
func TestEventsOverTheLimitThatGoOn_R14(t *testing.T) {
	const limit = 100_000
	const most = sse.MaxPassedOver * limit
	long := strings.Repeat("x", limit)
	for _, tt := range []struct{ name, start, unit string }{
		{"a line without end", "data: ", long},
		{"a comment without end", ":", long},
		{"data without end", "", "data: " + long[1:] + "\n"},
		{"lines without end", "data: x" + long + "\n", "data: x\n"},
		{"one event after the other", "", "data: x" + long + "\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := &flood{unit: tt.unit, stop: 4 * most}
			r := sse.NewReader(io.MultiReader(strings.NewReader(tt.start), src), limit)
			var err error
			for big := new(sse.TooLargeError); errors.As(err, &big) || err == nil; {
				_, err = r.Next()
			}
			endless, ok := errors.AsType[*sse.EndlessError](err)
			if !ok || endless.Limit != limit || endless.Seen < most {
				t.Fatalf("error is %v, want one that names the limit", err)
			}
			if src.given < most/2 || src.given > most+4*limit {
				t.Errorf("%d bytes were read, the limit is %d", src.given, most)
			}
			if _, again := r.Next(); again != err {
				t.Errorf("then it is %v", again)
			}
		})
	}
	const want = "700 bytes of events over the limit of 10 bytes, with none within it, exceed 64 times that limit"
	if got := (&sse.EndlessError{Limit: 10, Seen: 700}).Error(); got != want {
		t.Errorf("got %q", got)
	}
}

// TestPassedOverIsCountedByBytes: a peer that sends few at a time may send as many.
func TestPassedOverIsCountedByBytes_R14(t *testing.T) {
	const limit = 70_000
	const most = sse.MaxPassedOver * limit
	src := &flood{unit: "x", stop: 2 * most}
	r := sse.NewReader(&drips{src, 3}, limit)
	var err error
	for big := new(sse.TooLargeError); errors.As(err, &big) || err == nil; {
		_, err = r.Next()
	}
	if _, ok := errors.AsType[*sse.EndlessError](err); !ok || src.given < most-limit || src.given > most+limit {
		t.Errorf("%v after %d bytes, the limit is %d", err, src.given, most)
	}
}

// drips is a reader that gives few bytes at a time.
type drips struct {
	io.Reader
	most int
}

func (d *drips) Read(p []byte) (int, error) { return d.Reader.Read(p[:min(len(p), d.most)]) }

// TestEventsOverTheLimitThatEnd do no harm, as long as others come between them, or time
// passes.
func TestEventsOverTheLimitThatEnd(t *testing.T) {
	const limit = 100_000
	long := "data: " + strings.Repeat("x", (sse.MaxPassedOver-2)*limit) + "\n\n"
	check := func(t *testing.T, r *sse.Reader, want ...string) {
		t.Helper()
		for i, text := range want {
			e, err := r.Next()
			if _, big := errors.AsType[*sse.TooLargeError](err); text == "" && !big || text != "" && string(e.Data) != text {
				t.Fatalf("%d: %q, %v", i, e.Data, err)
			}
		}
	}
	t.Run("others between them", func(t *testing.T) {
		stream := strings.Repeat(long+"data: x\n\n", 3)
		check(t, sse.NewReader(strings.NewReader(stream), limit), "", "x", "", "x", "", "x")
	})
	t.Run("time between them", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := &slowReader{chunks: []string{long, long, long, "data: x\n\n"}, first: sse.FloodTime + time.Second}
			check(t, sse.NewReader(slow, limit), "", "", "", "x")
		})
	})
}
