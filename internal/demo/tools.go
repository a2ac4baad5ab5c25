package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A tool is an entry of tools/list, with what it does.
type tool struct {
	Name         string         `json:"name"`
	Title        string         `json:"title"`
	Description  string         `json:"description"`
	InputSchema  jsontext.Value `json:"inputSchema"`
	OutputSchema jsontext.Value `json:"outputSchema,omitzero"`

	run func(ctx context.Context, c *call) (mcp.Result, error)
}

// A call is one tools/call request.
type call struct {
	server *Server
	req    *mcp.Request
	caller mcp.Caller
	args   jsonrpc.Value // an object
}

// schema is the JSON Schema of an object with the given properties.
func schema(properties string, required ...string) jsontext.Value {
	s := `{"type":"object","properties":{` + properties + `}`
	if len(required) > 0 {
		s += `,"required":["` + strings.Join(required, `","`) + `"]`
	}
	return jsontext.Value(s + `}`)
}

const textProperty = `"text":{"type":"string"}`

var basicTools = []tool{
	{
		Name: "echo", Title: "Echo", Description: "Gives the text back.",
		InputSchema: schema(textProperty, "text"), run: runEcho,
	},
	{
		Name: "add", Title: "Add", Description: "Adds two numbers of any size, exactly.",
		InputSchema: schema(`"a":{"type":"number"},"b":{"type":"number"}`, "a", "b"), run: runAdd,
	},
	{
		Name: "slow", Title: "Take time", Description: "Takes its time in steps, tells its progress, and can be cancelled.",
		InputSchema: schema(`"steps":{"type":"integer","minimum":1,"maximum":1000,"default":5},` +
			`"delay_ms":{"type":"integer","minimum":0,"maximum":60000,"default":200}`), run: runSlow,
	},
	{
		Name: "log", Title: "Log", Description: "Sends a log message of each level that is wanted.",
		InputSchema: schema(textProperty), run: runLog,
	},
	{
		Name: "image", Title: "Draw", Description: "Draws a small PNG.",
		InputSchema: schema(""), run: runImage,
	},
	{
		Name: "fail", Title: "Fail", Description: "Fails, as a tool does: with a result that is an error.",
		InputSchema: schema(textProperty), run: runFail,
	},
	{
		Name: "crash", Title: "Crash", Description: "Fails, as a server does: with a JSON-RPC error.",
		InputSchema: schema(""), run: runCrash,
	},
	{
		Name: "big", Title: "Write much", Description: "Writes a text of the given size.",
		InputSchema: schema(`"bytes":{"type":"integer","minimum":0,"maximum":16777216,"default":1048576}`), run: runBig,
	},
	{
		Name: "structured", Title: "Count", Description: "Counts the characters, words and lines of a text.",
		InputSchema: schema(textProperty, "text"),
		OutputSchema: schema(`"characters":{"type":"integer"},"words":{"type":"integer"},"lines":{"type":"integer"}`,
			"characters", "words", "lines"), run: runStructured,
	},
	{
		Name: "ask", Title: "Ask", Description: "Asks the user for a name and greets them.",
		InputSchema: schema(""), run: runAsk,
	},
	{
		Name: "toggle", Title: "Toggle", Description: "Adds an extra resource, tool or prompt to its list, or takes it away again.",
		InputSchema: schema(`"what":{"enum":["resource","tool","prompt"],"default":"resource"}`), run: runToggle,
	},
}

var extraTool = tool{
	Name: "extra", Title: "Extra", Description: "Is there because toggle added it.",
	InputSchema: schema(""),
	run:         func(context.Context, *call) (mcp.Result, error) { return text("I am extra.") },
}

func (s *Server) tools() []tool {
	if s.has(kindTool) {
		return append(basicTools[:len(basicTools):len(basicTools)], extraTool)
	}
	return basicTools
}

func (s *Server) callTool(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	name, ok := req.Params.LookupString("name")
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: name must be a string")
	}
	if _, ok := req.Params.Lookup("requestState"); ok {
		// It is of an instance that has ended. Doing the work again is not what
		// the client wants.
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: requestState is not known here")
	}
	args, err := arguments(req)
	if err != nil {
		return mcp.Result{}, err
	}
	for _, t := range s.tools() {
		if t.Name == name {
			return t.run(ctx, &call{server: s, req: req, caller: caller, args: args})
		}
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Unknown tool: %.100s", name)
}

// arguments returns the arguments of a tool or prompt: absent ones and null are
// none, and what is no object is refused rather than guessed at.
func arguments(req *mcp.Request) (jsonrpc.Value, error) {
	args := req.Params.Get("arguments")
	switch {
	case args.IsZero() || args.IsNull():
		return jsonrpc.Trusted([]byte("{}")), nil
	case !args.IsObject():
		return args, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: arguments must be an object")
	}
	return args, nil
}

// decode fills v, which holds the defaults, from the arguments. The error is
// for the model, which can try again.
func (c *call) decode(v any) error {
	err := json.Unmarshal(c.args.Raw(), v)
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		return fmt.Errorf("invalid arguments: %s must be of another type", wrong.JSONPointer)
	}
	if err != nil {
		return errors.New("invalid arguments: a member is there twice")
	}
	return nil
}

// require says which of the arguments is missing.
func (c *call) require(names ...string) error {
	for _, name := range names {
		if _, ok := c.args.Lookup(name); !ok {
			return fmt.Errorf("invalid arguments: %s is missing", name)
		}
	}
	return nil
}

// toolResult is a CallToolResult.
type toolResult struct {
	Content    []object `json:"content"`
	Structured any      `json:"structuredContent,omitzero"`
	IsError    bool     `json:"isError,omitzero"`
}

func text(format string, args ...any) (mcp.Result, error) {
	return result(toolResult{Content: []object{textItem(fmt.Sprintf(format, args...))}})
}

func textItem(text string) object { return object{"type": "text", "text": text} }

// failure is the result of a tool that could not do what it was asked.
func failure(reason string) (mcp.Result, error) {
	return result(toolResult{Content: []object{textItem(reason)}, IsError: true})
}
