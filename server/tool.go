package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A ToolFunc is what a typed tool does. An error is told the model as the result
// of a failed tool, except a *[jsonrpc.Error] made in this process, which is the
// error of the request, the error of ctx, and what [NeedInput] returns. What a
// peer answered with, to a question or to a call of another server, is told the
// model; what a *[mcp.CallError] says may not be for it, and that is the error of
// the request again.
type ToolFunc[In, Out any] func(ctx context.Context, call *Call, in In) (Out, error)

// A tool is a tool of a server.
type tool struct {
	// run returns the result of a call.
	run func(ctx context.Context, c *Call) (mcp.Result, error)
}

// AddTool adds a tool that is a function of Go types, or replaces the one of its
// name. A schema that the definition lacks is inferred from In and Out: a struct
// with json tags, described by jsonschema tags. Out may be string,
// [mcp.Contents], or *[mcp.CallToolResult], for which no output schema is
// inferred; any other type is structured content, and so is a string with an
// output schema.
//
// Properties that are absent have the defaults of the input schema.
//
// It panics if the definition is none: without a name, with types that JSON does
// not have or that hold themselves, or with a schema that is no JSON Schema
// (2020-12 or draft-07), has patterns that package regexp does not know, refers
// to something outside itself, or, for the input, is not of type object or has
// header annotations that no client can follow.
func AddTool[In, Out any](s *Server, definition mcp.Tool, run ToolFunc[In, Out]) {
	t, err := newTyped(s, &definition, run)
	if err == nil {
		err = s.addTool(definition, t.call)
	}
	must("tool", definition.Name, err)
}

// AddTool adds a tool that takes its arguments as they come and writes its result
// itself, or replaces the one of its name. Nothing is checked against the
// schemas, which are listed byte for byte apart from line breaks; without an
// input schema any object is let through. Errors of run are told the model, as
// those of a [ToolFunc].
//
// It panics if the definition has no name, or a schema that is no JSON or, for
// the input, not of type object or has header annotations that no client can
// follow.
func (s *Server) AddTool(definition mcp.Tool, run func(ctx context.Context, call *Call) (mcp.Result, error)) {
	if definition.InputSchema == nil {
		definition.InputSchema = anyObject
	}
	err := s.addTool(definition, func(ctx context.Context, c *Call) (mcp.Result, error) {
		result, err := run(ctx, c)
		if err != nil {
			return c.failedTool(ctx, err)
		}
		return c.finishRaw(result), nil
	})
	must("tool", definition.Name, err)
}

// RemoveTools removes tools. Names of none are passed over. Calls that run go
// on.
func (s *Server) RemoveTools(names ...string) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.tools.remove(names...)
	s.headers.Forget(names...)
}

func (s *Server) addTool(definition mcp.Tool, run func(context.Context, *Call) (mcp.Result, error)) error {
	if definition.Name == "" {
		return errors.New("it has no name")
	}
	if !isObjectSchema(definition.InputSchema) {
		return fmt.Errorf("input schema: %w", errNotObject)
	}
	entry, err := entryOf(definition)
	if err != nil {
		return err
	}
	list := mcp.RawResult(append(append([]byte(`{"tools":[`), entry...), "]}"...))
	s.changing.Lock()
	defer s.changing.Unlock()
	if _, bad := s.headers.Learn(list); bad != nil {
		return bad[definition.Name]
	}
	s.tools.add(definition.Name, entry, &tool{run: run})
	return nil
}

// ToolHeaders returns what is known of the header annotations of the server's
// tools, for the edge that checks them.
func (s *Server) ToolHeaders() *mcp.ToolHeaders { return &s.headers }

// entryOf returns a tool as it is listed. The encoder would take white space out
// of the schemas, which somebody may have signed.
func entryOf(definition mcp.Tool) ([]byte, error) {
	encoded, err := mcp.NewJSON(definition)
	if err != nil {
		return nil, err
	}
	edits := []jsonrpc.Edit{{Name: "inputSchema", Value: definition.InputSchema}}
	if definition.OutputSchema != nil {
		edits = append(edits, jsonrpc.Edit{Name: "outputSchema", Value: definition.OutputSchema})
	}
	entry := jsonrpc.Trusted(encoded)
	entry = jsonrpc.Edited(&entry, edits...)
	return entry.Raw(), nil
}

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, c *Call) (mcp.Result, error) {
	name, ok := c.req.Params.LookupString("name")
	if !ok {
		return mcp.Result{}, invalid("name must be a string")
	}
	t := s.tools.get(name)
	if t == nil {
		return mcp.Result{}, invalid("unknown tool %.100q", name)
	}
	if args := c.Arguments(); args[0] != '{' {
		return mcp.Result{}, invalid("arguments must be an object")
	}
	return t.run(ctx, c)
}

// failedTool returns the outcome of a tool whose function has failed.
func (c *Call) failedTool(ctx context.Context, err error) (mcp.Result, error) {
	if need, ok := errors.AsType[*inputError](err); ok {
		return c.inputRequired(need)
	}
	_, wire := errors.AsType[*jsonrpc.Error](err)
	_, lost := errors.AsType[*mcp.CallError](err)
	if wire && !jsonrpc.FromPeer(err) || lost || ctx.Err() != nil {
		return mcp.Result{}, err
	}
	return c.textResult(err.Error(), true), nil
}
