package jsonrpc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// lines reads to the end and gives what came as lines: the text of a line, a
// tilde after one without a newline, and what an error says.
func lines(l *jsonrpc.LineReader) []string {
	var kept [][]byte
	var out []string
	for {
		line, err := l.ReadLine()
		text := string(line)
		if l.Unterminated() {
			text += "~"
		}
		long, ok := errors.AsType[*jsonrpc.LineTooLongError](err)
		switch {
		case ok:
			text += fmt.Sprintf("too long: %d", long.Seen)
		case err != nil:
			for i, line := range kept {
				if !strings.HasPrefix(out[i], string(line)) {
					out[i] = fmt.Sprintf("a line was changed from %q to %q", out[i], line)
				}
			}
			if text != "" {
				out = append(out, "with the last error came "+text)
			}
			if !errors.Is(err, io.EOF) {
				out = append(out, "error: "+err.Error())
			}
			return out
		}
		kept, out = append(kept, line), append(out, text)
	}
}

// chunks reads at most size bytes at once, from the beginning only first.
type chunks struct {
	data        []byte
	first, size int
	reads       int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := c.size
	if c.reads == 0 && c.first > 0 {
		n = c.first
	}
	c.reads++
	n = copy(p[:min(n, len(p))], c.data)
	c.data = c.data[n:]
	return n, nil
}

func TestLinesAreTakenFromTheirFrames(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"one", "{}\n", []string{"{}"}},
		{"several", "a\nb\nc\n", []string{"a", "b", "c"}},
		{"CRLF", "a\r\nb\r\r\n", []string{"a", "b"}},
		{"CR inside", "a\rb\n", []string{"a\rb"}},
		{"B004 blank lines", "\n\r\n   \n\t\r\na\n\n\nb\n \n", []string{"a", "b"}},
		{"white space around", " \t{ } \t\r\n", []string{"{ }"}},
		{"B007 byte order mark on the first line", "\ufeff{}\n{}\n", []string{"{}", "{}"}},
		{"B007 byte order mark on any line", "{}\n\ufeff{}\n\ufeff\n \ufeff \n\ufeff a\n", []string{"{}", "{}", "a"}},
		{"B010 no newline at the end", "a\n{}", []string{"a", "{}~"}},
		{"B010 no newline after CR", "a\r", []string{"a~"}},
		{"blank at the end", "a\n \r", []string{"a"}},
		{"B011 characters", "é東😀\n", []string{"é東😀"}},
		{"B013 not UTF-8", "\xff\xfe\na\n", []string{"\xff\xfe", "a"}},
		{"NUL", "\x00\na\n", []string{"\x00", "a"}},
		{"other line ends", "a\u2028b\u2029c\v\fd\u0085\n", []string{"a\u2028b\u2029c\v\fd\u0085"}},
		{"at the limit", strings.Repeat("x", 20) + "\n" + strings.Repeat("y", 20), []string{strings.Repeat("x", 20), strings.Repeat("y", 20) + "~"}},
		{"B002 over the limit", strings.Repeat("x", 21) + "\na\n", []string{"too long: 21", "a"}},
		{"B002 over the limit twice", strings.Repeat("x", 50) + "\n" + strings.Repeat("x", 21) + "\n\na\n", []string{"too long: 50", "too long: 21", "a"}},
		{"B002 over the limit at the end", "a\n" + strings.Repeat("x", 30), []string{"a", "~too long: 30"}},
		{"B002 blank and over the limit", strings.Repeat(" ", 21) + "\na\n", []string{"too long: 21", "a"}},
		{"B008 Content-Length", "Content-Length: 2\r\n\r\n{}\n", []string{"{}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for size := 1; size <= len(c.in)+1; size++ {
				r := &chunks{data: []byte(c.in), size: size}
				if diff := cmp.Diff(c.want, lines(jsonrpc.NewLineReader(r, 20))); diff != "" {
					t.Fatalf("in chunks of %d (-want +got):\n%s", size, diff)
				}
			}
			for split := 1; split < len(c.in); split++ {
				r := &chunks{data: []byte(c.in), first: split, size: len(c.in)}
				if diff := cmp.Diff(c.want, lines(jsonrpc.NewLineReader(r, 20))); diff != "" {
					t.Fatalf("split at %d (-want +got):\n%s", split, diff)
				}
			}
			together := iotest.DataErrReader(&chunks{data: []byte(c.in), size: len(c.in) + 1})
			if diff := cmp.Diff(c.want, lines(jsonrpc.NewLineReader(together, 20))); diff != "" {
				t.Fatalf("with the end of the input (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinesOfAnyLengthArrive(t *testing.T) {
	const limit = 6 << 20
	for _, n := range []int{4096, 65535, 65536, 65537, 131072, 131073, 1 << 20, 5 << 20, limit, limit + 1, 3 * limit} {
		line := strings.Repeat("x", n-1) + "y"
		in := []byte("first\n" + line + "\n{\"id\":3}\n" + line)
		want := []string{"first", line, `{"id":3}`, line + "~"}
		if n > limit {
			want[1], want[3] = fmt.Sprintf("too long: %d", n), fmt.Sprintf("~too long: %d", n)
		}
		for _, size := range []int{4096, 65535, 65536, len(in)} {
			t.Run(fmt.Sprintf("B001 B002 line of %d bytes in chunks of %d", n, size), func(t *testing.T) {
				got := lines(jsonrpc.NewLineReader(&chunks{data: in, size: size}, limit))
				if len(got) != len(want) {
					t.Fatalf("%d lines, want %d", len(got), len(want))
				}
				for i := range want {
					if got[i] != want[i] {
						t.Errorf("line %d has %d bytes: %.80q", i, len(got[i]), got[i])
					}
				}
			})
		}
	}
}

func TestDefaultLimit(t *testing.T) {
	line := strings.Repeat("x", jsonrpc.DefaultMaxLineDialing)
	for _, limit := range []int{0, -1} {
		l := jsonrpc.NewLineReader(strings.NewReader(line+"\n"+line+"x\n"), limit)
		if got, err := l.ReadLine(); err != nil || len(got) != len(line) {
			t.Errorf("at the limit: %d bytes, %v", len(got), err)
		}
		if _, err := l.ReadLine(); err == nil || err.Error() != "line of 16777217 bytes is longer than the limit MaxLine of 16777216" {
			t.Errorf("over the limit: %v", err)
		}
	}
}

var slab = bytes.Repeat([]byte("A"), 64<<10)

// endless gives one byte over and over, n times in all.
type endless struct {
	n, chunk int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), e.n, e.chunk)], slab)
	e.n -= n
	return n, nil
}

func TestFloodWithoutNewlineIsLinearAndBounded(t *testing.T) {
	for _, c := range []struct {
		name            string
		n, chunk, limit int
		most            uint64 // bytes allocated
	}{
		{"B002 64 MiB in 4 KiB chunks", 64 << 20, 4 << 10, 16 << 20, 64 << 20},
		{"B002 64 MiB in 4 KiB chunks, small limit", 64 << 20, 4 << 10, 10_000, 1 << 20},
		{"B002 512 MiB at once", 512 << 20, 512 << 20, 1 << 20, 6 << 20},
		{"B002 4 MiB in single bytes", 4 << 20, 1, 16 << 20, 32 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func() {
				allocatesAtMost(t, c.most, func() {
					l := jsonrpc.NewLineReader(io.MultiReader(&endless{c.n, c.chunk}, strings.NewReader("\n{\"id\":7}\n")), c.limit)
					line, err := l.ReadLine()
					if long, ok := errors.AsType[*jsonrpc.LineTooLongError](err); c.n > c.limit && (!ok || long.Seen != c.n || long.Limit != c.limit) {
						t.Errorf("%d bytes, %v", len(line), err)
					}
					if line, err := l.ReadLine(); err != nil || string(line) != `{"id":7}` {
						t.Errorf("after the flood: %q, %v", line, err)
					}
				})
			})
		})
	}
}

func TestLineWithoutEndEndsTheReading_B002_R16(t *testing.T) {
	inTime(t, func() {
		const most = jsonrpc.MaxPassedOver + 1<<20
		for _, n := range []int{jsonrpc.MaxPassedOver, 1 << 60} {
			l := jsonrpc.NewLineReader(io.MultiReader(&endless{n, 64 << 10}, strings.NewReader("\n{\"id\":7}\n")), 10_000)
			_, err := l.ReadLine()
			if long, ok := errors.AsType[*jsonrpc.LineTooLongError](err); !ok || long.Seen > most || l.Unterminated() != (n > most) {
				t.Errorf("%d bytes: %v, unterminated %v", n, err, l.Unterminated())
			}
			line, err := l.ReadLine()
			if ended := err != nil && strings.Contains(err.Error(), "MaxPassedOver"); ended != (n > most) || !ended && string(line) != `{"id":7}` {
				t.Errorf("%d bytes, then: %q, %v", n, line, err)
			}
		}
	})
}

func TestMemoryOfALongLineIsGivenBack(t *testing.T) {
	const size = 8 << 20
	long := strings.Repeat("x", size)
	for name, limit := range map[string]int{"B002 line delivered": 2 * size, "B002 line refused": size - 1} {
		t.Run(name, func(t *testing.T) {
			l := jsonrpc.NewLineReader(io.MultiReader(strings.NewReader(long+"\nnext\n"), &chunks{}), limit)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			if line, err := l.ReadLine(); (err == nil) != (limit > size) {
				t.Fatalf("%d bytes, %v", len(line), err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
				t.Errorf("%d bytes are still held", grown)
			}
			if line, err := l.ReadLine(); err != nil || string(line) != "next" {
				t.Errorf("then came %q, %v", line, err)
			}
		})
	}
}

// A caller may keep a line: one is not held in a buffer of many times its size.
func TestLinesFitTheirMemory(t *testing.T) {
	for _, n := range []int{1, 100, 4097, 65536, 65537, 70_000, 1 << 20, 3 << 20} {
		in := []byte(strings.Repeat("x", n) + "\n")
		for _, size := range []int{1000, 65536} {
			line, err := jsonrpc.NewLineReader(&chunks{data: in, size: size}, 0).ReadLine()
			if err != nil || len(line) != n || cap(line) > 2*n+64 {
				t.Errorf("line of %d bytes: %d bytes with room for %d, %v", n, len(line), cap(line), err)
			}
		}
	}
}

func TestErrorOfTheReaderIsFinal(t *testing.T) {
	broken := errors.New("broken pipe")
	l := jsonrpc.NewLineReader(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(broken)), 0)
	for i, want := range []string{"a", "half"} {
		line, err := l.ReadLine()
		if err != nil || string(line) != want || l.Unterminated() != (i == 1) {
			t.Errorf("got %q, %v, unterminated %v", line, err, l.Unterminated())
		}
	}
	for range 2 {
		if line, err := l.ReadLine(); !errors.Is(err, broken) || line != nil || l.Unterminated() {
			t.Errorf("then %q, %v", line, err)
		}
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestReaderWithoutProgressIsGivenUp(t *testing.T) {
	l := jsonrpc.NewLineReader(io.MultiReader(strings.NewReader("a\nhalf"), idle{}), 0)
	if got := lines(l); !cmp.Equal(got, []string{"a", "half~", "error: " + io.ErrNoProgress.Error()}) {
		t.Errorf("got %q", got)
	}
	stutter := &chunks{data: []byte("a\nb\n"), size: 1}
	if got := lines(jsonrpc.NewLineReader(stuttering{stutter, new(int)}, 0)); !cmp.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
}

// stuttering reads nothing every second time.
type stuttering struct {
	io.Reader
	n *int
}

func (s stuttering) Read(p []byte) (int, error) {
	if *s.n++; *s.n%2 == 0 {
		return 0, nil
	}
	return s.Reader.Read(p)
}

func TestLengthFramingIsRecognised(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}`
	for _, c := range []struct {
		name, in string
		saw      bool
		want     []string
	}{
		{"B008 without a newline at the end", "Content-Length: 52\r\n\r\n" + ping, true, []string{ping + "~"}},
		{"B008 with a newline at the end", "Content-Length: 52\r\n\r\n" + ping + "\n", true, []string{ping}},
		{"B008 lower case", "content-length:52\n\n" + ping + "\n", true, []string{ping}},
		{"B008 later", ping + "\nContent-Length: 52\r\n\r\n", true, []string{ping}},
		{"B008 only in a message", `{"a":"Content-Length: 52"}` + "\n", false, []string{`{"a":"Content-Length: 52"}`}},
		{"other noise", "Content-Type: x\n", false, []string{"Content-Type: x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := jsonrpc.NewLineReader(strings.NewReader(c.in), 0)
			if diff := cmp.Diff(c.want, lines(l)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if l.SawLengthFraming() != c.saw {
				t.Errorf("saw length framing: %v", l.SawLengthFraming())
			}
		})
	}
}

// waiting counts how often it was asked for more than it has.
type waiting struct {
	pieces []string
	reads  int
}

func (w *waiting) Read(p []byte) (int, error) {
	w.reads++
	if len(w.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, w.pieces[0])
	if w.pieces[0] = w.pieces[0][n:]; w.pieces[0] == "" {
		w.pieces = w.pieces[1:]
	}
	return n, nil
}

func TestBufferedMeansThatReadingWillNotWait(t *testing.T) {
	big := strings.Repeat("x", 100_000)
	blank := strings.Repeat(" ", 100_000)
	for _, c := range []struct {
		name   string
		pieces []string
		want   []bool // after each line
	}{
		{"whole lines", []string{"a\nb\nc\n"}, []bool{true, true, false}},
		{"part of a line", []string{"a\nb\nc", "\n"}, []bool{true, false, false}},
		{"blank lines", []string{"a\r\n\r\n \n", "b\n"}, []bool{false, false}},
		{"blank lines before another", []string{"a\r\n\r\n \nb\n"}, []bool{true, false}},
		{"a byte order mark", []string{"a\n\ufeff\n", "b\n"}, []bool{false, false}},
		{"a header", []string{"a\nContent-Length: 1\n\n", "b\n"}, []bool{false, false}},
		{"long lines", []string{big + "\n" + big + "\n"}, []bool{false, false}},
		{"short lines after a long one", []string{big + "\na\nb\n"}, []bool{true, true, false}},
		{"blank line that is long", []string{"a\n" + blank, "\n", "b\n"}, []bool{false, false}},
		{"over-long line", []string{strings.Repeat("x", 300_000) + "\na\n"}, []bool{true, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &waiting{pieces: c.pieces}
			l := jsonrpc.NewLineReader(w, 200_000)
			if l.Buffered() {
				t.Error("something is there before anything was read")
			}
			for i, want := range c.want {
				promised, reads := l.Buffered(), w.reads
				_, err := l.ReadLine()
				if _, ok := errors.AsType[*jsonrpc.LineTooLongError](err); err != nil && !ok {
					t.Fatal(err)
				}
				if promised && w.reads != reads {
					t.Errorf("line %d: it was read although a line was at hand", i)
				}
				if got := l.Buffered(); got != want {
					t.Errorf("after line %d: buffered is %v", i, got)
				}
			}
			if line, err := l.ReadLine(); err != io.EOF {
				t.Errorf("at the end %q, %v", line, err)
			}
			if !l.Buffered() {
				t.Error("the end of the input is not at hand")
			}
		})
	}
}

func TestLineReaderReadsAllAtHandAtOnce(t *testing.T) {
	in := bytes.Repeat([]byte("{\"jsonrpc\":\"2.0\"}\n"), 1000)
	r := &chunks{data: in, size: len(in)}
	if got := lines(jsonrpc.NewLineReader(r, 0)); len(got) != 1000 {
		t.Errorf("%d lines", len(got))
	}
	if r.reads > 2 {
		t.Errorf("%d reads of %d bytes", r.reads, len(in))
	}
}

// interrupting is a reader whose reads are interrupted between any two bytes of what
// it reads.
type interrupting struct {
	data []byte
	now  bool
}

func (r *interrupting) Read(p []byte) (int, error) {
	r.now = !r.now
	switch {
	case r.now:
		return 0, jsonrpc.ErrInterrupted
	case len(r.data) == 0:
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1)], r.data)
	r.data = r.data[n:]
	return n, nil
}

// TestInterruptedReadsLoseNothing: wherever in a line they come, however often.
func TestInterruptedReadsLoseNothing(t *testing.T) {
	text := "first\n\n " + strings.Repeat("second", 30_000) + "\nContent-Length: 1\n" + strings.Repeat("x", 300_000) + "\nlast"
	var got []string
	interrupted := 0
	for l := jsonrpc.NewLineReader(&interrupting{data: []byte(text)}, 200_000); ; {
		line, err := l.ReadLine()
		if errors.Is(err, jsonrpc.ErrInterrupted) {
			if interrupted++; line != nil {
				t.Fatalf("a line came with it: %q", line)
			}
			continue
		}
		if long, ok := errors.AsType[*jsonrpc.LineTooLongError](err); ok {
			got = append(got, fmt.Sprint("too long: ", long.Seen))
			continue
		}
		if err != nil {
			got = append(got, err.Error())
			break
		}
		got = append(got, string(line))
	}
	want := []string{"first", strings.Repeat("second", 30_000), "too long: 300000", "last", "EOF"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%.500s", diff)
	}
	if interrupted < len(text) {
		t.Errorf("%d interruptions", interrupted)
	}
}

// TestRecycledLines: the memory of several lines that were in use at once comes back
// for others, and none that is too short, or not given back.
func TestRecycledLines(t *testing.T) {
	const size, count = 40 << 10, 10
	line := func(n int, c byte) string { return strings.Repeat(string(rune(c)), n) + "\n" }
	var text strings.Builder
	for i := range 3 * count {
		text.WriteString(line(size-i%count, 'a'+byte(i%26)))
	}
	text.WriteString(line(2*size, 'z'))
	l := jsonrpc.NewLineReader(strings.NewReader(text.String()), 0)
	read := func(want string) []byte {
		t.Helper()
		got, err := l.ReadLine()
		if err != nil || string(got)+"\n" != want {
			t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(want)-1)
		}
		return got
	}
	var first, second [][]byte
	for i := range count {
		first = append(first, read(line(size-i, 'a'+byte(i))))
	}
	for _, given := range first {
		l.Recycle(given)
	}
	used := make(map[*byte]bool)
	for i := range count {
		second = append(second, read(line(size-i, 'a'+byte(count+i))))
		used[&second[i][0]] = true
	}
	again := 0
	for _, given := range first {
		if used[&given[0]] {
			again++
		}
	}
	if again != count || len(used) != count {
		t.Errorf("the memory of %d lines was used again, of %d", again, len(used))
	}
	// Those are still in use.
	for i := range count {
		read(line(size-i, 'a'+byte((2*count+i)%26)))
	}
	for i, kept := range second {
		if string(kept)+"\n" != line(size-i, 'a'+byte(count+i)) {
			t.Errorf("line %d was overwritten", i)
		}
	}
	l.Recycle(first[0]) // too short for what comes
	read(line(2*size, 'z'))
}

// TestSpareMemoryIsGivenUp once lines have been small for a while, whatever came
// before and whenever it came back.
func TestSpareMemoryIsGivenUp(t *testing.T) {
	const size, small, huge = 64 << 10, 40, 3 << 20
	for _, tt := range []struct {
		name        string
		huge        bool // a line that outgrows the block comes first
		when, later int  // small lines before and after the memory comes back
		kept        bool
	}{
		{"at once", false, 0, small, false},
		{"late", false, small, small, false},
		{"after a huge line", true, 0, small, false},
		{"a moment ago", false, small, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			long := strings.Repeat("x", size) + "\n"
			text := long
			if tt.huge {
				text += strings.Repeat("y", huge) + "\n"
			}
			text += strings.Repeat("{}\n", tt.when+tt.later) + long
			l := jsonrpc.NewLineReader(strings.NewReader(text), 0)
			read := func() []byte {
				t.Helper()
				line, err := l.ReadLine()
				if err != nil {
					t.Fatal(err)
				}
				return line
			}
			given := read()
			if tt.huge {
				read()
			}
			for range tt.when {
				read()
			}
			l.Recycle(given)
			for range tt.later {
				read()
			}
			if again := read(); (&again[0] == &given[0]) != tt.kept {
				t.Errorf("the memory is kept: %v", !tt.kept)
			}
		})
	}
}
