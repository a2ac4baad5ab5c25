package server

import (
	"errors"
	"fmt"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

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
// must not both be empty; a state may be about 6,000 bytes long ([park.MaxState]
// as it travels).
func NeedInput(questions map[string]mcp.InputRequest, state []byte) error {
	return &inputError{questions, state}
}

// inputRequired returns the result that asks for input.
func (c *Call) inputRequired(need *inputError) (mcp.Result, error) {
	if len(need.questions) == 0 && need.state == nil {
		return mcp.Result{}, errors.New("input is required, but neither a question nor a state was given")
	}
	for _, question := range need.questions {
		if err := c.MayAsk(question); err != nil {
			return mcp.Result{}, err
		}
		if err := askable(question); err != nil {
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
	c.opened.Do(func() { c.state, c.stateErr = c.open() })
	return c.state, c.stateErr
}

// open opens the state of a call. It can be opened once only.
func (c *Call) open() ([]byte, error) {
	raw, ok := c.req.Params.Lookup("requestState")
	if !ok {
		return nil, nil
	}
	sealed, ok := jsonrpc.Unquote(raw)
	if !ok {
		return nil, invalid("requestState must be a string")
	}
	state, err := c.server.sealer.Open(c.req, sealed)
	if _, limit := errors.AsType[*mcp.CallError](err); limit {
		return nil, err
	}
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
	return ok && raw[0] == '{' && mcp.JSON(raw).Decode(answer) == nil
}
