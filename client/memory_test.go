package client_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// Long calls use the memory of earlier ones. What a caller has got stays as it is.
func TestLongResultsStay(t *testing.T) {
	h := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodDiscover:
			return mcp.NewResult(mcp.DiscoverResult{SupportedVersions: []mcp.Revision{mcp.NewestModern}})
		case mcp.MethodListTools:
			return mcp.RawResult([]byte(`{"tools":[]}`)), nil
		}
		arguments := req.Params.Get("arguments")
		text, _ := arguments.LookupString("text")
		return mcp.NewResult(mcp.CallToolResult{
			Content:           mcp.Contents{&mcp.Text{Text: text}, &mcp.UnknownContent{Type: "new", Raw: arguments.Raw()}},
			StructuredContent: arguments.Raw(),
		})
	})
	handler := streamable.NewHandler(h, nil)
	server := httptest.NewServer(handler)
	defer server.Close()
	defer handler.Close()
	c, err := client.Connect(t.Context(), client.URL(server.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	type arguments struct {
		Text string `json:"text"`
	}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			text := strings.Repeat(string(rune('a'+i))+"\n", 20<<10)
			want := `{"text":` + string(jsonrpc.AppendString(nil, text)) + `}`
			var results []*mcp.CallToolResult
			for range 6 {
				result, err := c.CallTool(t.Context(), "echo", arguments{text}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				results = append(results, result)
			}
			for n, result := range results {
				first, _ := result.Content[0].(*mcp.Text)
				second, _ := result.Content[1].(*mcp.Text)
				if first == nil || second != nil || first.Text != text || string(result.StructuredContent) != want {
					t.Errorf("result %d of %d is another one's, or was overwritten", n, i)
				}
			}
		})
	}
	wg.Wait()
}

// TestResultsThatAHandlerKeepsStay: what stands between a client and a connection, in
// this process, may keep results, which nobody has told that they are lent.
func TestResultsThatAHandlerKeepsStay(t *testing.T) {
	want := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 32<<10) + `"}]}`
	var kept mcp.Result
	c := connect(t, client.Handler(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return mcp.RawResult([]byte(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`)), nil
		}
		memory := []byte(want)
		transport.Lend(caller, memory, func(memory []byte) { clear(memory) }) // as a connection does
		kept = mcp.RawResult(memory)
		return kept, nil
	})), nil)
	if _, err := c.CallTool(t.Context(), "work", nil, nil); err != nil {
		t.Fatal(err)
	}
	if string(kept.Raw()) != want {
		t.Error("the result was overwritten")
	}
}
