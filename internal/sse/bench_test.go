package sse_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/sse"
)

func BenchmarkReader(b *testing.B) {
	benchmarks := []struct{ name, event string }{
		{"100B", "event: message\ndata: " + strings.Repeat("x", 100) + "\n\n"},
		{"100B-id", "event: message\nid: 12345\ndata: " + strings.Repeat("x", 100) + "\n\n"},
		{"100B-CRLF", "event: message\r\ndata: " + strings.Repeat("x", 100) + "\r\n\r\n"},
		{"1MiB", "event: message\ndata: " + strings.Repeat("x", 1<<20) + "\n\n"},
		{"1MiB-16KiB-lines", "event: message\n" + strings.Repeat("data: "+strings.Repeat("x", 16<<10)+"\n", 64) + "\n"},
	}
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			// Many events in a row, so that small ones fill a read.
			src := &flood{unit: strings.Repeat(bb.event, 1+64<<10/len(bb.event)), stop: math.MaxInt}
			r := sse.NewReader(src, 0)
			b.SetBytes(int64(len(bb.event)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendEvent(b *testing.B) {
	for _, bb := range []struct {
		name string
		size int
	}{{"100B", 100}, {"1MiB", 1 << 20}} {
		b.Run(bb.name, func(b *testing.B) {
			e := sse.Event{ID: "12345", Data: bytes.Repeat([]byte("x"), bb.size)}
			var buf []byte
			b.SetBytes(int64(bb.size))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buf, err = sse.AppendEvent(buf[:0], e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
