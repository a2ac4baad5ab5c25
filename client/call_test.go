package client_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

func TestCallKeepsTheResultAsItCame(t *testing.T) {
	const raw = `{"z":1.0,"a":1e2,"content":[],"\u0062":"\u00e9","n":123456789012345678901234567890}`
	handler := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodCallTool {
			return mcp.RawResult([]byte(raw)), nil
		}
		return mcp.RawResult([]byte(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`)), nil
	})
	c, err := client.Connect(t.Context(), client.Handler(handler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	params := jsonrpc.Trusted([]byte(`{"name":"t"}`))
	result, err := c.Call(t.Context(), mcp.MethodCallTool, params, nil)
	if err != nil || !bytes.Equal(result.Raw(), []byte(raw)) {
		t.Errorf("got %s, %v", result.Raw(), err)
	}
}

// TestTypesOfResults_B113: one that the client does not know is invalid, except of a
// legacy server, whose results have none, or if the client has declared extensions.
func TestTypesOfResults_B113(t *testing.T) {
	extended := &client.Options{Extensions: mcp.Object{"com.example/x": mcp.JSON("{}")}}
	for _, tt := range []struct {
		name, result string
		era          mcp.Era
		opts         *client.Options
		ok, list     bool // of a tool's call, and of a list
	}{
		{"complete", `"resultType":"complete",`, mcp.Modern, nil, true, true},
		{"none", ``, mcp.Modern, nil, true, true},
		{"unknown", `"resultType":"vendor",`, mcp.Modern, nil, false, false},
		{"no text", `"resultType":7,`, mcp.Modern, nil, false, false},
		{"unknown, of a legacy server", `"resultType":"vendor",`, mcp.Legacy, nil, true, true},
		{"of an extension", `"resultType":"vendor",`, mcp.Modern, extended, true, true},
		{"input for a list", `"resultType":"input_required","requestState":"s",`, mcp.Modern, extended, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			handle := func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				return mcp.RawResult([]byte(`{` + tt.result + `"content":[],"tools":[]}`)), nil
			}
			target := &puppet{dialed: func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
				return newEdge(tt.era, handle), nil
			}}
			c := connect(t, target, tt.opts)
			for page, err := range c.Pages(t.Context(), mcp.MethodListTools) {
				if kind, _ := outcome(err); (err == nil) != tt.list || err != nil && kind != mcp.BadReply {
					t.Errorf("a list: %s, %v", page.Raw(), err)
				}
			}
			if tt.name == "input for a list" {
				return // a tool's call would ask again and again
			}
			err := call(t, c)
			if kind, outcome := outcome(err); (err == nil) != tt.ok || err != nil && (kind != mcp.BadReply || outcome != mcp.Answered) {
				t.Errorf("a call: %v", err)
			}
		})
	}
}
