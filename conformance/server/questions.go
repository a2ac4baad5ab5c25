package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// Forms that the suite looks into.
const (
	accountForm = `{"type":"object","properties":{
		"username":{"type":"string","description":"User's response"},
		"email":{"type":"string","description":"User's email address"}},
		"required":["username","email"]}`
	defaultsForm = `{"type":"object","properties":{
		"name":{"type":"string","description":"User name","default":"John Doe"},
		"age":{"type":"integer","description":"User age","default":30},
		"score":{"type":"number","description":"User score","default":95.5},
		"status":{"type":"string","description":"User status","enum":["active","inactive","pending"],"default":"active"},
		"verified":{"type":"boolean","description":"Verification status","default":true}},
		"required":[]}`
	enumsForm = `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},
			{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},
			{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}},
		"required":[]}`
)

type messageArgs struct {
	Message string `json:"message" jsonschema:"what the user is told"`
}

// addQuestionTools adds tools that ask the client and wait.
func addQuestionTools(s *server.Server) {
	server.AddTool(s, mcp.Tool{Name: "test_sampling", Description: "Has the client's model answer."}, sample)
	server.AddTool(s, mcp.Tool{Name: "test_elicitation", Description: "Asks the user for an account."},
		func(ctx context.Context, c *server.Call, in messageArgs) (string, error) {
			return elicit(ctx, c, in.Message, accountForm)
		})
	ask := func(name, description, message, form string) {
		server.AddTool(s, mcp.Tool{Name: name, Description: description},
			func(ctx context.Context, c *server.Call, _ nothing) (string, error) {
				return elicit(ctx, c, message, form)
			})
	}
	ask("test_elicitation_sep1034_defaults", "Asks with defaults.", "Please review these values", defaultsForm)
	ask("test_elicitation_sep1330_enums", "Asks with choices.", "Please choose", enumsForm)
	ask("test_streaming_elicitation", "Asks the user.", "Please confirm", `{"type":"object","properties":{"ok":{"type":"boolean"}}}`)
	server.AddTool(s, mcp.Tool{Name: "test_missing_capability", Description: "Needs sampling."},
		func(ctx context.Context, c *server.Call, _ nothing) (string, error) {
			return sample(ctx, c, struct {
				Prompt string `json:"prompt"`
			}{"anything"})
		})
}

func sample(ctx context.Context, c *server.Call, in struct {
	Prompt string `json:"prompt"`
}) (string, error) {
	answer, err := c.Sample(ctx, mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.User, Content: mcp.Contents{&mcp.Text{Text: in.Prompt}}}},
		MaxTokens: 100,
	})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, block := range answer.Content {
		if t, ok := block.(*mcp.Text); ok {
			text.WriteString(t.Text)
		}
	}
	return "LLM response: " + text.String(), nil
}

func elicit(ctx context.Context, c *server.Call, message, form string) (string, error) {
	answer, err := c.Elicit(ctx, mcp.ElicitParams{Message: message, RequestedSchema: mcp.JSON(form)})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("User response: action=%s, content=%s", answer.Action, answer.Content), nil
}
