package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// callTool calls a tool as a modern client and returns the result.
func callTool(t *testing.T, s *server.Server, name, arguments string) (mcp.CallToolResult, error) {
	t.Helper()
	params := `{"name":"` + name + `","arguments":` + arguments + `}`
	req := &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(params))}
	req.Meta.Revision = mcp.NewestModern
	result, err := s.Handle(t.Context(), req, mcp.NoCaller{})
	if err != nil {
		return mcp.CallToolResult{}, err
	}
	var decoded mcp.CallToolResult
	if err := mcp.JSON(result.Raw()).Decode(&decoded); err != nil {
		t.Fatalf("%s: %v", result.Raw(), err)
	}
	return decoded, nil
}

func textOf(t *testing.T, r mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("the result has %d blocks of content, not one", len(r.Content))
	}
	text, ok := r.Content[0].(*mcp.Text)
	if !ok {
		t.Fatalf("the content is a %T, not text", r.Content[0])
	}
	return text.Text
}

type sumArgs struct {
	A int  `json:"a"`
	B int  `json:"b"`
	C *int `json:"c,omitempty"`
}

type sum struct {
	Sum int `json:"sum"`
}

func TestTypedToolsGetDecodedArguments(t *testing.T) {
	s := server.New(mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddTool(s, mcp.Tool{Name: "add"}, func(_ context.Context, _ *server.Call, in sumArgs) (sum, error) {
		return sum{in.A + in.B}, nil
	})
	server.AddTool(s, mcp.Tool{Name: "fail"}, func(context.Context, *server.Call, struct{}) (string, error) {
		return "", errors.New("no luck")
	})
	tests := []struct {
		name, tool, args string
		structured, text string
		failed           bool
	}{
		{name: "sum", tool: "add", args: `{"a":1,"b":2}`, structured: `{"sum":3}`, text: `{"sum":3}`},
		{name: "a missing argument", tool: "add", args: `{"a":1}`, failed: true, text: `invalid arguments: the value lacks the member "b"`},
		{name: "another type", tool: "add", args: `{"a":1,"b":"2"}`, failed: true, text: `invalid arguments: /b must be of type integer`},
		{name: "an unknown argument", tool: "add", args: `{"a":1,"b":2,"d":3}`, failed: true, text: `invalid arguments: /d is not allowed`},
		{name: "a failure", tool: "fail", args: `{"made":"up"}`, failed: true, text: "no luck"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result, err := callTool(t, s, test.tool, test.args)
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, result); got != test.text || result.Failed() != test.failed {
				t.Errorf("the tool said %q (failed: %v), not %q (%v)", got, result.Failed(), test.text, test.failed)
			}
			if got := string(result.StructuredContent); got != test.structured {
				t.Errorf("the structured content is %q, not %q", got, test.structured)
			}
		})
	}
}

func TestHeaderAnnotationsAreKnownBeforeAnybodyLists(t *testing.T) {
	s := server.New(mcp.Implementation{Name: "test", Version: "1"}, nil)
	s.AddTool(mcp.Tool{
		Name:        "query",
		InputSchema: mcp.JSON(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`),
	}, func(context.Context, *server.Call) (mcp.Result, error) {
		return mcp.RawResult([]byte(`{"content":[]}`)), nil
	})
	handler := streamable.NewHandler(s, nil)
	defer handler.Close()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"region":"eu"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, test := range []struct {
		region string
		status int
	}{{"eu", http.StatusOK}, {"us", http.StatusBadRequest}, {"", http.StatusBadRequest}} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8421/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "query")
		if test.region != "" {
			r.Header.Set("Mcp-Param-Region", test.region)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("the region %q got the status %d, not %d: %s", test.region, w.Code, test.status, w.Body)
		}
	}
}
