package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// BenchmarkTypedTool measures what the server itself takes of a call: finding the
// tool, checking and decoding its arguments, and encoding what it returns.
func BenchmarkTypedTool(b *testing.B) {
	type echo struct{ Text string }
	for _, skip := range []bool{false, true} {
		s := server.New(mcp.Implementation{Name: "bench", Version: "1"}, &server.Options{SkipValidation: skip})
		server.AddTool(s, mcp.Tool{Name: "text"}, func(_ context.Context, _ *server.Call, in echo) (string, error) {
			return in.Text, nil
		})
		server.AddTool(s, mcp.Tool{Name: "struct"}, func(_ context.Context, _ *server.Call, in echo) (echo, error) {
			return in, nil
		})
		for _, tool := range []string{"text", "struct"} {
			for _, size := range []int{100, 64 << 10, 1 << 20} {
				b.Run(fmt.Sprintf("out=%s/validate=%v/bytes=%d", tool, !skip, size), func(b *testing.B) {
					benchmarkCall(b, s, tool, size)
				})
			}
		}
	}
}

func benchmarkCall(b *testing.B, s *server.Server, tool string, size int) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog.\\n", size/45+1)[:size-size%90]
	params, err := jsonrpc.ParseValue([]byte(`{"name":"` + tool + `","arguments":{"Text":"` + strings.TrimSuffix(text, `\`) + `"}}`))
	if err != nil {
		b.Fatal(err)
	}
	req := &mcp.Request{Method: mcp.MethodCallTool, Params: params}
	req.Meta.Revision = mcp.NewestModern
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		result, err := s.Handle(b.Context(), req, mcp.NoCaller{})
		if err != nil {
			b.Fatal(err)
		}
		if len(result.Raw()) < size*8/10 {
			b.Fatalf("the result has %d bytes", len(result.Raw()))
		}
	}
}
