package client_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// targets are the demo server, in this process and over HTTP.
func targets(t *testing.T) map[string]client.Target {
	t.Helper()
	handler := streamable.NewHandler(demo.New("1"), nil)
	listener := httptest.NewServer(handler)
	t.Cleanup(func() {
		listener.Close()
		handler.Close()
	})
	return map[string]client.Target{
		"in process": client.Handler(demo.New("1")),
		"HTTP":       client.URL(listener.URL),
	}
}

func TestCallsOfEachEra(t *testing.T) {
	for name, target := range targets(t) {
		for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
			t.Run(name+" "+era.String(), func(t *testing.T) {
				asked := 0
				c, err := client.Connect(t.Context(), target, &client.Options{
					Era: era,
					Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
						asked++
						return &mcp.ElicitResult{Action: mcp.Accept, Content: mcp.JSON(`{"name":"Ada"}`)}, nil
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}()
				names := 0
				for tool, err := range c.Tools(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					if tool.Name == "" {
						t.Error("a tool has no name")
					}
					names++
				}
				if names < 10 {
					t.Errorf("%d tools", names)
				}
				result, err := c.CallTool(t.Context(), "ask", nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if text := result.Content[0].(*mcp.Text).Text; text != "Hello, Ada!" || asked != 1 {
					t.Errorf("got %q, asked %d times", text, asked)
				}
				steps := 0
				_, err = c.CallTool(t.Context(), "slow", map[string]int{"steps": 3, "delay_ms": 1}, &client.CallOptions{
					Progress: func(*mcp.ProgressParams) { steps++ },
				})
				if err != nil || steps != 3 {
					t.Errorf("%d steps, %v", steps, err)
				}
			})
		}
	}
}
