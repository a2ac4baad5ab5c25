package session

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// capabilityFor names the client capability that a question needs.
var capabilityFor = map[string]string{
	mcp.MethodElicit:        "elicitation",
	mcp.MethodCreateMessage: "sampling",
	mcp.MethodListRoots:     "roots",
}

// declares reports whether a client with these capabilities can be asked a
// question. Of questions that are not the protocol's it decides itself.
func declares(capabilities []byte, method string) bool {
	name, known := capabilityFor[method]
	if !known {
		return true
	}
	v := jsonrpc.Trusted(capabilities)
	return has(&v, name)
}

// has reports whether an object has a member that says something: languages write null
// that have no absent ones.
func has(v *jsonrpc.Value, name string) bool {
	raw, ok := v.Lookup(name)
	return ok && string(raw) != "null"
}

// checkMode returns why a client with these capabilities must not be sent an
// elicitation of a mode. Who declares no mode has that of forms (2025-11-25,
// client/elicitation, Capabilities and Error Handling).
func checkMode(capabilities []byte, req *mcp.Request) error {
	if req.Method != mcp.MethodElicit {
		return nil
	}
	mode, ok := req.Params.LookupString("mode")
	if !ok {
		mode = "form"
	}
	v := jsonrpc.Trusted(capabilities)
	elicitation := v.Get("elicitation")
	if has(&elicitation, mode) || mode == "form" && !has(&elicitation, "url") {
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: the client has not declared the elicitation mode %.20q", mode)
}

// isWire reports whether an error says itself how it is to be answered.
func isWire(err error) bool {
	_, ok := errors.AsType[*jsonrpc.Error](err)
	return ok
}

// Refusal returns the answer to a server's question that nobody can be asked: an
// elicitation is answered as by a user who closes the dialog, and what the
// client did not declare is an unknown method.
func Refusal(method string, capabilities []byte) (mcp.Result, error) {
	switch _, known := capabilityFor[method]; {
	case !known || !declares(capabilities, method):
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	case method == mcp.MethodElicit:
		return mcp.RawResult([]byte(`{"action":"cancel"}`)), nil
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error: nobody can be asked just now")
}

// refuse answers a question that nobody can be asked: one for the roots with those
// that are known. Who has begun to listen since it came could not be told yet to be
// asked for them.
func (c *Client) refuse(ctx context.Context, q *question) {
	result, err := Refusal(q.req.Method, c.opts.Capabilities)
	if q.req.Method != mcp.MethodListRoots {
		c.reply(ctx, q.wait, q.id, result, err)
		return
	}
	known, ok := c.knownRoots()
	if ok {
		c.reply(ctx, q.wait, q.id, known, nil)
		return
	}
	c.reply(ctx, q.wait, q.id, result, err)
	c.mu.Lock()
	late := c.listens != q.listens
	c.mu.Unlock()
	if late {
		c.offerRoots(ctx)
	}
}
