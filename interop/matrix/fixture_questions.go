package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// pageURL is what the tool open asks to open.
const pageURL = "https://example.com/consent?a=1&b=%C3%A9"

// A form is what the tool ask asks for.
type form struct {
	Name string `json:"name"`
	Age  *int   `json:"age,omitempty"`
}

// addQuestions adds tools that ask one question each, and wait for the answer.
func (f *fixture) addQuestions() {
	tool(f, "ask", func(ctx context.Context, c *server.Call, in struct {
		Message string `json:"message"`
	}) (string, error) {
		filled, action, err := server.Elicit[form](ctx, c, in.Message)
		if filled.Age != nil {
			err = errors.Join(err, errors.New("an age that nobody gave"))
		}
		return strings.TrimSpace(string(action) + " " + filled.Name), err
	})
	tool(f, "open", func(ctx context.Context, c *server.Call, _ none) (string, error) {
		answer, err := c.Elicit(ctx, mcp.ElicitParams{Mode: mcp.ElicitURL, Message: "Please open this.", URL: pageURL})
		if err != nil {
			return "", err
		}
		return string(answer.Action), nil
	})
	tool(f, "consent", f.consent)
	tool(f, "sample", func(ctx context.Context, c *server.Call, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return sample(ctx, c, in.Text)
	})
	tool(f, "roots", func(ctx context.Context, c *server.Call, _ none) (string, error) {
		roots, err := c.Roots(ctx)
		if err != nil {
			return "", err
		}
		text, err := mcp.NewJSON(roots)
		return string(text), err
	})
}

// consent wants a page to be opened before it does anything. A legacy client is told
// so by an error, and calls again.
func (f *fixture) consent(_ context.Context, c *server.Call, _ none) (string, error) {
	params := mcp.ElicitParams{Mode: mcp.ElicitURL, Message: "Please open this.", URL: pageURL}
	legacy := c.Request().Meta.Revision.Era() == mcp.Legacy
	if legacy {
		params.ElicitationID = "consent-1"
	}
	question := server.ElicitRequest(params)
	if err := c.MayAsk(question); err != nil {
		return "", err
	}
	if legacy {
		if f.asked.CompareAndSwap(false, true) {
			data := fmt.Sprintf(`{"elicitations":[%s]}`, question.Params)
			return "", &jsonrpc.Error{
				Code: jsonrpc.CodeURLElicitationRequired, Message: "open a page first", Data: jsonrpc.Trusted([]byte(data)),
			}
		}
		return "consented", nil
	}
	var answer mcp.ElicitResult
	if !c.Answer("page", &answer) {
		return "", server.NeedInput(map[string]mcp.InputRequest{"page": question}, []byte("asked"))
	}
	if answer.Action != mcp.Accept {
		return "", fmt.Errorf("the user's answer is %s", answer.Action)
	}
	return "consented", nil
}

// sampling returns the params of a question to the client's model.
func sampling(text string) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.User, Content: mcp.Contents{&mcp.Text{Text: text}}}},
		MaxTokens: 100,
	}
}

// sample asks the client's model and returns what it says.
func sample(ctx context.Context, c *server.Call, text string) (string, error) {
	answer, err := c.Sample(ctx, sampling(text))
	if err != nil {
		return "", err
	}
	return said(answer)
}

// said returns the text of what a model says.
func said(answer *mcp.CreateMessageResult) (string, error) {
	if len(answer.Content) == 1 {
		if text, ok := answer.Content[0].(*mcp.Text); ok {
			return text.Text + " by " + answer.Model, nil
		}
	}
	return "", fmt.Errorf("%d blocks were sampled, want one text", len(answer.Content))
}

// addRounds adds tools that ask more than one question: in a call that waits, and
// by results that need input (2026-07-28, patterns/mrtr).
func (f *fixture) addRounds() {
	tool(f, "twice", func(ctx context.Context, c *server.Call, _ none) (string, error) {
		first, err := sample(ctx, c, "first")
		if err != nil {
			return "", err
		}
		second, err := sample(ctx, c, "after "+first)
		return second, err
	})
	tool(f, "twice-sealed", twiceSealed)
	tool(f, "both", both)
	tool(f, "both-sealed", bothSealed)
	f.AddPrompt(mcp.Prompt{Name: "asking"},
		func(ctx context.Context, c *server.Call, _ map[string]string) (*mcp.GetPromptResult, error) {
			text, err := sample(ctx, c, "prompt")
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{server.UserText(text)}}, err
		})
	f.AddResource(mcp.Resource{URI: askingMemo, Name: "asking"},
		func(_ context.Context, c *server.Call, _ string, _ map[string]string) (*mcp.ReadResourceResult, error) {
			if state, err := c.State(); err != nil || state == nil {
				return nil, errors.Join(err, need("asked", map[string]string{"a": "resource"}))
			}
			text, err := answered(c, "a")
			return server.TextContents("text/plain", text), err
		})
}

// need asks the client's model questions by their keys.
func need(state string, texts map[string]string) error {
	questions := map[string]mcp.InputRequest{}
	for key, text := range texts {
		questions[key] = server.SampleRequest(sampling(text))
	}
	return server.NeedInput(questions, []byte(state))
}

// answered returns what the model has said to the question of a key.
func answered(c *server.Call, key string) (string, error) {
	var answer mcp.CreateMessageResult
	if !c.Answer(key, &answer) {
		return "", fmt.Errorf("the question %s has no answer", key)
	}
	return said(&answer)
}

func twiceSealed(_ context.Context, c *server.Call, _ none) (string, error) {
	state, err := c.State()
	switch {
	case err != nil:
		return "", err
	case state == nil:
		return "", need("one", map[string]string{"a": "first"})
	case string(state) == "one":
		first, err := answered(c, "a")
		if err != nil {
			return "", err
		}
		return "", need("two", map[string]string{"b": "after " + first})
	}
	return answered(c, "b")
}

// questions are what both and both-sealed ask.
type questions struct {
	Left  string `json:"left"`
	Right string `json:"right"`
}

// both asks two questions at once.
func both(ctx context.Context, c *server.Call, in questions) (string, error) {
	var (
		asking  sync.WaitGroup
		answers [2]string
		errs    [2]error
	)
	for i, text := range []string{in.Left, in.Right} {
		asking.Go(func() { answers[i], errs[i] = sample(ctx, c, text) })
	}
	asking.Wait()
	return answers[0] + ", " + answers[1], errors.Join(errs[:]...)
}

func bothSealed(_ context.Context, c *server.Call, in questions) (string, error) {
	state, err := c.State()
	if err != nil {
		return "", err
	}
	if state == nil {
		return "", need("asked", map[string]string{"a": in.Left, "b": in.Right})
	}
	left, err := answered(c, "a")
	if err != nil {
		return "", err
	}
	right, err := answered(c, "b")
	return left + ", " + right, err
}
