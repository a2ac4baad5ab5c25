package jsonrpc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

func call(text string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"},"_meta":{"progressToken":17,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, text)
}

func BenchmarkScan(b *testing.B) {
	texts := []struct{ name, text string }{
		{"100B", strings.Repeat("a", 100)},
		{"64KiB", strings.Repeat("the quick brown fox ", 64<<10/20)},
		{"64KiBescapes", strings.Repeat(`the quick \n brown \"fox\" `, 64<<10/27)},
		{"64KiBmixed", strings.Repeat(`The quick brown fox \"jumps\" over the lazy dog, naïve café, and runs on for a while.\n`, 64<<10/89)},
		{"64KiBsource", string(bytes.Trim(jsonrpc.AppendString(nil, source), `"`))},
		{"64KiBcyrillic", cyrillic},
		{"64KiBcjk", strings.Repeat("速い茶色の狐が", 64<<10/21)},
		{"1MiB", strings.Repeat("the quick brown fox ", 1<<20/20)},
	}
	for _, t := range texts {
		b.Run(t.name, func(b *testing.B) {
			data := call(t.text)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			var m jsonrpc.Message
			for b.Loop() {
				if err := jsonrpc.Scan(data, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendEdited(b *testing.B) {
	var m jsonrpc.Message
	if err := jsonrpc.Scan(call(strings.Repeat("a", 100)), &m); err != nil {
		b.Fatal(err)
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		var buf [256]byte
		meta := jsonrpc.AppendEdited(buf[:0], &m.Meta, jsonrpc.Edit{Name: "progressToken", Value: []byte("4")})
		dst = jsonrpc.AppendEdited(dst[:0], &m.Body, jsonrpc.Edit{Name: "_meta", Value: meta})
	}
}

func BenchmarkAppendRequest(b *testing.B) {
	for _, size := range []int{100, 64 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			data := call(strings.Repeat("a", size))
			var m jsonrpc.Message
			if err := jsonrpc.Scan(data, &m); err != nil {
				b.Fatal(err)
			}
			var dst []byte
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				dst = jsonrpc.AppendRequest(dst[:0], m.ID, "tools/call", &m.Body)
			}
		})
	}
}

func BenchmarkLineReader(b *testing.B) {
	for _, size := range []int{100, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			line := append(bytes.Repeat([]byte("x"), size), '\n')
			stream := bytes.Repeat(line, max(1, 1<<20/size))
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				l := jsonrpc.NewLineReader(bytes.NewReader(stream), 0)
				for {
					if _, err := l.ReadLine(); err != nil {
						break
					}
				}
			}
		})
	}
}

var (
	source   = strings.Repeat("\tif err := run(ctx, \"a name\"); err != nil {\n\t\treturn fmt.Errorf(\"running: %w\", err)\n\t}\n\treturn nil\n}\n\n", 64<<10/106)
	cyrillic = strings.Repeat("Съешь ещё этих мягких французских булок, да выпей же чаю. ", 64<<10/104)
)

// texts are what strings of tools mostly are: the cost of a string depends on how
// many of its characters are not plain ASCII.
var texts = []struct{ name, text string }{
	{"plain", strings.Repeat("the quick brown fox ", 64<<10/20)},
	{"mixed", strings.Repeat("The quick brown fox \"jumps\" over the lazy dog, naïve café, and runs on for a while.\n", 64<<10/86)},
	{"source", source},
	{"cyrillic", cyrillic},
	{"cjk", strings.Repeat("速い茶色の狐が", 64<<10/21)},
	{"escapes", strings.Repeat("\"\\\n", 64<<10/3)},
	{"short", "hello"},
}

func BenchmarkUnquote(b *testing.B) {
	for _, t := range texts {
		b.Run(t.name, func(b *testing.B) {
			quoted := jsonrpc.AppendString(nil, t.text)
			b.SetBytes(int64(len(quoted)))
			b.ReportAllocs()
			for b.Loop() {
				jsonrpc.Unquote(quoted)
			}
		})
	}
}

func BenchmarkAppendString(b *testing.B) {
	for _, t := range texts {
		b.Run(t.name, func(b *testing.B) {
			var dst []byte
			b.SetBytes(int64(len(t.text)))
			b.ReportAllocs()
			for b.Loop() {
				dst = jsonrpc.AppendString(dst[:0], t.text)
			}
		})
	}
}
