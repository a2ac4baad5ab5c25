package server_test

import (
	"context"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// TestQuestionsHaveParams: the official Go SDK's client fails without them.
func TestQuestionsHaveParams(t *testing.T) {
	s := server.New(mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddTool(s, mcp.Tool{Name: "ask"}, func(context.Context, *server.Call, struct{}) (string, error) {
		return "", server.NeedInput(map[string]mcp.InputRequest{"r": server.RootsRequest()}, nil)
	})
	req := &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(`{"name":"ask"}`))}
	req.Meta.Revision, req.Meta.Capabilities = mcp.NewestModern, []byte(`{"roots":{}}`)
	result, err := s.Handle(t.Context(), req, mcp.NoCaller{})
	if err != nil {
		t.Fatal(err)
	}
	requests := result.Get("inputRequests")
	if got := string(requests.Raw()); got != `{"r":{"method":"roots/list","params":{}}}` {
		t.Errorf("asked %s", got)
	}
}
