package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// BenchmarkCall measures what a gateway over ten backends of a hundred tools each adds
// to the call of one, for params of two sizes.
func BenchmarkCall(b *testing.B) {
	tools := make([]string, 100)
	for i := range tools {
		tools[i] = fmt.Sprintf("tool_%d", i)
	}
	last := newFake(tools...)
	result := mcp.RawResult([]byte(`{"content":[]}`))
	answer := mcp.HandlerFunc(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) { return result, nil })
	g := gateway.New(nil)
	defer g.Close()
	for i := range 9 {
		add(b, g, fmt.Sprint("backend", i), newFake(tools...))
	}
	add(b, g, "last", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodCallTool {
			return answer(ctx, req, caller)
		}
		return last.Handle(ctx, req, caller)
	}))
	if n := len(listTools(b, g)); n != 1000 {
		b.Fatalf("%d tools", n)
	}
	for _, size := range []int{100, 100_000} {
		for name, way := range map[string]struct {
			handler mcp.Handler
			tool    string
		}{"direct": {answer, "tool_99"}, "gateway": {g, "last__tool_99"}} {
			b.Run(fmt.Sprintf("%s %d B", name, size), func(b *testing.B) {
				text := fmt.Sprintf(`{"name":%q,"arguments":{"text":%q},"_meta":{"progressToken":1}}`, way.tool, strings.Repeat("x", size))
				params, err := jsonrpc.ParseValue([]byte(text))
				if err != nil {
					b.Fatal(err)
				}
				req := &mcp.Request{Method: mcp.MethodCallTool, Params: params, Meta: modern}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := way.handler.Handle(b.Context(), req, mcp.NoCaller{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkList measures the merged list of ten backends, which last.
func BenchmarkList(b *testing.B) {
	g := gateway.New(nil)
	defer g.Close()
	for i := range 10 {
		f := newFake()
		items := make([]string, 100)
		for j := range items {
			items[j] = fmt.Sprintf(`{"name":"tool_%d","description":%q,"inputSchema":{"type":"object"}}`, j, strings.Repeat("x", 300))
		}
		f.answer(mcp.MethodListTools, `{"ttlMs":3600000,"tools":[`+strings.Join(items, ",")+`]}`)
		add(b, g, fmt.Sprint("backend", i), f)
	}
	req := request(mcp.MethodListTools, `{}`)
	b.ReportAllocs()
	for b.Loop() {
		result, err := g.Handle(b.Context(), req, mcp.NoCaller{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(result.Raw())))
	}
}
