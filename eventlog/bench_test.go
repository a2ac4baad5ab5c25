package eventlog_test

import (
	"fmt"
	"testing"

	"github.com/mcpsplice/mcpsplice/eventlog"
)

// BenchmarkAppend appends events of 200 bytes, in turn to each of some sessions, to a
// log that is full: under the limit of one stream, or under that of all.
func BenchmarkAppend(b *testing.B) {
	for _, sessions := range []int{1, 1000} {
		for name, opts := range map[string]eventlog.Options{
			"stream": {StreamEvents: 16},
			"all":    {Bytes: 16 * 264 * sessions},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, sessions), func(b *testing.B) {
				m := eventlog.NewMemory(&opts)
				streams := make([]eventlog.Stream, sessions)
				for i := range streams {
					streams[i] = eventlog.Stream{Session: fmt.Sprint(i), Name: "a"}
				}
				data := make([]byte, 200)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, err := m.Append(b.Context(), streams[i%sessions], data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
