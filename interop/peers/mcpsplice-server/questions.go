package main

import (
	"context"
	"encoding/json"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// addQuestions adds tools that ask the client one question each.
func (f *features) addQuestions() {
	tool(f, "ask-name", func(ctx context.Context, c *server.Call, _ none) (string, error) {
		filled, action, err := server.Elicit[name](ctx, c, "What is your name?")
		return string(action) + " " + filled.Name, err
	})
	tool(f, "ask-url", func(ctx context.Context, c *server.Call, _ none) (string, error) {
		answer, err := c.Elicit(ctx, mcp.ElicitParams{
			Mode: mcp.ElicitURL, Message: "Please open this.", URL: "https://example.com/",
		})
		if err != nil {
			return "", err
		}
		return string(answer.Action), nil
	})
	tool(f, "ask-model", func(ctx context.Context, c *server.Call, _ none) (string, error) {
		answer, err := c.Sample(ctx, mcp.CreateMessageParams{
			Messages:  []mcp.SamplingMessage{{Role: mcp.User, Content: mcp.Contents{&mcp.Text{Text: "Say something."}}}},
			MaxTokens: 10,
		})
		if err != nil {
			return "", err
		}
		return answer.Model, nil
	})
	tool(f, "ask-roots", func(ctx context.Context, c *server.Call, _ none) (string, error) {
		roots, err := c.Roots(ctx)
		if err != nil {
			return "", err
		}
		b, err := json.Marshal(roots)
		return string(b), err
	})
	tool(f, "ask-sealed", askSealed)
}

// A name is the form of ask-name.
type name struct {
	Name string `json:"name"`
}

// askSealed keeps nothing in this process while the client answers.
func askSealed(_ context.Context, c *server.Call, _ none) (string, error) {
	state, err := c.State()
	if err != nil {
		return "", err
	}
	var answer mcp.ElicitResult
	if state != nil && c.Answer("name", &answer) {
		return string(state) + " " + string(answer.Content), nil
	}
	form := mcp.JSON(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
	return "", server.NeedInput(map[string]mcp.InputRequest{
		"name": server.ElicitRequest(mcp.ElicitParams{Message: "What is your name?", RequestedSchema: form}),
	}, []byte("sealed for"))
}
