package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// A ToolFunc is what a typed tool does. An error is told the model as the result
// of a failed tool, except a *[jsonrpc.Error], which is the error of the request,
// the error of ctx, and what [NeedInput] returns.
type ToolFunc[In, Out any] func(ctx context.Context, call *Call, in In) (Out, error)

// A tool is a tool of a server.
type tool struct {
	// run returns the result of a call.
	run func(ctx context.Context, c *Call) (mcp.Result, error)
}

// AddTool adds a tool that is a function of Go types, or replaces the one of its
// name. A schema that the definition lacks is inferred from In and Out: a struct
// with json tags, described by jsonschema tags. Out may be string,
// [mcp.Contents], or *[mcp.CallToolResult], which have no output schema; any
// other type is structured content.
//
// Properties that are absent have the defaults of the input schema.
//
// It panics if the definition is none: without a name, or with a schema that is
// no JSON Schema, refers to something outside itself, or, for the input, is not
// of type object or has header annotations that no client can follow.
func AddTool[In, Out any](s *Server, definition mcp.Tool, run ToolFunc[In, Out]) {
	t, err := newTyped(s, &definition, run)
	if err == nil {
		err = s.addTool(definition, t.call)
	}
	must("tool", definition.Name, err)
}

// AddTool adds a tool that takes its arguments as they come and writes its result
// itself, or replaces the one of its name. Nothing is checked against the
// schemas, which are listed byte for byte; without an input schema any object
// is let through. Errors of run are told the model, as those of a [ToolFunc].
//
// It panics if the definition has no name, its input schema is not of type
// object, or that has header annotations that no client can follow.
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
func (s *Server) RemoveTools(names ...string) { s.tools.remove(names...) }

func (s *Server) addTool(definition mcp.Tool, run func(context.Context, *Call) (mcp.Result, error)) error {
	if definition.Name == "" {
		return errors.New("it has no name")
	}
	if !isObjectSchema(definition.InputSchema) {
		return fmt.Errorf("input schema: %w", errNotObject)
	}
	entry, err := json.Marshal(definition, json.Deterministic(true))
	if err != nil {
		return err
	}
	list := mcp.RawResult(append(append([]byte(`{"tools":[`), entry...), "]}"...))
	if _, bad := s.headers.Learn(list); bad != nil {
		return bad[definition.Name]
	}
	s.tools.add(definition.Name, entry, &tool{run: run})
	return nil
}

// ToolHeaders returns what is known of the header annotations of the server's
// tools, for the edge that checks them.
func (s *Server) ToolHeaders() *mcp.ToolHeaders { return &s.headers }

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
	if wire || lost || ctx.Err() != nil {
		return mcp.Result{}, err
	}
	return c.textResult(err.Error(), true), nil
}

// textResult returns the result of a tool that is one text.
func (c *Call) textResult(text string, failed bool) mcp.Result {
	dst := make([]byte, 0, len(c.server.prefix)+len(text)+len(text)/16+96)
	dst = c.server.begin(dst, c.req)
	dst = appendName(dst, "content")
	dst = append(dst, `[{"type":"text","text":`...)
	dst = jsonrpc.AppendString(dst, text)
	dst = append(dst, "}]"...)
	if failed {
		dst = append(dst, `,"isError":true`...)
	}
	return mcp.RawResult(append(dst, '}'))
}

// A typed is a tool that is a function of Go types.
type typed[In, Out any] struct {
	run      ToolFunc[In, Out]
	input    *schema  // nil if arguments are not checked
	output   *schema  // nil if results are not
	defaults mcp.JSON // of arguments; nil for none
}

// newTyped returns a typed tool and completes its definition.
func newTyped[In, Out any](s *Server, definition *mcp.Tool, run ToolFunc[In, Out]) (*typed[In, Out], error) {
	t := &typed[In, Out]{run: run}
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if definition.InputSchema == nil {
		inferred, err := inferSchema(in)
		if err != nil {
			return nil, fmt.Errorf("input schema: %w", err)
		}
		if definition.InputSchema = inferred; inferred == nil {
			definition.InputSchema = anyObject
		}
	}
	if definition.OutputSchema == nil && isStructured(out) {
		inferred, err := inferSchema(out)
		if err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
		definition.OutputSchema = inferred
	}
	t.defaults = defaultsOf(definition.InputSchema)
	if s.opts.SkipValidation {
		return t, nil
	}
	var err error
	if t.input, err = newSchema(definition.InputSchema); err != nil {
		return nil, fmt.Errorf("input %w", err)
	}
	if definition.OutputSchema == nil {
		return t, nil
	}
	if t.output, err = newSchema(definition.OutputSchema); err != nil {
		return nil, fmt.Errorf("output %w", err)
	}
	return t, nil
}

// isStructured reports whether values of a type become structured content.
func isStructured(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[string](), reflect.TypeFor[mcp.Contents](), reflect.TypeFor[*mcp.CallToolResult]():
		return false
	}
	return true
}

func (t *typed[In, Out]) call(ctx context.Context, c *Call) (mcp.Result, error) {
	// To do the work again from its beginning is not what a client wants whose
	// state is of a process that has ended.
	if _, err := c.State(); err != nil {
		return mcp.Result{}, err
	}
	in, err := t.decode(c.Arguments())
	if err != nil {
		return c.textResult("invalid arguments: "+err.Error(), true), nil
	}
	out, err := t.run(ctx, c, in)
	if err != nil {
		return c.failedTool(ctx, err)
	}
	return t.encode(c, out)
}

// decode returns the arguments as the function takes them.
func (t *typed[In, Out]) decode(args mcp.JSON) (in In, err error) {
	if t.input != nil {
		if err := t.input.check(args); err != nil {
			return in, err
		}
	}
	if t.defaults != nil {
		if err := json.Unmarshal(t.defaults, &in); err != nil {
			return in, fmt.Errorf("defaults: %w", plainly(err))
		}
	}
	if raw, ok := any(&in).(*mcp.JSON); ok {
		*raw = bytes.Clone(args)
		return in, nil
	}
	return in, plainly(json.Unmarshal(args, &in))
}

// plainly returns an error of decoding as a model can understand it.
func plainly(err error) error {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		return fmt.Errorf("%s does not fit: %s is not a %s", wrong.JSONPointer, wrong.JSONKind, wrong.GoType)
	}
	return err
}

// encode returns what the function has returned as a result.
func (t *typed[In, Out]) encode(c *Call, out Out) (mcp.Result, error) {
	switch out := any(out).(type) {
	case string:
		return c.textResult(out, false), nil
	case mcp.Contents:
		return t.whole(c, &mcp.CallToolResult{Content: out})
	case *mcp.CallToolResult:
		if out == nil {
			out = &mcp.CallToolResult{}
		}
		return t.whole(c, out)
	}
	raw, err := json.Marshal(out, json.Deterministic(true))
	if err != nil {
		return mcp.Result{}, fmt.Errorf("encoding the tool's result: %w", err)
	}
	if err := t.checkOutput(raw); err != nil {
		return mcp.Result{}, err
	}
	return c.structuredResult(raw), nil
}

// whole returns a result that the function has put together.
func (t *typed[In, Out]) whole(c *Call, out *mcp.CallToolResult) (mcp.Result, error) {
	if !out.Failed() {
		if err := t.checkOutput(out.StructuredContent); err != nil {
			return mcp.Result{}, err
		}
	}
	result := *out
	c.members(&result.ResultMembers)
	return encodeResult(&result)
}

// checkOutput checks structured content: "Servers MUST provide structured results
// that conform to this schema" (2025-11-25 and 2026-07-28, server/tools, Output
// Schema).
func (t *typed[In, Out]) checkOutput(structured mcp.JSON) error {
	if t.output == nil {
		return nil
	}
	if structured == nil {
		return errors.New("the tool has an output schema and gave no structured content")
	}
	if err := t.output.check(structured); err != nil {
		return fmt.Errorf("the tool's result does not fit its output schema: %w", err)
	}
	return nil
}

// structuredResult returns the result of a tool that is structured content. "For
// backwards compatibility, a tool that returns structured content SHOULD also
// return the serialized JSON in a TextContent block" (2025-11-25 and 2026-07-28,
// server/tools, Structured Content).
func (c *Call) structuredResult(raw []byte) mcp.Result {
	dst := make([]byte, 0, len(c.server.prefix)+2*len(raw)+len(raw)/4+128)
	dst = c.server.begin(dst, c.req)
	dst = appendName(dst, "content")
	dst = append(dst, `[{"type":"text","text":`...)
	dst = jsonrpc.AppendString(dst, string(raw))
	dst = append(dst, `}],"structuredContent":`...)
	dst = append(dst, raw...)
	return mcp.RawResult(append(dst, '}'))
}
