package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"

	"github.com/mcpsplice/mcpsplice/internal/schema"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// Elicit asks the user to fill in a form, or with ElicitURL to open a URL, and
// waits for the answer. An answer that does not fit the form is an error. If the
// client has not declared that it can do this, the error is a *[jsonrpc.Error]
// of CodeMissingCapability, to be returned; so it is for [Call.Sample] and
// [Call.Roots].
func (c *Call) Elicit(ctx context.Context, params mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if params.Mode == mcp.ElicitURL && params.ElicitationID == "" && !isModern(c.req) {
		params.ElicitationID = rand.Text() // 2025-11-25 must have one
	}
	var form *schema.Schema
	if params.Mode != mcp.ElicitURL && params.RequestedSchema != nil {
		var err error
		if form, err = schema.New(params.RequestedSchema); err != nil {
			return nil, fmt.Errorf("form: %w", err) // before a user fills it in for nothing
		}
	}
	var answer mcp.ElicitResult
	if err := c.ask(ctx, ElicitRequest(params), &answer); err != nil {
		return nil, err
	}
	switch answer.Action {
	case mcp.Accept, mcp.Decline, mcp.Cancel:
	default:
		return nil, fmt.Errorf("the client's answer has the unknown action %.40q", answer.Action)
	}
	if answer.Action != mcp.Accept || form == nil {
		return &answer, nil
	}
	if answer.Content == nil || string(answer.Content) == "null" {
		answer.Content = mcp.JSON("{}")
	}
	if err := form.Check(answer.Content); err != nil {
		return nil, fmt.Errorf("the client's answer does not fit the form: %w", err)
	}
	return &answer, nil
}

// Elicit asks the user to fill in a form with the fields of T, a struct of
// strings, numbers and booleans, and returns what was filled in if the action is
// [mcp.Accept]. Pointers are fields that may be left out. Fields that are a choice
// of values need a schema by hand, with [Call.Elicit].
func Elicit[T any](ctx context.Context, c *Call, message string) (T, mcp.ElicitAction, error) {
	var filled T
	form, err := formOf(reflect.TypeFor[T]())
	if err != nil {
		return filled, "", err
	}
	answer, err := c.Elicit(ctx, mcp.ElicitParams{Message: message, RequestedSchema: form})
	if err != nil || answer.Action != mcp.Accept {
		if err == nil {
			return filled, answer.Action, nil
		}
		return filled, "", err
	}
	if filled, err = decode[T](answer.Content); err != nil {
		return filled, "", fmt.Errorf("the client's answer: %w", err)
	}
	return filled, mcp.Accept, nil
}

// Sample has the client's model continue a conversation and waits for what it
// says.
func (c *Call) Sample(ctx context.Context, params mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	var answer mcp.CreateMessageResult
	if err := c.ask(ctx, SampleRequest(params), &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}

// Roots asks the client which directories and files the server may work on.
func (c *Call) Roots(ctx context.Context) ([]mcp.Root, error) {
	var answer mcp.ListRootsResult
	if err := c.ask(ctx, RootsRequest(), &answer); err != nil {
		return nil, err
	}
	return answer.Roots, nil
}

// ask puts a question and decodes its answer.
func (c *Call) ask(ctx context.Context, question mcp.InputRequest, answer any) error {
	if c.over.Load() {
		return errOver
	}
	if err := c.MayAsk(question); err != nil {
		return err
	}
	if err := askable(question); err != nil {
		return err
	}
	result, err := c.caller.Ask(ctx, request(question))
	if err != nil {
		return fmt.Errorf("%s: %w", question.Method, err)
	}
	if err := result.Decode(answer); err != nil {
		return fmt.Errorf("the client's answer to %s: %w", question.Method, schema.Plainly(err))
	}
	return nil
}

// request returns a question as a request.
func request(question mcp.InputRequest) *mcp.Request {
	req := &mcp.Request{Method: question.Method}
	if question.Params != nil {
		req.Params = jsonrpc.Trusted(question.Params)
	}
	return req
}

// MayAsk returns the error of a question that the client has not declared to
// answer, nil if it may be asked: a *[jsonrpc.Error] of CodeMissingCapability,
// to be returned before work is done in vain.
func (c *Call) MayAsk(question mcp.InputRequest) error {
	req := request(question)
	if mcp.CanAsk(c.req.Meta.Capabilities, req) {
		return nil
	}
	return mcp.MissingCapability(req)
}

// ElicitRequest returns the question of [Call.Elicit], for [NeedInput].
func ElicitRequest(params mcp.ElicitParams) mcp.InputRequest {
	return question(mcp.MethodElicit, params)
}

// SampleRequest returns the question of [Call.Sample], for [NeedInput].
func SampleRequest(params mcp.CreateMessageParams) mcp.InputRequest {
	return question(mcp.MethodCreateMessage, params)
}

// RootsRequest returns the question of [Call.Roots], for [NeedInput].
func RootsRequest() mcp.InputRequest {
	// The official Go SDK's client (v1.8.0) fails without params.
	return mcp.InputRequest{Method: mcp.MethodListRoots, Params: mcp.JSON("{}")}
}

func question(method string, params any) mcp.InputRequest {
	raw, err := mcp.NewJSON(params)
	if err != nil { // then it is not askable
		raw = nil
	}
	return mcp.InputRequest{Method: method, Params: raw}
}

// askable returns the error of a question that is none.
func askable(question mcp.InputRequest) error {
	if question.Params == nil && question.Method != mcp.MethodListRoots {
		return fmt.Errorf("%s: its params hold what is no JSON", question.Method)
	}
	return nil
}

// formOf returns the schema of a form with the fields of a struct.
func formOf(t reflect.Type) (mcp.JSON, error) {
	inferred, err := inferSchema(t)
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	form := jsonrpc.Trusted(inferred)
	properties := form.Get("properties")
	if t.Kind() != reflect.Struct || !properties.IsObject() {
		return nil, errors.New("form: a form is made of the fields of a struct")
	}
	var edits []jsonrpc.Edit
	for name, inner := range properties.Members() {
		property := jsonrpc.Trusted(inner)
		raw, _ := property.Lookup("type")
		kind, err := simpleType(raw)
		if err != nil {
			return nil, fmt.Errorf("form: field %q: %w", name, err)
		}
		property = jsonrpc.Edited(&property, jsonrpc.Edit{Name: "type", Value: kind}, jsonrpc.Edit{Name: "contentEncoding"})
		edits = append(edits, jsonrpc.Edit{Name: name, Value: property.Raw()})
	}
	properties = jsonrpc.Edited(&properties, edits...)
	form = jsonrpc.Edited(&form,
		jsonrpc.Edit{Name: "properties", Value: properties.Raw()}, jsonrpc.Edit{Name: "additionalProperties"})
	return form.Raw(), nil
}

// simpleType returns the type of a field, without null, which forms do not know.
func simpleType(raw mcp.JSON) (mcp.JSON, error) {
	var names []string
	if json.Unmarshal(raw, &names) != nil {
		names = make([]string, 1)
		if json.Unmarshal(raw, &names[0]) != nil {
			return nil, errors.New("it may be of any type")
		}
	}
	for _, name := range names {
		switch name {
		case "string", "number", "integer", "boolean":
			return mcp.NewJSON(name)
		}
	}
	return nil, fmt.Errorf("forms have no fields of type %s", names)
}
