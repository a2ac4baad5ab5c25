package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"

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
	var answer mcp.ElicitResult
	if err := c.ask(ctx, ElicitRequest(params), &answer); err != nil {
		return nil, err
	}
	if answer.Action != mcp.Accept || params.Mode == mcp.ElicitURL || params.RequestedSchema == nil {
		return &answer, nil
	}
	form, err := newSchema(params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	if answer.Content == nil {
		answer.Content = mcp.JSON("{}")
	}
	if err := form.check(answer.Content); err != nil {
		return nil, fmt.Errorf("the client's answer does not fit the form: %w", err)
	}
	return &answer, nil
}

// Elicit asks the user to fill in a form with the fields of T, a struct of
// strings, numbers, booleans, and slices of strings, and returns what was filled
// in if the action is [mcp.Accept]. Pointers are fields that may be left out.
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
	if err := json.Unmarshal(answer.Content, &filled); err != nil {
		return filled, "", fmt.Errorf("the client's answer: %w", plainly(err))
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
	if err := c.MayAsk(question); err != nil {
		return err
	}
	result, err := c.caller.Ask(ctx, request(question))
	if err != nil {
		return fmt.Errorf("%s: %w", question.Method, err)
	}
	if err := json.Unmarshal(result.Raw(), answer); err != nil {
		return fmt.Errorf("the client's answer to %s: %w", question.Method, plainly(err))
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
	if err != nil { // a block of content without a type; nothing that a client could answer
		raw = mcp.JSON("{}")
	}
	return mcp.InputRequest{Method: method, Params: raw}
}

// formOf returns the schema of a form with the fields of a struct.
func formOf(t reflect.Type) (mcp.JSON, error) {
	inferred, err := inferSchema(t)
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	var form struct {
		Type       string                `json:"type"`
		Properties map[string]mcp.Object `json:"properties"`
		Required   []string              `json:"required,omitempty"`
	}
	if err := json.Unmarshal(inferred, &form); err != nil || form.Type != "object" {
		return nil, errors.New("form: a form is made of the fields of a struct")
	}
	for name, property := range form.Properties {
		kind, err := simpleType(property["type"])
		if err != nil {
			return nil, fmt.Errorf("form: field %q: %w", name, err)
		}
		property["type"] = kind
	}
	return mcp.NewJSON(form)
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
		case "string", "number", "integer", "boolean", "array":
			return mcp.NewJSON(name)
		}
	}
	return nil, fmt.Errorf("forms have no fields of type %s", names)
}

// An inputError says that a function needs answers before it can go on.
type inputError struct {
	questions map[string]mcp.InputRequest
	state     []byte
}

// Error implements error.
func (e *inputError) Error() string { return "input is required" }

// NeedInput returns an error with which a function of a tool, resource or prompt
// says that it needs answers of the client before it can go on (2026-07-28,
// patterns/mrtr). The function is called again with the answers
// ([Call.Answer]) and the state ([Call.State]). Nothing is kept in this process
// meanwhile: state is sealed and travels with the client. Questions and state
// must not both be empty.
func NeedInput(questions map[string]mcp.InputRequest, state []byte) error {
	return &inputError{questions, state}
}

// inputRequired returns the result that asks for input.
func (c *Call) inputRequired(need *inputError) (mcp.Result, error) {
	for _, question := range need.questions {
		if err := c.MayAsk(question); err != nil {
			return mcp.Result{}, err
		}
	}
	result := mcp.InputRequiredResult{
		InputRequests: need.questions,
		ResultMembers: mcp.ResultMembers{ResultType: mcp.InputRequired},
	}
	if need.state != nil {
		sealed, err := c.server.sealer.Seal(c.req, c.server.opts.StateLife, need.state)
		if err != nil {
			return mcp.Result{}, fmt.Errorf("sealing the state: %w", err)
		}
		result.RequestState = sealed
	}
	c.members(&result.ResultMembers)
	return encodeResult(&result)
}

// State returns the state that [NeedInput] was given, nil if the call is not a
// retry with one. For a typed tool, a resource and a prompt the error is always
// nil: a state that is not the server's own for this request, was used before or
// has expired is refused before the function is called. A tool that writes its
// results itself may have states of its own; for it the error is to be returned.
func (c *Call) State() ([]byte, error) {
	c.open.Do(func() { c.state, c.stateErr = c.openState() })
	return c.state, c.stateErr
}

func (c *Call) openState() ([]byte, error) {
	raw, ok := c.req.Params.Lookup("requestState")
	if !ok {
		return nil, nil
	}
	sealed, ok := jsonrpc.Unquote(raw)
	if !ok {
		return nil, invalid("requestState must be a string")
	}
	state, err := c.server.sealer.Open(c.req, sealed)
	if err != nil {
		return nil, invalid("requestState %v", err)
	}
	return state, nil
}

// Answer decodes the answer to a question of [NeedInput] into answer, a pointer
// to a result of package mcp, and reports whether there is a usable one.
func (c *Call) Answer(key string, answer any) bool {
	responses := c.req.Params.Get("inputResponses")
	raw, ok := responses.Lookup(key)
	return ok && raw[0] == '{' && json.Unmarshal(raw, answer) == nil
}
