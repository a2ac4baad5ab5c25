package lines_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcpsplice/mcpsplice/bench/internal/lines"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 600<<10)
	want := []string{"a", "", long, "b"}
	text := strings.Join(want, "\n") + "\nunfinished"
	for name, r := range map[string]io.Reader{
		"whole":  strings.NewReader(text),
		"halves": iotest.HalfReader(strings.NewReader(text)),
		"EOF":    iotest.DataErrReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			l := lines.NewReader(r)
			for {
				line, err := l.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(line))
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %d lines, want %d, or their text differs", len(got), len(want))
			}
		})
	}
}
