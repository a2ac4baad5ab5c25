package client_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
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
