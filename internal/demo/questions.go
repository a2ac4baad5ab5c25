package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// addQuestions adds the tools that ask the client something.
func addQuestions(s *server.Server) {
	server.AddTool(s, mcp.Tool{Name: "ask", Title: "Ask", Description: "Asks the user for a name and greets them."}, ask)
	server.AddTool(s, mcp.Tool{
		Name: "sample", Title: "Sample", Description: "Has the client's model write a line about a topic.",
		InputSchema: schema(`"topic":{"type":"string","default":"the sea"}`),
	}, sample)
	server.AddTool(s, mcp.Tool{
		Name: "roots", Title: "List roots", Description: "Lists the files and directories that the client works on.",
	}, roots)
	server.AddTool(s, mcp.Tool{
		Name: "order", Title: "Order", Description: "Orders a drink: asks twice, and keeps nothing in the server between the questions.",
	}, order)
}

var errCannotAsk = errors.New("the client cannot be asked: it has not declared that it answers such questions, " +
	"or its connection has no way for them")

// explain returns the error of a question as the tool's own. A modern client that
// has not declared what was asked for is told so by the error that its revision
// has for that (2026-07-28, basic, Error Codes).
func explain(call *server.Call, err error) error {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	undeclared := ok && wire.Code == jsonrpc.CodeMissingCapability
	if errors.Is(err, mcp.ErrCannotAsk) || undeclared && call.Request().Meta.Revision.Era() == mcp.Legacy {
		return errCannotAsk
	}
	return err
}

type person struct {
	Name string `json:"name" jsonschema:"What to call you"`
}

func ask(ctx context.Context, call *server.Call, _ none) (string, error) {
	user, action, err := server.Elicit[person](ctx, call, "What is your name?")
	if err != nil {
		return "", explain(call, err)
	}
	if action != mcp.Accept {
		return fmt.Sprintf("No name was given: %s.", action), nil
	}
	return fmt.Sprintf("Hello, %s!", user.Name), nil
}

type sampleArgs struct {
	Topic string `json:"topic"`
}

func sample(ctx context.Context, call *server.Call, in sampleArgs) (string, error) {
	prompt := &mcp.Text{Text: "Write one line about " + in.Topic + "."}
	answer, err := call.Sample(ctx, mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.User, Content: mcp.Contents{prompt}}},
		MaxTokens: 100,
	})
	if err != nil {
		return "", explain(call, err)
	}
	for _, block := range answer.Content {
		if text, ok := block.(*mcp.Text); ok {
			return fmt.Sprintf("%s wrote: %s", answer.Model, text.Text), nil
		}
	}
	return "", fmt.Errorf("%s wrote no text", answer.Model)
}

func roots(ctx context.Context, call *server.Call, _ none) (string, error) {
	found, err := call.Roots(ctx)
	if err != nil {
		return "", explain(call, err)
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "Roots of the client: %d", len(found))
	for _, root := range found {
		fmt.Fprintf(&lines, "\n%s %s", root.URI, root.Name)
	}
	return lines.String(), nil
}

// A menu is what one question of order offers.
type menu struct {
	key, message string
	choices      []string
}

var (
	drinks = menu{"drink", "What would you like to drink?", []string{"coffee", "tea", "water"}}
	sizes  = menu{"size", "Which size?", []string{"small", "large"}}
)

// order is called three times: for the first question, with its answer, and with
// the second answer. What it knows by then travels with the client.
func order(_ context.Context, call *server.Call, _ none) (string, error) {
	drink, err := call.State()
	if err != nil {
		return "", err
	}
	next := drinks
	if drink != nil {
		next = sizes
	}
	var answer mcp.ElicitResult
	if !call.Answer(next.key, &answer) {
		return "", next.ask(call, drink)
	}
	if answer.Action != mcp.Accept {
		return fmt.Sprintf("Nothing was ordered: %s.", answer.Action), nil
	}
	var form struct {
		Choice string `json:"choice"`
	}
	if err := answer.Content.Decode(&form); err != nil || !slices.Contains(next.choices, form.Choice) {
		return "", fmt.Errorf("the answer is not on the menu: it must be one of %s", strings.Join(next.choices, ", "))
	}
	if drink == nil {
		return "", sizes.ask(call, []byte(form.Choice))
	}
	return fmt.Sprintf("Here is your %s %s.", form.Choice, drink), nil
}

// ask returns the error that asks the user to choose.
func (m menu) ask(call *server.Call, state []byte) error {
	choices := `"` + strings.Join(m.choices, `","`) + `"`
	question := server.ElicitRequest(mcp.ElicitParams{
		Message:         m.message,
		RequestedSchema: schema(`"choice":{"type":"string","enum":[`+choices+`]}`, "choice"),
	})
	if err := call.MayAsk(question); err != nil {
		return explain(call, err)
	}
	return server.NeedInput(map[string]mcp.InputRequest{m.key: question}, state)
}
