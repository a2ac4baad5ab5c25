package server

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// A PromptFunc makes a prompt's messages. Arguments that the definition requires
// are there.
type PromptFunc func(ctx context.Context, call *Call, args map[string]string) (*mcp.GetPromptResult, error)

// A prompt is a prompt of a server.
type prompt struct {
	required []string
	get      PromptFunc
}

// AddPrompt adds a prompt, or replaces the one of its name. It panics if the
// definition has no name.
func (s *Server) AddPrompt(definition mcp.Prompt, get PromptFunc) {
	entry, err := mcp.NewJSON(definition)
	if definition.Name == "" {
		err = errors.New("it has no name")
	}
	must("prompt", definition.Name, err)
	p := &prompt{get: get}
	for _, argument := range definition.Arguments {
		if argument.Required {
			p.required = append(p.required, argument.Name)
		}
	}
	s.prompts.add(definition.Name, entry, p)
}

// RemovePrompts removes prompts. Names of none are passed over.
func (s *Server) RemovePrompts(names ...string) { s.prompts.remove(names...) }

// UserText returns the message of a user that is one text.
func UserText(text string) mcp.PromptMessage {
	return mcp.PromptMessage{Role: mcp.User, Content: &mcp.Text{Text: text}}
}

// promptArguments returns the arguments of a prompt. Those that are null are absent.
func promptArguments(raw mcp.JSON) (map[string]string, error) {
	var given map[string]*string
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, invalid("arguments must be an object of strings")
	}
	args := make(map[string]string, len(given))
	for name, value := range given {
		if value != nil {
			args[name] = *value
		}
	}
	return args, nil
}

// getPrompt answers prompts/get.
func (s *Server) getPrompt(ctx context.Context, c *Call) (mcp.Result, error) {
	name, ok := c.req.Params.LookupString("name")
	if !ok {
		return mcp.Result{}, invalid("name must be a string")
	}
	p := s.prompts.get(name)
	if p == nil {
		return mcp.Result{}, invalid("unknown prompt %.100q", name)
	}
	args, err := promptArguments(c.Arguments())
	if err != nil {
		return mcp.Result{}, err
	}
	for _, name := range p.required {
		if _, there := args[name]; !there {
			return mcp.Result{}, invalid("the argument %q is missing", name)
		}
	}
	if _, err := c.State(); err != nil {
		return mcp.Result{}, err
	}
	messages, err := p.get(ctx, c, args)
	if err != nil {
		return c.failed(err)
	}
	result := mcp.GetPromptResult{}
	if messages != nil {
		result = *messages
	}
	c.members(&result.ResultMembers)
	return encodeResult(&result)
}
