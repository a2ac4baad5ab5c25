package main

import (
	"context"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

const prefix = "test_input_required_result_"

// form returns a question for one field.
func form(message, field, kind string) mcp.InputRequest {
	return server.ElicitRequest(mcp.ElicitParams{
		Message:         message,
		RequestedSchema: mcp.JSON(`{"type":"object","properties":{"` + field + `":{"type":"` + kind + `"}},"required":["` + field + `"]}`),
	})
}

var capital = server.SampleRequest(mcp.CreateMessageParams{
	Messages: []mcp.SamplingMessage{{Role: mcp.User, Content: mcp.Contents{
		&mcp.Text{Text: "What is the capital of France?"},
	}}},
	MaxTokens: 100,
})

// questions are those of one round.
type questions = map[string]mcp.InputRequest

// addRoundTools adds tools that are called again with the answers they asked
// for.
func addRoundTools(s *server.Server) {
	add := func(name, description string, run server.ToolFunc[nothing, string]) {
		server.AddTool(s, mcp.Tool{Name: prefix + name, Description: description}, run)
	}
	add("elicitation", "Asks for a name.", func(_ context.Context, c *server.Call, _ nothing) (string, error) {
		name, ok := accepted(c, "user_name", "name")
		if !ok {
			return "", server.NeedInput(questions{"user_name": form("What is your name?", "name", "string")}, nil)
		}
		return "Hello, " + name + "!", nil
	})
	add("sampling", "Asks a model.", func(_ context.Context, c *server.Call, _ nothing) (string, error) {
		var answer mcp.CreateMessageResult
		if !c.Answer("capital_question", &answer) {
			return "", server.NeedInput(questions{"capital_question": capital}, nil)
		}
		return "The model has answered.", nil
	})
	add("list_roots", "Asks for roots.", func(_ context.Context, c *server.Call, _ nothing) (string, error) {
		var answer mcp.ListRootsResult
		if !c.Answer("client_roots", &answer) {
			return "", server.NeedInput(questions{"client_roots": server.RootsRequest()}, nil)
		}
		return "The client has roots.", nil
	})
	add("request_state", "Keeps state with the client.", confirm)
	add("tampered_state", "Keeps state with the client.", confirm)
	add("multiple_inputs", "Asks three things at once.", multipleInputs)
	add("multi_round", "Asks twice.", multiRound)
	add("capabilities", "Asks what the client can answer.", askWhatIsDeclared)
	s.AddPrompt(mcp.Prompt{Name: prefix + "prompt", Description: "Asks for its context."}, promptWithInput)
}

// accepted returns a field of an accepted form.
func accepted(c *server.Call, key, field string) (string, bool) {
	var answer mcp.ElicitResult
	if !c.Answer(key, &answer) || answer.Action != mcp.Accept {
		return "", false
	}
	var fields mcp.Object
	if answer.Content.Decode(&fields) != nil {
		return "", false
	}
	var text string
	return text, fields[field].Decode(&text) == nil
}

// confirm asks for a confirmation and goes on where its state says.
func confirm(_ context.Context, c *server.Call, _ nothing) (string, error) {
	state, err := c.State()
	if err != nil {
		return "", err
	}
	var answer mcp.ElicitResult
	if state == nil || !c.Answer("confirm", &answer) {
		return "", server.NeedInput(questions{"confirm": form("Please confirm", "ok", "boolean")}, []byte("confirming"))
	}
	return "state-ok: " + string(state), nil
}

func multipleInputs(_ context.Context, c *server.Call, _ nothing) (string, error) {
	state, err := c.State()
	if err != nil {
		return "", err
	}
	all := questions{
		"user_name":    form("What is your name?", "name", "string"),
		"greeting":     capital,
		"client_roots": server.RootsRequest(),
	}
	missing := questions{}
	for key, question := range all {
		var answer mcp.Object
		if state == nil || !c.Answer(key, &answer) {
			missing[key] = question
		}
	}
	if len(missing) > 0 {
		return "", server.NeedInput(missing, []byte("waiting"))
	}
	return "Everything was answered.", nil
}

func multiRound(_ context.Context, c *server.Call, _ nothing) (string, error) {
	state, err := c.State()
	if err != nil {
		return "", err
	}
	var answer mcp.ElicitResult
	switch {
	case string(state) == "second" && c.Answer("step2", &answer):
		return "Both steps are done.", nil
	case string(state) == "second", string(state) == "first" && c.Answer("step1", &answer):
		return "", server.NeedInput(questions{"step2": form("What is your favorite color?", "color", "string")}, []byte("second"))
	}
	return "", server.NeedInput(questions{"step1": form("What is your name?", "name", "string")}, []byte("first"))
}

// askWhatIsDeclared asks only what the client has declared to answer.
func askWhatIsDeclared(_ context.Context, c *server.Call, _ nothing) (string, error) {
	asked := questions{}
	for key, question := range (questions{
		"user_name": form("What is your name?", "name", "string"), "capital_question": capital,
	}) {
		var answer mcp.Object
		if c.MayAsk(question) == nil && !c.Answer(key, &answer) {
			asked[key] = question
		}
	}
	if len(asked) > 0 {
		return "", server.NeedInput(asked, nil)
	}
	return "Everything was answered.", nil
}

func promptWithInput(_ context.Context, c *server.Call, _ map[string]string) (*mcp.GetPromptResult, error) {
	text, ok := accepted(c, "user_context", "context")
	if !ok {
		return nil, server.NeedInput(questions{"user_context": form("What is the context?", "context", "string")}, nil)
	}
	return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{server.UserText("Context: " + text)}}, nil
}
