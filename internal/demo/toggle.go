package demo

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// extras tells which kinds of features have one more at the moment.
type extras struct {
	mu    sync.Mutex
	there map[string]bool // guarded by mu
}

var toggleTool = mcp.Tool{
	Name: "toggle", Title: "Toggle", Description: "Adds an extra resource, tool or prompt to its list, or takes it away again.",
	InputSchema: schema(`"what":{"enum":["resource","tool","prompt"],"default":"resource"}`),
}

type toggleArgs struct {
	What string `json:"what"`
}

func (s *Server) toggle(_ context.Context, _ *server.Call, in toggleArgs) (string, error) {
	s.extras.mu.Lock()
	defer s.extras.mu.Unlock()
	if s.extras.there[in.What] {
		delete(s.extras.there, in.What)
		s.removeExtra(in.What)
		return fmt.Sprintf("The extra %s is gone.", in.What), nil
	}
	if s.extras.there == nil {
		s.extras.there = make(map[string]bool)
	}
	s.extras.there[in.What] = true
	s.addExtra(in.What)
	return fmt.Sprintf("The extra %s is there now.", in.What), nil
}

const (
	extraURI = "demo://extra"
	iAmExtra = "I am extra."
	whyExtra = "Is there because the tool toggle added it."
)

func (s *Server) addExtra(kind string) {
	switch kind {
	case "resource":
		s.server.AddResource(mcp.Resource{
			URI: extraURI, Name: "extra", Title: "Extra", Description: whyExtra, MIMEType: plainText,
		}, text(func() string { return iAmExtra }))
	case "tool":
		server.AddTool(s.server, mcp.Tool{Name: "extra", Title: "Extra", Description: whyExtra},
			func(context.Context, *server.Call, none) (string, error) { return iAmExtra, nil })
	case "prompt":
		s.server.AddPrompt(mcp.Prompt{Name: "extra", Title: "Extra", Description: whyExtra},
			func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) {
				messages := []mcp.PromptMessage{server.UserText("Say something extra.")}
				return &mcp.GetPromptResult{Description: "An extra prompt", Messages: messages}, nil
			})
	}
}

func (s *Server) removeExtra(kind string) {
	switch kind {
	case "resource":
		s.server.RemoveResources(extraURI)
	case "tool":
		s.server.RemoveTools("extra")
	case "prompt":
		s.server.RemovePrompts("extra")
	}
}
