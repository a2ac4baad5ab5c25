package main

import (
	"bufio"
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

type guest struct {
	Name string `json:"name" jsonschema:"for the name plate"`
	Note string `json:"note,omitempty" jsonschema:"what the kitchen should know"`
}

// TestAnswers has a tool ask, in both eras, a user who answers and one who leaves.
func TestAnswers(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		for typed, want := range map[string]string{"Ada\nnuts\n": "Ada, nuts", "Ada\n\n": "Ada, ", "": "nobody"} {
			t.Run(era.String()+" "+want, func(t *testing.T) {
				s := server.New(mcp.Implementation{Name: "restaurant", Version: "1"}, nil)
				server.AddTool(s, mcp.Tool{Name: "reserve"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
					who, action, err := server.Elicit[guest](ctx, call, "Who?")
					if action != mcp.Accept {
						return "nobody", err
					}
					return who.Name + ", " + who.Note, err
				})
				handler := streamable.NewHandler(s, &streamable.HandlerOptions{Era: era})
				listener := httptest.NewServer(handler)
				defer handler.Close()
				defer listener.Close()
				var out strings.Builder
				u := &user{bufio.NewScanner(strings.NewReader(typed)), &out}
				if err := run(t.Context(), client.URL(listener.URL), "reserve", "{}", u); err != nil {
					t.Fatal(err)
				}
				if got := out.String(); !strings.HasPrefix(got, "Who?\nname (for the name plate): ") || !strings.HasSuffix(got, want+"\n") {
					t.Errorf("the terminal shows %s", got)
				}
			})
		}
	}
}
