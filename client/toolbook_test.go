package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestRepeatHoldsUpNothing: while [client.Options].Repeat looks at a tool, the client
// takes what its server tells.
func TestRepeatHoldsUpNothing(t *testing.T) {
	server := newStation(mcp.Modern)
	server.dialed = nil
	server.puppet.handle = func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodListTools {
			return mcp.RawResult([]byte(toolList)), nil
		}
		return server.handle(ctx, req, caller)
	}
	c, err := client.Connect(t.Context(), server, &client.Options{Repeat: func(tool *mcp.Tool) bool {
		server.tell(mcp.NotificationToolsListChanged, "{}")
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Listen(t.Context(), tools)
	if err != nil {
		t.Fatal(err)
	}
	listed := make(chan error, 1)
	go func() {
		for _, err := range c.Tools(t.Context()) {
			if err != nil {
				listed <- err
				return
			}
		}
		listed <- nil
	}()
	select {
	case err := <-listed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the change is not taken") // nor could the client be closed
	}
	expect(t, s, mcp.NotificationToolsListChanged)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
