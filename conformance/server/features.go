package main

import (
	"context"
	"fmt"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

func addResources(s *server.Server) {
	s.AddResource(mcp.Resource{
		URI: "test://static-text", Name: "Static text", Description: "A text.", MIMEType: "text/plain",
	}, readText("text/plain", "This is the content of the static text resource."))
	s.AddResource(mcp.Resource{
		URI: "test://static-binary", Name: "Static binary", Description: "A picture.", MIMEType: "image/png",
	}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return server.BlobContents("image/png", dotPNG), nil
	})
	s.AddResource(mcp.Resource{
		URI: "test://watched-resource", Name: "Watched", Description: "A resource to subscribe to.", MIMEType: "text/plain",
	}, readText("text/plain", "Watched."))
	s.AddResourceTemplate(mcp.ResourceTemplate{
		URITemplate: "test://template/{id}/data", Name: "Template", Description: "Data by id.", MIMEType: "application/json",
	}, func(_ context.Context, _ *server.Call, _ string, variables map[string]string) (*mcp.ReadResourceResult, error) {
		data, err := mcp.NewJSON(map[string]any{
			"id": variables["id"], "templateTest": true, "data": "Data for ID: " + variables["id"],
		})
		return server.TextContents("application/json", string(data)), err
	})
}

func readText(mimeType, text string) server.ReadFunc {
	return func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return server.TextContents(mimeType, text), nil
	}
}

func addPrompts(s *server.Server) {
	s.AddPrompt(mcp.Prompt{Name: "test_simple_prompt", Description: "A simple prompt."}, simplePrompt)
	arguments := []mcp.PromptArgument{
		{Name: "arg1", Description: "First test argument", Required: true},
		{Name: "arg2", Description: "Second test argument", Required: true},
	}
	s.AddPrompt(mcp.Prompt{
		Name: "test_prompt_with_arguments", Description: "A prompt with arguments.", Arguments: arguments,
	}, func(_ context.Context, _ *server.Call, args map[string]string) (*mcp.GetPromptResult, error) {
		text := fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])
		return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{server.UserText(text)}}, nil
	})
	s.CompletePrompt("test_prompt_with_arguments", "arg1",
		func(_ context.Context, _ *server.Call, typed string, _ map[string]string) ([]string, error) {
			return []string{typed + "Value1", typed + "Value2"}, nil
		})
	s.AddPrompt(mcp.Prompt{
		Name: "test_prompt_with_embedded_resource", Description: "A prompt with a resource.",
		Arguments: []mcp.PromptArgument{{Name: "resourceUri", Description: "URI of the resource", Required: true}},
	}, func(_ context.Context, _ *server.Call, args map[string]string) (*mcp.GetPromptResult, error) {
		text := "Embedded resource content for testing."
		return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{
			{Role: mcp.User, Content: &mcp.EmbeddedResource{Resource: mcp.ResourceContents{
				URI: args["resourceUri"], MIMEType: "text/plain", Text: &text,
			}}},
			server.UserText("Please process the embedded resource above."),
		}}, nil
	})
	s.AddPrompt(mcp.Prompt{Name: "test_prompt_with_image", Description: "A prompt with an image."},
		func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{
				{Role: mcp.User, Content: &mcp.Image{Data: dotPNG, MIMEType: "image/png"}},
				server.UserText("Please analyze the image above."),
			}}, nil
		})
}

func simplePrompt(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) {
	return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{server.UserText("This is a simple prompt for testing.")}}, nil
}
