package streamable_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// echo has one tool that gives its arguments back.
var echo = mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return mcp.RawResult([]byte(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)), nil
	case mcp.MethodListTools:
		return mcp.RawResult([]byte(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)), nil
	case mcp.MethodCallTool:
		return mcp.Result{Value: req.Params.Get("arguments")}, nil
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
})

// nowhere is a client that takes everything.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}

func (n nowhere) SetReadDeadline(time.Time) error  { return nil }
func (n nowhere) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkHandler measures what one modern POST costs besides net/http, of a
// client that cannot be asked anything and of one that can.
func BenchmarkHandler(b *testing.B) {
	for _, capabilities := range []string{`{}`, `{"elicitation":{}}`} {
		b.Run(capabilities, func(b *testing.B) { benchmarkHandler(b, capabilities) })
	}
}

func benchmarkHandler(b *testing.B, capabilities string) {
	h := streamable.NewHandler(echo, nil)
	defer h.Close()
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 1024) + `"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`)
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", nil)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo",
	} {
		r.Header.Set(name, value)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		h.ServeHTTP(nowhere{make(http.Header)}, r)
	}
}

// BenchmarkCall measures one call of a tool from our client to our server over
// loopback.
func BenchmarkCall(b *testing.B) {
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		b.Run(era.String(), func(b *testing.B) {
			h := streamable.NewHandler(echo, nil)
			defer h.Close()
			server := httptest.NewServer(h)
			defer server.Close()
			c, err := streamable.Dial(b.Context(), server.URL, &streamable.DialOptions{DialOptions: transport.DialOptions{Era: era}})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			req, err := mcp.NewRequest(mcp.MethodCallTool, map[string]any{"name": "echo", "arguments": map[string]string{"text": "hello"}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Handle(b.Context(), req, mcp.NoCaller{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
