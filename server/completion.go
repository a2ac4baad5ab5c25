package server

import (
	"context"

	"github.com/mcpsplice/mcpsplice/internal/schema"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// A CompleteFunc returns the values that an argument may have, best first, given
// what was typed so far and the arguments that are settled. No more than
// [mcp.MaxCompletions] of them are sent, with the number of all.
type CompleteFunc func(ctx context.Context, call *Call, typed string, settled map[string]string) ([]string, error)

// A completionKey names an argument.
type completionKey struct {
	kind, name, argument string
}

// CompletePrompt has f complete an argument of a prompt. Nil has it no longer
// completed.
func (s *Server) CompletePrompt(prompt, argument string, f CompleteFunc) {
	s.setCompletion(completionKey{mcp.RefPrompt, prompt, argument}, f)
}

// CompleteResource has f complete a variable of a resource template. Nil has it
// no longer completed.
func (s *Server) CompleteResource(uriTemplate, variable string, f CompleteFunc) {
	s.setCompletion(completionKey{mcp.RefResource, uriTemplate, variable}, f)
}

func (s *Server) setCompletion(key completionKey, f CompleteFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.completed = true
	if f == nil {
		delete(s.completions, key)
		return
	}
	s.completions[key] = f
}

// completes reports whether the server completes or has completed anything.
func (s *Server) completes() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.completed
}

// complete answers completion/complete. An argument that nothing was said about
// has no completions.
func (s *Server) complete(ctx context.Context, c *Call) (mcp.Result, error) {
	var params mcp.CompleteParams
	if err := json.Unmarshal(c.req.Params.Raw(), &params); err != nil {
		return mcp.Result{}, invalid("%v", schema.Plainly(err))
	}
	key, known := s.completionKey(&params)
	if !known {
		return mcp.Result{}, invalid("nothing to complete has that name")
	}
	s.mu.RLock()
	f := s.completions[key]
	s.mu.RUnlock()
	values := []string{}
	if f != nil {
		var settled map[string]string
		if params.Context != nil {
			settled = params.Context.Arguments
		}
		found, err := f(ctx, c, params.Argument.Value, settled)
		if err != nil {
			return mcp.Result{}, err
		}
		values = append(values, found...)
	}
	return c.completion(values)
}

// completionKey returns what is to be completed, and whether there is such a
// prompt or template.
func (s *Server) completionKey(params *mcp.CompleteParams) (completionKey, bool) {
	key := completionKey{params.Ref.Type, params.Ref.Name, params.Argument.Name}
	switch params.Ref.Type {
	case mcp.RefPrompt:
		return key, s.prompts.get(key.name) != nil
	case mcp.RefResource:
		key.name = params.Ref.URI
		return key, s.templates.get(key.name) != nil || s.resources.get(key.name) != nil
	}
	return key, false
}

func (c *Call) completion(values []string) (mcp.Result, error) {
	total := len(values)
	more := total > mcp.MaxCompletions
	result := mcp.CompleteResult{Completion: mcp.Completion{
		Values: values[:min(total, mcp.MaxCompletions)], Total: &total, HasMore: &more,
	}}
	c.members(&result.ResultMembers)
	return encodeResult(&result)
}
