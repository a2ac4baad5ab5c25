package cli_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/cli"
)

func TestLinesOfAChildSayWhoseTheyAre_B049(t *testing.T) {
	for _, tt := range []struct {
		name           string
		asJSON, toPipe bool
		writes         []string
		want           string
	}{
		{name: "lines", writes: []string{"one\ntwo\n"}, want: "[node#2] one\n[node#2] two\n"},
		{name: "a line in pieces", writes: []string{"o", "ne", "\ntwo\n"}, want: "[node#2] one\n[node#2] two\n"},
		{name: "CRLF, in pieces, too", writes: []string{"one\r\ntwo\r", "\nthree\n"}, want: "[node#2] one\n[node#2] two\n[node#2] three\n"},
		{name: "a line that begins again and again", writes: []string{"10%\r", "50%\r100%\n"}, want: "[node#2] 10%\n[node#2] 50%\n[node#2] 100%\n"},
		{name: "empty lines", writes: []string{"one\n\ntwo\n"}, want: "[node#2] one\n[node#2]\n[node#2] two\n"},
		{name: "the rest of a line at the end", writes: []string{"one\ntwo"}, want: "[node#2] one\n[node#2] two\n"},
		{name: "what would do something to a terminal", writes: []string{"\x1b[2J\x07\n"}, want: "[node#2] \ufffd[2J\ufffd\n"},
		{name: "the same into a pipe", toPipe: true, writes: []string{"\x1b[2J\xff\n"}, want: "[node#2] \x1b[2J\xff\n"},
		{name: "JSON", asJSON: true, writes: []string{"on", "e\n\x1b\xff\ntwo"},
			want: `{"stderr":"one","from":"node#2"}` + "\n" + `{"stderr":"\u001b` + "\ufffd" + `","from":"node#2"}` + "\n" + `{"stderr":"two","from":"node#2"}` + "\n"},
		{name: "a line that is too long", writes: []string{strings.Repeat("x", 10_000) + "\n"},
			want: "[node#2] " + strings.Repeat("x", 8192) + "\n[node#2] " + strings.Repeat("x", 10_000-8192) + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var shown bytes.Buffer
			write, finish := cli.ChildLines(&shown, "/usr/bin/node", 2, tt.asJSON, !tt.toPipe)
			for _, text := range tt.writes {
				write(text)
			}
			finish()
			if shown.String() != tt.want {
				t.Errorf("it shows\n%q, want\n%q", shown.String(), tt.want)
			}
		})
	}
}

// TestPromptOfAChildIsShown, though no line end follows it, and a line that takes long
// goes on in another one.
func TestPromptOfAChildIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown bytes.Buffer
		write, finish := cli.ChildLines(&shown, "sh", 1, false, true)
		step := func(text, want string) {
			t.Helper()
			write(text)
			time.Sleep(time.Second)
			synctest.Wait()
			if got := shown.String(); got != want {
				t.Errorf("it shows %q, want %q", got, want)
			}
			shown.Reset()
		}
		step("Code: ", "[sh#1] Code:\n")
		step("thanks\nmore", "[sh#1] thanks\n[sh#1] more\n")
		finish()
		step("", "")
	})
}

// TestFloodOfAChildIsBounded_B050: what has no line end is not kept.
func TestFloodOfAChildIsBounded_B050(t *testing.T) {
	var shown counter
	write, finish := cli.ChildLines(&shown, "sh", 1, false, true)
	piece := strings.Repeat("x", 8192)
	for range 1000 {
		write(piece)
		if missing := shown.written + 2*8192; missing < shown.asked {
			t.Fatalf("of %d bytes %d were shown", shown.asked, shown.written)
		}
		shown.asked += len(piece)
	}
	finish()
	if shown.written < shown.asked {
		t.Errorf("of %d bytes %d were shown", shown.asked, shown.written)
	}
}

// A counter counts what is written to it.
type counter struct{ asked, written int }

func (c *counter) Write(p []byte) (int, error) {
	c.written += len(p)
	return len(p), nil
}
