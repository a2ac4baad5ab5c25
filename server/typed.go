package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/mcpsplice/mcpsplice/internal/longtext"
	"github.com/mcpsplice/mcpsplice/internal/schema"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A typed is a tool that is a function of Go types.
type typed[In, Out any] struct {
	run        ToolFunc[In, Out]
	input      *schema.Schema // nil if arguments are not checked
	output     *schema.Schema // nil if results are not
	presets    []preset
	texts      []longtext.Field
	structured bool // a string is structured content
}

// newTyped returns a typed tool and completes its definition.
func newTyped[In, Out any](s *Server, definition *mcp.Tool, run ToolFunc[In, Out]) (*typed[In, Out], error) {
	t := &typed[In, Out]{run: run, texts: longTextsOf(reflect.TypeFor[In]()), structured: definition.OutputSchema != nil}
	if err := inferSchemas[In, Out](definition); err != nil {
		return nil, err
	}
	if _, err := entryOf(*definition); err != nil {
		return nil, err // before anything trusts the schemas
	}
	t.presets = presetsOf(definition.InputSchema)
	if t.presets != nil {
		if _, err := t.decode(mcp.JSON("{}"), nil); err != nil {
			return nil, fmt.Errorf("input schema: its defaults: %w", err)
		}
	}
	if s.opts.SkipValidation {
		return t, nil
	}
	var err error
	if t.input, err = schema.New(definition.InputSchema); err != nil {
		return nil, fmt.Errorf("input %w", err)
	}
	if definition.OutputSchema == nil {
		return t, nil
	}
	if t.output, err = schema.New(definition.OutputSchema); err != nil {
		return nil, fmt.Errorf("output %w", err)
	}
	return t, nil
}

// inferSchemas completes a definition with the schemas that it lacks.
func inferSchemas[In, Out any](definition *mcp.Tool) error {
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if definition.InputSchema == nil {
		inferred, err := inferSchema(in)
		if err != nil {
			return fmt.Errorf("input schema: %w", err)
		}
		if definition.InputSchema = inferred; inferred == nil {
			definition.InputSchema = anyObject
		}
	}
	switch {
	case definition.OutputSchema != nil && out == reflect.TypeFor[mcp.Contents]():
		return errors.New("contents alone do not fit an output schema")
	case definition.OutputSchema != nil || !isStructured(out):
		return nil
	}
	inferred, err := inferSchema(out)
	if err != nil {
		return fmt.Errorf("output schema: %w", err)
	}
	definition.OutputSchema = inferred
	return nil
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
	in, err := t.decode(c.Arguments(), t.input)
	if err != nil {
		return c.textResult("invalid arguments: "+err.Error(), true), nil
	}
	out, err := t.run(ctx, c, in)
	if err != nil {
		return c.failedTool(ctx, err)
	}
	return t.encode(c, out)
}

// decode returns the arguments as the function takes them, if they are as the
// schema has it, which may be nil.
func (t *typed[In, Out]) decode(args mcp.JSON, input *schema.Schema) (in In, err error) {
	object := jsonrpc.Trusted(args)
	object = object.Indexed() // once for all that looks into it
	if input != nil {
		if err := input.CheckObject(&object); err != nil {
			return in, err
		}
	}
	object = withPresets(object, t.presets)
	if raw, ok := any(&in).(*mcp.JSON); ok {
		*raw = bytes.Clone(object.Raw())
		return in, nil
	}
	rest := takeLongTexts(t.texts, &object, reflect.ValueOf(&in).Elem())
	if decodeInto(rest, &in) == nil {
		return in, nil
	}
	return decode[In](object.Raw())
}

// encode returns what the function has returned as a result.
func (t *typed[In, Out]) encode(c *Call, out Out) (mcp.Result, error) {
	switch out := any(out).(type) {
	case string:
		if !t.structured {
			return c.textResult(out, false), nil
		}
	case mcp.Contents:
		return t.whole(c, &mcp.CallToolResult{Content: out})
	case *mcp.CallToolResult:
		if out == nil {
			out = &mcp.CallToolResult{}
		}
		return t.whole(c, out)
	}
	b := buffers.Get().(*buffer)
	defer b.recycle()
	var err error
	if b.bytes, err = mcp.AppendJSON(b.bytes, out); err != nil {
		return mcp.Result{}, fmt.Errorf("encoding the tool's result: %w", err)
	}
	if t.output != nil {
		if err := t.fits(b.bytes); err != nil {
			return mcp.Result{}, err
		}
	}
	return c.structuredResult(b.bytes), nil
}

// A buffer is memory in which structured content is encoded, before it is copied
// into the result twice.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// maxKept is how large the memory may be that is kept to be used again.
const maxKept = 4 << 20

func (b *buffer) recycle() {
	if cap(b.bytes) <= maxKept {
		b.bytes = b.bytes[:0]
		buffers.Put(b)
	}
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
	if _, err := jsonrpc.ParseValue(structured); err != nil {
		return fmt.Errorf("the tool's structured content: %w", err)
	}
	return t.fits(bytes.TrimSpace(structured))
}

func (t *typed[In, Out]) fits(structured []byte) error {
	if err := t.output.Check(structured); err != nil {
		return fmt.Errorf("the tool's result does not fit its output schema: %w", err)
	}
	return nil
}
