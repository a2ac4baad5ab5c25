package demo

import (
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A prompt is an entry of prompts/list.
type prompt struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Arguments   []object `json:"arguments,omitempty"`
}

const greeting, extra = "greeting", "extra"

var basicPrompts = []prompt{{
	Name: greeting, Title: "Greeting", Description: "Asks for a warm greeting of somebody.",
	Arguments: []object{{"name": "name", "description": "Whom to greet", "required": true}},
}}

var extraPrompt = prompt{Name: extra, Title: "Extra", Description: "Is there because the tool toggle added it."}

func (s *Server) prompts() []prompt {
	if s.has(kindPrompt) {
		return append(basicPrompts[:len(basicPrompts):len(basicPrompts)], extraPrompt)
	}
	return basicPrompts
}

func (s *Server) getPrompt(req *mcp.Request) (mcp.Result, error) {
	args, err := arguments(req)
	if err != nil {
		return mcp.Result{}, err
	}
	name, _ := req.Params.LookupString("name")
	switch {
	case name == extra && s.has(kindPrompt):
		return promptResult("An extra prompt", "Say something extra.")
	case name != greeting:
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Unknown prompt: %.100s", name)
	}
	whom, ok := args.LookupString("name")
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: the argument name must be a string")
	}
	return promptResult("A greeting of "+whom, "Greet "+whom+" warmly, in one sentence.")
}

func promptResult(description, text string) (mcp.Result, error) {
	return result(object{
		"description": description,
		"messages":    []object{{"role": "user", "content": textItem(text)}},
	})
}

// What completion/complete offers for the argument of the prompt, and for that
// of the resource template.
var (
	names = []string{"Ada", "Alan", "Barbara", "Dennis", "Donald", "Edsger", "Frances", "Grace", "Ken", "Margaret"}
	words = []string{"hello", "hello%20world", "here"}
)

func (s *Server) complete(req *mcp.Request) (mcp.Result, error) {
	ref, argument := req.Params.Get("ref"), req.Params.Get("argument")
	kind, _ := ref.LookupString("type")
	name, _ := ref.LookupString("name")
	uri, _ := ref.LookupString("uri")
	param, _ := argument.LookupString("name")
	prefix, ok := argument.LookupString("value")
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: argument.value must be a string")
	}
	switch {
	case kind == "ref/prompt" && name == greeting && param == "name":
		return completion(names, prefix)
	case kind == "ref/resource" && uri == echoPrefix+"{text}" && param == "text":
		return completion(words, prefix)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: nothing to complete has that name")
}

// completion offers what begins with prefix in whatever case.
func completion(all []string, prefix string) (mcp.Result, error) {
	values := []string{}
	for _, value := range all {
		if len(value) >= len(prefix) && strings.EqualFold(value[:len(prefix)], prefix) {
			values = append(values, value)
		}
	}
	return result(object{
		"completion": object{"values": values, "total": len(values), "hasMore": false},
	})
}
