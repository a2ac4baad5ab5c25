package demo

import (
	"context"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

const (
	clockURI     = "demo://clock"
	echoTemplate = "demo://echo/{text}"
	plainText    = "text/plain"
	sampleText   = "A text that never changes.\nGrüße, 世界, 👋.\n"
)

func addResources(s *server.Server) {
	s.AddResource(mcp.Resource{
		URI: clockURI, Name: "clock", Title: "Clock", MIMEType: plainText,
		Description: "The time, which changes every few seconds. Subscribe to it.",
	}, text(now))
	s.AddResource(mcp.Resource{
		URI: "demo://text", Name: "text", Title: "Text", MIMEType: plainText,
		Description: "A text that never changes.",
	}, text(func() string { return sampleText }))
	s.AddResource(mcp.Resource{
		URI: "demo://picture", Name: "picture", Title: "Picture", MIMEType: "image/png",
		Description: "A small PNG.",
	}, readPicture)
	s.AddResourceTemplate(mcp.ResourceTemplate{
		URITemplate: echoTemplate, Name: "echo", Title: "Echo", MIMEType: plainText,
		Description: "The text in its own address.",
	}, readEcho)
	s.CompleteResource(echoTemplate, "text", complete(words))
}

// text reads what f returns.
func text(f func() string) server.ReadFunc {
	return func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return server.TextContents(plainText, f()), nil
	}
}

func readPicture(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
	picture, err := draw()
	return server.BlobContents("image/png", picture), err
}

func readEcho(_ context.Context, _ *server.Call, uri string, variables map[string]string) (*mcp.ReadResourceResult, error) {
	if variables["text"] == "" {
		return nil, server.NotFound(uri)
	}
	return server.TextContents(plainText, variables["text"]), nil
}
