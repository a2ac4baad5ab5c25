package demo

import (
	"context"
	"strings"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// What completion offers for the argument of the prompt, and for that of the
// resource template.
var (
	names = []string{"Ada", "Alan", "Barbara", "Dennis", "Donald", "Edsger", "Frances", "Grace", "Ken", "Margaret"}
	words = []string{"hello", "hello%20world", "here"}
)

func addPrompts(s *server.Server) {
	s.AddPrompt(mcp.Prompt{
		Name: "greeting", Title: "Greeting", Description: "Asks for a warm greeting of somebody.",
		Arguments: []mcp.PromptArgument{{Name: "name", Description: "Whom to greet", Required: true}},
	}, greet)
	s.CompletePrompt("greeting", "name", complete(names))
}

func greet(_ context.Context, _ *server.Call, args map[string]string) (*mcp.GetPromptResult, error) {
	return &mcp.GetPromptResult{
		Description: "A greeting of " + args["name"],
		Messages:    []mcp.PromptMessage{server.UserText("Greet " + args["name"] + " warmly, in one sentence.")},
	}, nil
}

// complete offers what begins with what was typed, in whatever case.
func complete(all []string) server.CompleteFunc {
	return func(_ context.Context, _ *server.Call, typed string, _ map[string]string) ([]string, error) {
		var values []string
		for _, value := range all {
			if len(value) >= len(typed) && strings.EqualFold(value[:len(typed)], typed) {
				values = append(values, value)
			}
		}
		return values, nil
	}
}
